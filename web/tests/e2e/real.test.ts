// Pages that smbscope writes for the bundled captures, in Chromium.
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { perSecond, ratio } from "../../src/lib/format";
import type { SmbscopeComparisonDocument } from "../../src/types/compare";
import type { SmbscopeReportDocument } from "../../src/types/report";
import { expect, heatMapCounts, test } from "./page";

const root = fileURLToPath(new URL("../../../", import.meta.url));
const SMBSCOPE = process.env.SMBSCOPE ?? join(root, "target/release/smbscope");
const directory = mkdtempSync(join(tmpdir(), "smbscope-real-"));

let pages = 0;

/** Writes the report of a capture as a page. */
function written(capture: string, ...more: string[]): string {
  pages += 1;
  const path = join(directory, `${pages}.html`);
  execFileSync(
    SMBSCOPE,
    ["analyze", resolve("/", root, "tests/data", capture), "--format", "html", "-o", path, ...more],
    {
      cwd: root,
      stdio: ["ignore", "ignore", "ignore"],
    },
  );
  return path;
}

/** Text of a failed computation. */
const NONSENSE = /\b(NaN|undefined|Infinity|null|\[object)/;

for (const capture of ["demo-smb1-netbench.pcap.zst", "demo-smb311-office.pcap.zst"]) {
  test(`the page of ${capture} says what its document says`, async ({ openFile }) => {
    const page = await openFile(written(capture));
    const text = (await page.locator("#smbscope-data").textContent()) ?? "";
    const report = JSON.parse(text) as SmbscopeReportDocument;
    expect(report.schema).toBe("smbscope.report/1");
    await expect(page.locator(".answer .headline")).toHaveText(report.answer.headline);
    await expect(page.locator(".causes > li")).toHaveCount(report.answer.causes.length);
    await expect(page.locator(".notes > li")).toHaveCount(report.answer.notes.length);
    await expect(page.locator(".tiles .value").first()).toHaveText(report.totals.commands.toLocaleString("en"));
    // The text report has the same figures, as it writes them.
    const said = execFileSync(
      SMBSCOPE,
      ["analyze", "--full", "--quiet", "--width", "400", join("tests/data", capture)],
      {
        cwd: root,
        encoding: "utf8",
      },
    );
    const [, commands, median, p95] =
      /^([\d,]+) commands in .*Median ([\d.]+ \S+), p95 ([\d.]+ [^\s;,.]+)/m.exec(said) ?? [];
    expect([commands, median, p95]).not.toContain(undefined);
    for (const [tile, figure] of [
      ["Commands", `${commands}`],
      ["Commands", perSecond(report.totals.load.commands_per_second)],
      ["Median", `${median}`],
      ["p95", `${p95}`],
    ]) {
      await expect(
        page
          .locator(".tiles > *")
          .filter({ hasText: `${tile}` })
          .first(),
      ).toContainText(`${figure}`);
    }
    const groups = page.locator(".table").filter({ has: page.getByRole("table", { name: "Response times by group" }) });
    for (const group of report.groups.filter((group) => group.count > 0)) {
      const cell = page.getByText(group.group, { exact: true });
      const row = groups.locator("tbody tr").filter({ has: cell });
      await expect(row).toContainText(group.count.toLocaleString("en"));
    }
    // Every time of the heat map is in its numbers.
    const counts = await heatMapCounts(page);
    const began = report.heatmap.bins.flatMap((bin) => bin.counts).reduce((sum, [, count]) => sum + count, 0);
    expect(began).toBeGreaterThan(1_000);
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(began);
    const slowest = page.locator(".table").filter({ has: page.getByRole("table", { name: "Slowest commands" }) });
    await expect(slowest.locator('tbody tr[aria-rowindex="2"]')).toContainText(
      report.slowest[0]?.command.replace(/^SMB_COM_/, "") ?? "?",
    );
    await expect(page.locator("#quality .counters tbody tr").first()).toBeVisible();
    expect(await page.locator("body").innerText()).not.toMatch(NONSENSE);
  });
}

test("no capture makes a page that stumbles", async ({ openFile, page }) => {
  test.setTimeout(300_000);
  const captures = ["own", "damaged"].flatMap((kind) =>
    readdirSync(join(root, "tests/data", kind))
      .filter((name) => /\.pcap(ng)?(\.zst)?$/.test(name))
      .map((name) => `${kind}/${name}`),
  );
  expect(captures.length).toBeGreaterThan(50);
  for (const capture of captures) {
    await openFile(written(capture));
    await expect(page.locator("h1"), capture).toContainText("SMB response times");
    const text = await page.locator("body").innerText();
    expect(text, capture).not.toMatch(NONSENSE);
    for (const line of await page
      .locator("svg.chart path")
      .evaluateAll((all) => all.map((path) => path.getAttribute("d") ?? ""))) {
      expect(line, capture).not.toMatch(NONSENSE);
    }
  }
});

test("the page of a comparison says what its document says", async ({ openFile }) => {
  const path = join(directory, "comparison.html");
  const captures = ["own/smbclient_NT1.pcap.zst", "demo-smb311-office.pcap.zst"].map((name) =>
    join(root, "tests/data", name),
  );
  execFileSync(SMBSCOPE, [
    "compare",
    ...captures,
    "--name",
    "before",
    "--name",
    "after",
    "--format",
    "html",
    "-o",
    path,
  ]);
  const page = await openFile(path);
  const document = JSON.parse((await page.locator("#smbscope-data").textContent()) ?? "") as SmbscopeComparisonDocument;
  expect(document.columns.map((column) => column.name)).toEqual(["before", "after"]);
  const row = page.locator("#groups .scroller").first().locator('tbody tr[aria-rowindex="2"]');
  for (const cell of document.headline.cells) await expect(row).toContainText(cell?.count.toLocaleString("en") ?? "?");
  await expect(row).toContainText(ratio(document.headline.cells[1]?.ratios?.p95?.value));
  expect(await page.locator("body").innerText()).not.toMatch(NONSENSE);
});

test("slices and the filter are those that were asked for", async ({ openFile }) => {
  const path = written("demo-smb311-office.pcap.zst", "--by", "user", "--filter", "command == READ");
  const page = await openFile(path);
  const report = JSON.parse((await page.locator("#smbscope-data").textContent()) ?? "") as SmbscopeReportDocument;
  await expect(page.locator(".head .facts code")).toHaveText("command == READ");
  await expect(page.locator(".head .facts")).toContainText(`${report.matched?.exchanges} of`);
  const rows = page.locator("#slices tbody tr");
  await expect(rows).toHaveCount(report.slices?.entries.length ?? 0);
  await expect(rows.first()).toContainText(report.slices?.entries[0]?.key.user ?? "?");
});

test("what a name holds never becomes markup, from the command line to the page", async ({ openFile }) => {
  // A path is the one name that a file system lets us choose freely, and it goes the way that all names go.
  const evil = join(directory, "x<", "script><img src=x onerror=alert(1)><!--.pcap.zst");
  mkdirSync(join(directory, "x<"), { recursive: true });
  copyFileSync(join(root, "tests/data/own/smb1_mux.pcap.zst"), evil);
  const title = "</script><script>alert(2)</script>&lt;\u2028";
  const page = await openFile(written(evil, "--title", title));
  await expect(page.locator("h1")).toContainText("</script><script>alert(2)</script>&lt;");
  await expect(page.locator(".head .names")).toContainText("x</script><img src=x onerror=alert(1)><!--.pcap.zst");
  await expect(page.locator("img")).toHaveCount(0);
  await expect(page.locator("script")).toHaveCount(3);
});
