// The page into which captures are dropped, as `make page` builds it, in Chromium.
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, type Page, test } from "./page";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const SMBSCOPE = process.env.SMBSCOPE ?? join(root, "target/release/smbscope");
const DROP_PAGE = process.env.SMBSCOPE_PAGE ?? join(root, "target/page.html");
const data = join(root, "tests/data");
const directory = mkdtempSync(join(tmpdir(), "smbscope-drop-"));

test.skip(!existsSync(DROP_PAGE), "skipped: no page; make page builds it");

const captures = readdirSync(data, { recursive: true, encoding: "utf8" })
  .filter((name) => /\.(pcap|pcapng)(\.zst)?$/.test(name))
  .sort()
  .map((name) => join(data, name));

/** Runs the command line next to the captures, so that it knows them by the same names as the page. */
function commandLine(files: string[], ...more: string[]): Buffer {
  const out = join(mkdtempSync(join(tmpdir(), "smbscope-drop-")), "out");
  const cwd = dirname(files[0] ?? "");
  const names = files.map((file) => basename(file));
  execFileSync(SMBSCOPE, ["analyze", "--quiet", "-o", out, ...more, ...names], { cwd, stdio: "pipe" });
  return readFileSync(out);
}

/** Reason for which the command line refuses captures, or null. */
function refusal(files: string[]): string | null {
  try {
    commandLine(files, "--format", "json");
    return null;
  } catch (error) {
    const said = String((error as { stderr: Buffer }).stderr);
    return said.replace(/^smbscope: /, "").trim();
  }
}

/** Returns the first lines in which two texts differ, or null. */
function difference(one: Buffer, other: Buffer): string | null {
  if (one.equals(other)) return null;
  const [lines, others] = [one, other].map((bytes) => bytes.toString("utf8").split("\n"));
  const at = lines?.findIndex((line, place) => line !== others?.[place]) ?? 0;
  return `line ${at + 1}: ${lines?.[at]?.slice(0, 300)} | ${others?.[at]?.slice(0, 300)}`;
}

async function drop(page: Page, files: string[]): Promise<void> {
  await page.locator("#files").setInputFiles(files);
  await expect(page.locator(".exports, .failure")).toBeVisible({ timeout: 60_000 });
}

async function exported(page: Page, format: string): Promise<Buffer> {
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.locator(`.exports [data-format=${format}]`).click(),
  ]);
  return readFileSync(await download.path());
}

// Each group in a test of its own, for the time limit.
const groups = new Map<string, string[]>();
for (const capture of captures) groups.set(dirname(capture), [...(groups.get(dirname(capture)) ?? []), capture]);
for (const [folder, files] of groups) {
  test(`the page and the command line write the same JSON about ${basename(folder)}`, async ({ openFile }) => {
    test.setTimeout(20_000 * files.length);
    const page = await openFile(DROP_PAGE);
    const different: string[] = [];
    for (const file of files) {
      await page.reload();
      await drop(page, [file]);
      const refused = refusal([file]);
      if (refused !== null) {
        await expect(page.locator(".failure")).toHaveText(refused);
      } else {
        const found = difference(await exported(page, "json"), commandLine([file], "--format", "json"));
        if (found !== null) different.push(`${basename(file)}: ${found}`);
      }
    }
    expect(different).toEqual([]);
  });
}

const demo = join(data, "demo-slow-server.pcap.zst");

test("a dropped file is analysed, and its report and exports equal the command line's", async ({ openFile }) => {
  const page = await openFile(DROP_PAGE);
  const content = [...readFileSync(demo)];
  const transfer = await page.evaluateHandle(
    ({ content, name }) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([new Uint8Array(content)], name));
      return transfer;
    },
    { content, name: basename(demo) },
  );
  await page.dispatchEvent(".zone", "drop", { dataTransfer: transfer });
  await expect(page.locator(".answer .headline")).toContainText("Server");
  await expect(page.locator("#groups table").first()).toBeVisible();
  expect(difference(await exported(page, "html"), commandLine([demo], "--format", "html"))).toBeNull();
  expect(difference(await exported(page, "csv"), commandLine([demo], "--format", "csv"))).toBeNull();
});

test("the anonymised capture can be analysed and holds no name of the original", async ({ openFile }) => {
  const page = await openFile(DROP_PAGE);
  await drop(page, [demo]);
  const slim = join(directory, "slim.pcapng.zst");
  writeFileSync(slim, await exported(page, "slim"));
  const [before, after] = [demo, slim].map((file) => JSON.parse(String(commandLine([file], "--format", "json"))));
  expect(after.totals.commands).toBe(before.totals.commands);
  expect(after.connections[0].server).not.toBe(before.connections[0].server);
});

