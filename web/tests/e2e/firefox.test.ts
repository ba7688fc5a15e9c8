// The page into which captures are dropped, in Firefox from a file, without a network. Debian's Firefox is driven by its
// own Marionette protocol: JSON over TCP, `length:[0, id, command, parameters]`.
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { appendFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { basename, delimiter, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { expect, test } from "@playwright/test";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const SMBSCOPE = process.env.SMBSCOPE ?? join(root, "target/release/smbscope");
const DROP_PAGE = process.env.SMBSCOPE_PAGE ?? join(root, "target/page.html");
const data = join(root, "tests/data");
/** Key of an element in answers (WebDriver, 12.1). */
const ELEMENT = "element-6066-11e4-a52e-4f735466cecf";

const FIREFOX = ["firefox-esr", "firefox"]
  .flatMap((name) => (process.env.PATH ?? "").split(delimiter).map((directory) => join(directory, name)))
  .find(existsSync);

test.skip(!existsSync(DROP_PAGE), "skipped: no page; make page builds it");

/** Skips a test without Firefox, which `make setup` installs. */
function needsFirefox(): void {
  if (FIREFOX !== undefined) return;
  const { SMBSCOPE_MISSING, SMBSCOPE_SKIPPED } = process.env;
  if (SMBSCOPE_MISSING === "fail") throw new Error("SMBSCOPE_MISSING=fail, and this is missing: Firefox");
  const note = "skipped: the page into which captures are dropped: firefox-esr is not installed\n";
  if (SMBSCOPE_SKIPPED) appendFileSync(SMBSCOPE_SKIPPED, note);
  test.skip(true, note);
}

class Firefox {
  private answers = new Map<number, (answer: { error: unknown; value: unknown }) => void>();
  private sent = 0;
  private received: Buffer = Buffer.alloc(0);

  private constructor(
    private readonly process: ChildProcess,
    private readonly socket: Socket,
    /** Folder for downloads. */
    readonly downloads: string,
  ) {
    socket.on("data", (bytes) => this.take(bytes));
  }

  /** Starts Firefox offline, with a new profile. */
  static async start(): Promise<Firefox> {
    const [profile, downloads] = ["profile", "downloads"].map((name) =>
      mkdtempSync(join(tmpdir(), `smbscope-${name}-`)),
    );
    const port = await freePort();
    const settings = {
      "marionette.port": port,
      "browser.download.dir": downloads,
      "browser.download.folderList": 2,
      "browser.shell.checkDefaultBrowser": false,
      "datareporting.policy.dataSubmissionEnabled": false,
      "network.manage-offline-status": false,
    };
    const lines = Object.entries(settings).map(
      ([name, value]) => `user_pref(${JSON.stringify(name)}, ${JSON.stringify(value)});`,
    );
    writeFileSync(join(profile ?? "", "user.js"), lines.join("\n"));
    const options = ["--headless", "--marionette", "--remote-allow-system-access", "--no-remote", "--offline"];
    const started = spawn(FIREFOX ?? "", [...options, "--profile", profile ?? ""], { stdio: "ignore" });
    const firefox = new Firefox(started, await connected(port), downloads ?? "");
    await firefox.ask("WebDriver:NewSession", { capabilities: {} });
    return firefox;
  }

  async ask(command: string, parameters: object = {}): Promise<unknown> {
    const id = ++this.sent;
    const text = JSON.stringify([0, id, command, parameters]);
    this.socket.write(`${Buffer.byteLength(text)}:${text}`);
    const { error, value } = await new Promise<{ error: unknown; value: unknown }>((resolve) =>
      this.answers.set(id, resolve),
    );
    if (error) throw new Error(`${command}: ${JSON.stringify(error)}`);
    return value;
  }

  /** Runs the body of an asynchronous function in the page, which calls its argument with the result. */
  async run(body: string): Promise<unknown> {
    const script = `(async function () { ${body} }).apply(null, arguments)`;
    const answer = await this.ask("WebDriver:ExecuteAsyncScript", { script, args: [] });
    return (answer as { value: unknown }).value;
  }

  async find(selector: string): Promise<string> {
    const answer = await this.ask("WebDriver:FindElement", { using: "css selector", value: selector });
    return (answer as { value: Record<string, string> }).value[ELEMENT] ?? "";
  }

  /** Saves an export, and returns it. */
  async exported(format: string): Promise<Buffer> {
    await this.ask("WebDriver:ElementClick", { id: await this.find(`.exports [data-format=${format}]`) });
    const saved = () => readdirSync(this.downloads).filter((name) => name.endsWith(`.${format}`));
    await expect.poll(saved, { timeout: 20_000 }).toHaveLength(1);
    // The file has its name before its content.
    const path = join(this.downloads, saved()[0] ?? "");
    await expect.poll(() => readFileSync(path).length).toBeGreaterThan(0);
    await expect.poll(() => readdirSync(this.downloads).some((name) => name.endsWith(".part"))).toBe(false);
    return readFileSync(path);
  }

  stop(): void {
    this.socket.destroy();
    this.process.kill();
  }

  /** Reads `length:[1, id, error, value]`. The first message only introduces the server. */
  private take(bytes: Buffer): void {
    this.received = Buffer.concat([this.received, bytes]);
    for (;;) {
      const colon = this.received.indexOf(":");
      const end = colon + 1 + Number(this.received.subarray(0, Math.max(colon, 0)));
      if (colon < 0 || this.received.length < end) return;
      const message = JSON.parse(String(this.received.subarray(colon + 1, end)));
      this.received = this.received.subarray(end);
      if (Array.isArray(message)) this.answers.get(message[1])?.({ error: message[2], value: message[3] });
    }
  }
}

/** Returns a TCP port that nothing uses. */
function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() => resolve(typeof address === "object" ? (address?.port ?? 0) : 0));
    });
  });
}

/** Connects to Firefox, which takes seconds to listen. */
async function connected(port: number): Promise<Socket> {
  for (let tries = 0; tries < 300; tries++) {
    const socket = await new Promise<Socket | null>((resolve) => {
      const socket = connect(port, "127.0.0.1");
      socket.once("connect", () => resolve(socket));
      socket.once("error", () => resolve(null));
    });
    if (socket) return socket;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`Firefox does not listen on port ${port}`);
}

test("Firefox analyses a capture offline, as the command line does, and the page can't connect", async () => {
  needsFirefox();
  test.setTimeout(120_000);
  const demo = "demo-slow-server.pcap.zst";
  const firefox = await Firefox.start();
  try {
    await firefox.ask("WebDriver:SetTimeouts", { implicit: 60_000, script: 60_000 });
    await firefox.ask("WebDriver:Navigate", { url: pathToFileURL(DROP_PAGE).href });
    await firefox.ask("WebDriver:ElementSendKeys", { id: await firefox.find("#files"), text: join(data, demo) });
    await firefox.find(".exports");
    const headline = await firefox.run("arguments[0](document.querySelector('.answer .headline').textContent)");
    expect(headline).toContain("Server");
    const out = join(mkdtempSync(join(tmpdir(), "smbscope-firefox-")), "report.json");
    execFileSync(SMBSCOPE, ["analyze", "--quiet", "-o", out, basename(demo)], { cwd: data });
    expect((await firefox.exported("json")).equals(readFileSync(out))).toBe(true);
    const refused = await firefox.run(`
      const refused = [];
      document.addEventListener("securitypolicyviolation", (event) => refused.push(event.effectiveDirective));
      const results = await Promise.allSettled([fetch("https://example.com/"), fetch("data:,x")]);
      while (refused.length < 2) await new Promise((resolve) => setTimeout(resolve, 50));
      arguments[0]([navigator.onLine, ...results.map((result) => result.status), ...refused]);`);
    expect(refused).toEqual([false, "rejected", "rejected", "connect-src", "connect-src"]);
  } finally {
    firefox.stop();
  }
});