test("several files are one capture, and a truncated one says where it ends", async ({ openFile }) => {
  const file = join(directory, "cut.pcap");
  execFileSync("zstd", ["-qdf", demo, "-o", file]);
  truncateSync(file, 300_001);
  const office = join(directory, "demo-smb311-office.pcap.zst");
  copyFileSync(join(data, "demo-smb311-office.pcap.zst"), office);
  const page = await openFile(DROP_PAGE);
  await drop(page, [file, office]);
  const json = await exported(page, "json");
  expect(difference(json, commandLine([file, office], "--format", "json"))).toBeNull();
  expect(String(json)).toContain("the file ends in the middle of a record");
});

test("keys that are dropped with a capture decrypt it", async ({ openFile }) => {
  const [capture, keys] = ["samba_ciphers.pcap.zst", "samba_ciphers.log"].map((name) => join(data, "encrypted", name));
  const page = await openFile(DROP_PAGE);
  await drop(page, [keys ?? "", capture ?? ""]);
  const json = await exported(page, "json");
  expect(difference(json, commandLine([capture ?? ""], "--format", "json", "--keys", basename(keys ?? "")))).toBeNull();
  expect(difference(json, commandLine([capture ?? ""], "--format", "json"))).not.toBeNull();
});

test("markup in names of files and captures is shown as text", async ({ openFile }) => {
  const [name, markup] = ["review-11.pptx", "<b onclick=1>x"].map((text) => Buffer.from(text, "utf16le"));
  const bytes = execFileSync("zstd", ["-qdc", demo], { maxBuffer: 1 << 30 });
  for (let at = bytes.indexOf(name ?? ""); at >= 0; at = bytes.indexOf(name ?? "", at)) markup?.copy(bytes, at);
  const file = join(directory, "<img src=x onerror=alert(1)>.pcap");
  writeFileSync(file, bytes);
  const page = await openFile(DROP_PAGE);
  await drop(page, [file]);
  await expect(page.getByText("slides\\<b onclick=1>x").first()).toBeAttached();
  await expect(page.getByText(basename(file)).first()).toBeAttached();
  await expect(page.locator("img, [onclick]")).toHaveCount(0);
});

test("an unknown file is refused with the words of the command line", async ({ openFile }) => {
  const file = join(directory, "<img src=x onerror=alert(1)>.txt");
  writeFileSync(file, "hello, hello, hello");
  const page = await openFile(DROP_PAGE);
  await drop(page, [file]);
  await expect(page.locator(".failure")).toHaveText(refusal([file]) ?? "");
  await expect(page.locator("img")).toHaveCount(0);
  // Another try, without loading the page again.
  await drop(page, [demo]);
  await expect(page.locator(".answer .headline")).toContainText("Server");
});

test("an analysis is cancelled", async ({ openFile }) => {
  const file = join(directory, "long.pcap");
  const whole = execFileSync("zstd", ["-qdc", demo], { maxBuffer: 1 << 30 });
  // Repeated packets are out of order, so the file is read twice.
  writeFileSync(file, Buffer.concat([whole, ...Array.from({ length: 60 }, () => whole.subarray(24))]));
  const page = await openFile(DROP_PAGE);
  await page.locator("#files").setInputFiles(file);
  await page.getByRole("button", { name: "Cancel" }).click();
  await expect(page.locator(".zone")).toBeVisible();
});

test("the page has the licences of its crates and its other libraries", async ({ openFile }) => {
  const page = await openFile(DROP_PAGE);
  await page.getByText("Third-party licences").click();
  const notices = await page.locator("footer pre").innerText();
  expect(notices).toMatch(/^d3-scale [\d.]+ \(ISC\)$/m);
  expect(notices).toMatch(/^ {2}zstd-sys [^ ]+: BSD-3-Clause$/m);
  expect(notices).toContain("Redistributions in binary form must reproduce the above copyright");
});

test("the policy of the page forbids every connection", async ({ openFile }) => {
  const page = await openFile(DROP_PAGE, { mayComplain: /Content Security Policy|Connecting to|Fetch API/ });
  const policy = await page.locator("meta[http-equiv=Content-Security-Policy]").getAttribute("content");
  expect(policy).toMatch(/^default-src 'none'; script-src 'sha256-[^ ]+' 'wasm-unsafe-eval'; worker-src blob:;/);
  const fails = await page.evaluate(async () => {
    const tries = [fetch("https://example.com/"), fetch("data:,x")];
    const results = await Promise.allSettled(tries);
    return results.map(({ status }) => status);
  });
  expect(fails).toEqual(["rejected", "rejected"]);
});
