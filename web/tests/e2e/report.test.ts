// The page of a report in Chromium: that it says what the document says.
import { readFileSync } from "node:fs";
import type { Locator, Page } from "@playwright/test";
import type { Answer, Cause } from "../../src/types/report";
import { cause } from "../documents/cause";
import { sides } from "../documents/sides";
import { overlapping, simulate } from "../documents/simulate";
import { expect, heatMapCounts, test } from "./page";

const report = simulate();

/** The report with another answer. */
const answered = (answer: Partial<Answer>) => ({ ...report, answer: { ...report.answer, ...answer } });

/** The part of the page with this table. */
const tableOf = (page: Page, caption: string) =>
  page.locator(".table").filter({ has: page.getByRole("table", { name: caption, exact: true }) });

/** The texts of a column, as far as its rows are in the document. */
async function column(table: Locator, title: string): Promise<string[]> {
  const titles = await table.locator("thead th").allInnerTexts();
  const at = titles.findIndex((text) => text.replace(/ [↑↓]$/, "") === title);
  expect(at, `${title} among ${titles}`).toBeGreaterThanOrEqual(0);
  const cells = await table.locator(`tbody tr[aria-rowindex] td:nth-child(${at + 1})`).allInnerTexts();
  return cells.map((text) => text.replaceAll("\u00a0", " "));
}

test("the first screen names the culprit and what supports it", async ({ open }) => {
  const page = await open(report);
  await expect(page).toHaveTitle("A report");
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("SMB response times");
  const { headline, evidence } = report.answer;
  await expect(page.locator(".answer .headline")).toHaveText(headline);
  await expect(page.locator(".answer .headline .culprit")).toHaveText("Server");
  await expect(page.locator(".answer > ul > li")).toHaveText(evidence);
  const tiles = page.locator(".tiles");
  await expect(tiles).toContainText("20,000");
  const box = await page.locator(".answer").boundingBox();
  expect((box?.y ?? 0) + (box?.height ?? 0)).toBeLessThan(900);
});

test("the SMB1 notice is at the top of the page, if SMB1 is in use", async ({ open }) => {
  const sentence = "SMB1 in use: 10.20.1.7 (LAB\\dave) on share data of 10.20.0.1:445, 1 of 12 connections";
  const smb1 = { connections: 1, clients: ["10.20.1.7"], servers: ["10.20.0.1:445"], users: [], shares: [], sentence };
  const page = await open({ ...report, smb1 });
  await expect(page.locator(".head > h1 + .smb1")).toHaveText(sentence);
  await open(report);
  await expect(page.locator(".smb1")).toHaveCount(0);
});

test("what both sides offered is there with its outcome, for all and for each connection", async ({ open }) => {
  const page = await open(report);
  const row = page.locator("#negotiation tr").filter({ hasText: "Multichannel" });
  await expect(row).toHaveText(/Multichannel\s*no\s*yes\s*not available: the client does not offer it/);
  await expect(page.locator("#negotiation")).toContainText("was not captured, so the offered features are unknown");
  await tableOf(page, "Connections").locator("tbody button.link").first().click();
  await expect(page.getByRole("dialog").getByRole("table", { name: "Offered features" })).toBeVisible();
});

test("repeated reads are listed with their files", async ({ open }) => {
  const page = await open(report);
  await expect(tableOf(page, "Repeated reads")).toContainText("settings.ini");
  await expect(page.locator("#caching")).toContainText("RWH lease");
});

test("what to look at next can be pasted", async ({ open, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const page = await open(report);
  await expect(page.locator(".next code")).toHaveText(report.answer.next.map(({ command }) => command));
  await page.locator(".next").getByRole("button").last().click();
  await expect(page.locator(".next").getByRole("button").last()).toHaveText("Copied");
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(report.answer.next[1]?.command);
  // It is above the fold.
  const box = await page.locator(".next").boundingBox();
  expect((box?.y ?? 0) + (box?.height ?? 0)).toBeLessThan(900);
  await open(answered({ next: [] }));
  await expect(page.locator(".next")).toHaveCount(0);
});

test("the parts of the time are as wide as their shares", async ({ open }) => {
  const shared = { ...cause, subject: { ...cause.subject, clients: 12 } };
  const page = await open(answered({ causes: [shared] }));
  const split = report.time_split;
  const bar = page.locator(".head .split-bar").first();
  const whole = (await bar.boundingBox())?.width ?? 0;
  const client = (await bar.locator(".part-think").boundingBox())?.width ?? 0;
  // Segments have gaps of a pixel.
  expect(client / whole).toBeCloseTo(split.think_ns / split.elapsed_ns, 1);
  const row = page
    .locator(".legend-table tr")
    .filter({ has: page.getByRole("rowheader", { name: "Client", exact: true }) });
  await expect(row).toContainText(`${((100 * split.think_ns) / split.elapsed_ns).toFixed(1)}%`);
});

test("the heat map has a cell for every interval and bucket with commands", async ({ open }) => {
  const page = await open(report);
  const paths = await page
    .locator("#time .heat path")
    .evaluateAll((found) => found.map((path) => path.getAttribute("d") ?? ""));
  const drawn = paths.reduce((sum, d) => sum + (d.match(/M/g)?.length ?? 0), 0);
  // At this width two buckets of 10 % share a cell, and no two intervals do.
  const cells = new Set(
    report.heatmap.bins.flatMap((bin) => bin.counts.map(([bucket]) => `${bin.start_ns} ${Math.floor(bucket / 2)}`)),
  );
  expect(drawn).toBe(cells.size);
});

test("the slowest commands are points over the heat map, at their start and time", async ({ open }) => {
  const page = await open(report);
  const points = page.locator("#time .slow circle:has(title)");
  // 20,000 commands: 1% is more than the 100 that the document lists.
  await expect(points).toHaveCount(100);
  const [slowest] = [...report.slowest].sort((a, b) => b.response_time_ns - a.response_time_ns);
  await expect(points.first().locator("title")).toContainText(`${slowest?.command} `);
  const places = await points.evaluateAll((all) =>
    all.map((point) => ["cx", "cy"].map((name) => Number(point.getAttribute(name)))),
  );
  const [left, right] = [76, Number(await page.locator("#time .surface").first().getAttribute("width"))];
  const { first_ns: first, last_ns: last } = report.totals;
  const at = ((slowest?.request_first_ns ?? 0) - (first ?? 0)) / ((last ?? 0) - (first ?? 0));
  expect((places[0]?.[0] ?? 0) - left).toBeCloseTo(at * right, -1);
  // Slower is higher.
  const heights = places.map(([, y]) => y ?? 0);
  expect(heights).toEqual([...heights].sort((a, b) => a - b));
  await expect(page.locator("#time .heat-legend")).toContainText("100\u00a0slowest commands");
  // Buttons do not cover the legend.
  const items = await page
    .locator("#time .heat-legend .item")
    .evaluateAll((all) => all.map((item) => item.getBoundingClientRect().right));
  const tools = await page.locator("#time .chart-tools").boundingBox();
  expect(Math.max(...items)).toBeLessThan(tools?.x ?? 0);
});

test("the numbers of the heat map add up to the commands", async ({ open }) => {
  const page = await open(report);
  const counts = await heatMapCounts(page);
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(report.totals.headline.timed);
});

test("a part of the time can be looked at by mouse and by keyboard", async ({ open }) => {
  const page = await open(report);
  const chart = page.locator("#time svg.chart").first();
  await chart.scrollIntoViewIfNeeded();
  const box = await chart.boundingBox();
  if (!box) throw new Error("no chart");
  const all = page.getByRole("button", { name: "Show all" });
  await expect(all).toBeDisabled();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 150);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.7, box.y + 150, { steps: 4 });
  await page.mouse.up();
  await expect(all).toBeEnabled();
  await all.click();
  await expect(all).toBeDisabled();
  await chart.focus();
  await page.keyboard.press("+");
  await expect(all).toBeEnabled();
  await page.keyboard.press("ArrowRight");
  await expect(page.locator("#time .readout").first()).toContainText(/commands? started|nothing outstanding/);
  await expect(page.locator("#time .timed .cursor line")).toHaveCount(1);
  await page.keyboard.press("Escape");
  await expect(all).toBeDisabled();
});

test("the zoomed period filters timed tables, and the others say that they ignore it", async ({ open }) => {
  const page = await open(report);
  const chart = page.locator("#time svg.chart").first();
  await chart.focus();
  for (const key of ["+", "+", "+"]) await page.keyboard.press(key);
  const chip = page.locator(".bar .chip.zoom");
  await expect(chip).toHaveText(/^(\d+\smin\s)?[\d.]+\ss – (\d+\smin\s)?[\d.]+\ss\s+×$/);
  // The middle eighth of the time, in whole intervals, and those that began in it.
  const { width_ns: width, bins } = report.heatmap;
  const [first, last] = [bins[0]?.start_ns ?? 0, (bins.at(-1)?.start_ns ?? 0) + width];
  const within = (at: number, slack: number) => Math.abs(at - (first + last) / 2) < (last - first) / 16 + slack;
  const rows = await tableOf(page, "Slowest commands").locator(".table-status").innerText();
  const shown = Number(/^(\d+) of 100.rows in /.exec(rows)?.[1]);
  const count = (slack: number) => report.slowest.filter((slow) => within(slow.request_first_ns, slack)).length;
  expect(shown).toBeGreaterThanOrEqual(count(-2 * width));
  expect(shown).toBeLessThanOrEqual(count(2 * width));
  expect(shown).toBeLessThan(100);
  await expect(tableOf(page, "Connections").locator(".table-status")).toContainText(/ of \d+.rows in /);
  // The readout covers the same period.
  await expect(page.locator("#time .readout").first()).toContainText(
    /UTC in intervals of .*\scommands started, median/,
  );
  const files = tableOf(page, "Files");
  await expect(files).toHaveCSS("opacity", "0.5");
  expect(
    await files.locator(".table-tools").evaluate((tools) => getComputedStyle(tools, "::before").content),
  ).toContain("not filtered");
  await chip.click();
  await expect(chip).toBeHidden();
  await expect(files).toHaveCSS("opacity", "1");
  await expect(tableOf(page, "Slowest commands").locator(".table-status")).toHaveText("100\u00a0rows");
  await expect(page.getByRole("button", { name: "Show all" })).toBeDisabled();
});

test("a client, share or file filters the page, the address keeps it, and the chip removes it", async ({ open }) => {
  const other: Cause = { ...cause, subject: { ...cause.subject, client: "10.20.0.12", share: "office", path: null } };
  const own: Cause = { ...other, subject: { ...other.subject, client: "10.20.0.13" } };
  const page = await open(answered({ causes: [other, own] }));
  // Positions are compared below, so nothing may still be scrolling.
  await page.emulateMedia({ reducedMotion: "reduce" });
  const chip = page.locator(".bar .chip.only");
  const clients = tableOf(page, "Clients");
  await expect(chip).toBeHidden();
  // By keyboard: the button keeps the focus and its place.
  const button = clients.getByRole("button", { name: "10.20.0.13", exact: true });
  await button.focus();
  const before = (await button.boundingBox())?.y;
  await page.keyboard.press("Enter");
  await expect(chip).toHaveText("Only client 10.20.0.13×");
  await expect(button).toBeFocused();
  expect(Math.abs(((await button.boundingBox())?.y ?? 0) - (before ?? 0))).toBeLessThan(3);
  await expect(clients.locator("tbody tr")).toHaveCount(1);
  const entity = report.clients.find(({ client }) => client === "10.20.0.13");
  const panel = page.locator(".selected");
  await expect(panel.getByRole("heading")).toHaveText("Only client 10.20.0.13");
  await expect(panel.locator(".tile").first()).toContainText(entity?.count.toLocaleString("en") ?? "?");
  await expect(panel.locator("code")).toContainText("smbscope analyze --filter 'client == 10.20.0.13' -o ");
  // Rows and points of others are gone, and what has no figures for a client is hidden with its link.
  const slow = report.slowest.filter(({ client }) => client === "10.20.0.13").length;
  expect(slow).toBeGreaterThan(0);
  await expect(tableOf(page, "Slowest commands").locator(".table-status")).toHaveText(
    `${slow} of 100\u00a0rows for client 10.20.0.13`,
  );
  await expect(page.locator("#time .slow circle:has(title)")).toHaveCount(slow);
  await expect(page.locator("#time .heat-legend")).toContainText("of client 10.20.0.13");
  await expect(page.locator(".causes > li:visible")).toHaveCount(1);
  for (const section of ["#groups", "#commands", "#quality", ".head > .tiles", ".answer .lost"]) {
    await expect(page.locator(section), section).toBeHidden();
  }
  await expect(page.locator(".whole-note")).toBeVisible();
  const links = page.getByRole("navigation").getByRole("link");
  await expect(links.filter({ hasText: "Groups", visible: true })).toHaveCount(0);
  await expect(panel).toContainText("Command groups, Commands");
  // Links within the page and a reload keep it.
  await links.filter({ hasText: "Slowest" }).click();
  expect(new URL(page.url()).hash).toBe("#slowest&client=10.20.0.13");
  await expect(page.locator("#slowest")).toBeInViewport();
  await page.reload();
  await expect(chip).toHaveText("Only client 10.20.0.13×");
  await expect(page.locator("#slowest")).toBeInViewport();
  // Another selection replaces it, and the way back returns to it.
  const path = report.files[0]?.path ?? "?";
  const share = report.files[0]?.share ?? "?";
  await page.locator("#time .slow circle:has(title)").first().click();
  await page
    .getByRole("dialog")
    .getByTitle(/^Show only share/)
    .click();
  await expect(chip).toHaveText(/^Only share /);
  await expect(page.getByRole("dialog")).toHaveCount(0);
  await page.goBack();
  await expect(chip).toHaveText("Only client 10.20.0.13×");
  await chip.press("Enter");
  await expect(chip).toBeHidden();
  expect(new URL(page.url()).hash).toBe("");
  await expect(page.locator("#groups")).toBeVisible();
  await expect(page.locator(".causes > li:visible")).toHaveCount(2);
  await expect(page.locator("#time .slow circle:has(title)")).toHaveCount(100);
  await tableOf(page, "Files").getByTitle(`Show only file ${share}: ${path}`).click();
  await expect(tableOf(page, "Files").locator("tbody tr")).toHaveCount(1);
  await expect(tableOf(page, "Clients")).toBeHidden();
  await expect(page.locator(".selected")).toContainText("path == ");
  expect(await page.locator("body").innerText()).not.toMatch(/\b(NaN|undefined|null)\b/);
});

test("the column that sorts and the last one are in sight, and the first one stays", async ({ open, page }) => {
  const columns = async (width: number) => {
    await page.setViewportSize({ width, height: 900 });
    return page.locator(".scroller").evaluateAll((all) =>
      all.map((scroller) => {
        const place = scroller.getBoundingClientRect();
        const seen = (cell: Element | null) => {
          const { left, right } = cell?.getBoundingClientRect() ?? place;
          return left >= place.left - 1 && right <= place.right + 1;
        };
        const sorts = scroller.querySelector('[aria-sort="descending"], [aria-sort="ascending"]');
        return {
          name: scroller.getAttribute("aria-label"),
          sorts: seen(sorts),
          last: seen(scroller.querySelector("th:last-child")),
        };
      }),
    );
  };
  await open(report);
  for (const table of await columns(1440)) expect(table).toEqual({ ...table, sorts: true, last: true });
  for (const table of await columns(390)) expect(table).toEqual({ ...table, sorts: true });
  const scroller = tableOf(page, "Files").locator(".scroller");
  const cell = scroller.locator("tbody td").first();
  const before = await cell.boundingBox();
  await scroller.evaluate((element) => element.scrollBy(200, 0));
  // The first scroll redraws the rows, which must not happen between two measurements.
  await expect(scroller.locator("..")).toHaveClass(/moved/);
  expect((await cell.boundingBox())?.x).toBe(before?.x);
  // A long path is truncated at the start, and its tooltip has all of it.
  const ends = await cell.evaluate((cell) => {
    const [outer, inner] = [cell, cell.querySelector("bdi")].map((element) => element?.getBoundingClientRect());
    return { cut: (outer?.left ?? 0) - (inner?.left ?? 0), end: (outer?.right ?? 0) - (inner?.right ?? 0) };
  });
  expect(ends.cut).toBeGreaterThan(0);
  expect(ends.end).toBeGreaterThanOrEqual(0);
  await expect(cell).toHaveAttribute("title", await cell.innerText());
});

test("the distribution has the points of the document", async ({ open }) => {
  const page = await open(report);
  const read = report.groups.find((group) => group.group === "Read");
  const d = await page.locator('#groups [data-series="Read"] path').getAttribute("d");
  const points = (d ?? "")
    .slice(1)
    .split("L")
    .map((pair) => pair.split(",").map(Number));
  expect(points.length).toBe(read?.cumulative.length);
  // The axis is logarithmic: equal factors are equal distances.
  const [first, middle, last] = [0, 60, 127].map((i) => ({ at: points[i] ?? [], is: read?.cumulative[i] ?? [1, 1] }));
  if (!first || !middle || !last) throw new Error("no points");
  const position = (Math.log(middle.is[0]) - Math.log(first.is[0])) / (Math.log(last.is[0]) - Math.log(first.is[0]));
  const drawn = ((middle.at[0] ?? 0) - (first.at[0] ?? 0)) / ((last.at[0] ?? 0) - (first.at[0] ?? 0));
  expect(drawn).toBeCloseTo(position, 2);
  // Upwards the share that took longer falls by a tenth each time: 99 % is as far from 90 % as 99.9 % from 99 %.
  const marks = await page.locator("#groups .axis.y text").evaluateAll((all) => all.map((text) => text.textContent));
  expect(marks.slice(0, 5)).toEqual(["0%", "50%", "90%", "99%", "99.9%"]);
  const heights = await page
    .locator("#groups .axis.y text")
    .evaluateAll((all) => all.map((text) => Number(text.getAttribute("y"))));
  const [zero, , ninety, two, three] = heights as [number, number, number, number, number];
  expect(Math.abs(zero - ninety - (ninety - two))).toBeLessThan(2);
  expect(Math.abs(ninety - two - (two - three))).toBeLessThan(2);
  const tail = read?.cumulative.findIndex(([, share]) => share >= 0.98) ?? -1;
  const nines = -Math.log10(1 - (read?.cumulative[tail]?.[1] ?? 0));
  expect(Math.abs((points[tail]?.[1] ?? 0) - (zero - 4 - nines * (zero - ninety)))).toBeLessThan(2);
  await page
    .locator("#groups")
    .getByRole("group", { name: "Lines shown" })
    .getByRole("button", { name: "Read" })
    .click();
  await expect(page.locator('#groups [data-series="Read"]')).toHaveCount(0);
});

test("the load curve is at the means of the document", async ({ open }) => {
  const page = await open(overlapping(report));
  await page.locator("#time summary").last().click();
  const rows = page.locator("#time .numbers").last().locator("tbody tr");
  const levels = report.concurrency.filter((entry) => entry.commands >= 20);
  await expect(rows).toHaveCount(levels.length);
  await expect(page.locator('#time [data-series="Mean"] circle')).toHaveCount(levels.length);
  const heights = await page
    .locator('#time [data-series="Mean"] circle')
    .evaluateAll((dots) => dots.map((dot) => Number(dot.getAttribute("cy"))));
  const means = levels.map((entry) => entry.response_time.mean ?? 0);
  // Higher is slower: dots and means have the same order.
  const order = (values: number[]) => values.map((_, i) => i).sort((a, b) => (values[a] ?? 0) - (values[b] ?? 0));
  expect(order(heights.map((y) => -y))).toEqual(order(means));
});

test("tables sort by click and by keyboard", async ({ open }) => {
  const page = await open(report);
  const files = tableOf(page, "Files");
  const heading = files.getByRole("columnheader", { name: "Commands" });
  await expect(files.getByRole("columnheader", { name: "Total wait" })).toHaveAttribute("aria-sort", "descending");
  await heading.getByRole("button").click();
  await expect(heading).toHaveAttribute("aria-sort", "descending");
  const most = [...report.files].map((file) => file.count).sort((a, b) => b - a);
  expect((await column(files, "Commands")).slice(0, 10)).toEqual(
    most.slice(0, 10).map((count) => count.toLocaleString("en")),
  );
  await page.keyboard.press("Enter");
  await expect(heading).toHaveAttribute("aria-sort", "ascending");
  expect((await column(files, "Commands")).slice(0, 10)).toEqual(
    most
      .slice(-10)
      .reverse()
      .map((count) => count.toLocaleString("en")),
  );
});

test("tables filter, copy and save the visible rows", async ({ open, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const page = await open(report);
  const files = tableOf(page, "Files");
  await files.getByRole("searchbox").fill("ÜBERSICHT 17");
  const wanted = report.files.filter((file) => file.path.includes("17"));
  await expect(files.locator(".table-status")).toHaveText(`${wanted.length} of 400\u00a0rows`);
  expect((await column(files, "Path")).sort()).toEqual(wanted.map((file) => file.path).sort());
  await files.getByRole("button", { name: "Copy Files" }).click();
  await expect(files.getByRole("button", { name: "Copy Files" })).toHaveText("Copied");
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  expect(copied.trim().split(/\r?\n/).length).toBe(wanted.length + 1);
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    files.getByRole("button", { name: "Save Files as CSV" }).click(),
  ]);
  expect(download.suggestedFilename()).toBe("smbscope-files.csv");
  const saved = readFileSync(await download.path(), "utf8")
    .trim()
    .split("\r\n");
  expect(saved.length).toBe(wanted.length + 1);
  const slowest = Math.max(...wanted.map((file) => file.response_time.max ?? 0));
  expect(saved.some((line) => line.split(",").includes(String(slowest)))).toBe(true);
});

test("subcommands unfold beneath their command", async ({ open }) => {
  const page = await open(report);
  const commands = tableOf(page, "Commands");
  const button = commands.getByRole("button", { name: "QUERY_INFO" });
  await expect(button).toHaveAttribute("aria-expanded", "false");
  await button.focus();
  await page.keyboard.press("Enter");
  await expect(commands.getByRole("button", { name: "QUERY_INFO" })).toHaveAttribute("aria-expanded", "true");
  await expect(commands.getByRole("button", { name: "QUERY_INFO" })).toBeFocused();
  await expect(commands.locator("tr.depth-1")).toHaveCount(3);
});

test("a connection shows all that is known of it, and gives the focus back", async ({ open }) => {
  const page = await open(report);
  const connection = [...report.connections].sort((a, b) => b.exchanges - a.exchanges)[0];
  if (!connection) throw new Error("no connection");
  const name = `${connection.client}:${connection.client_port}`;
  const opener = tableOf(page, "Connections").getByRole("button", { name });
  await opener.click();
  const dialog = page.getByRole("dialog");
  await expect(dialog).toContainText(connection.dialect ?? "");
  await expect(dialog).toContainText(connection.exchanges.toLocaleString("en"));
  await expect(dialog.locator(".split-bar").first()).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(dialog).toHaveCount(0);
  await expect(opener).toBeFocused();
});

test("the slowest commands come with a filter for Wireshark", async ({ open, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const page = await open(report);
  const slowest = report.slowest[0];
  if (!slowest) throw new Error("no exchange");
  await tableOf(page, "Slowest commands")
    .getByRole("button", { name: /copy the filter/ })
    .first()
    .click();
  const packets = [
    slowest.request_first_packet,
    slowest.request_last_packet,
    slowest.response_first_packet,
    slowest.response_last_packet,
  ];
  await expect
    .poll(() => page.evaluate(() => navigator.clipboard.readText()))
    .toBe(`frame.number in {${[...new Set(packets)].join(", ")}}`);
});

test("the quality names every counter, those at zero folded away", async ({ open }) => {
  const page = await open(report);
  const counters = Object.entries(report.quality).filter(([, value]) => typeof value === "number");
  const zero = counters.filter(([, value]) => value === 0).length;
  await expect(page.locator("#quality .counters tbody tr")).toHaveCount(counters.length - zero);
  await expect(page.locator("#quality summary")).toHaveText(`${zero} counters at zero`);
});

const headline = `Application: ${cause.sentence} ${cause.cost}`;

test("what to do stands below the headline, and the card does not repeat either", async ({ open, context }) => {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const page = await open(
    answered({
      culprit: "application",
      headline,
      states_first_cause: true,
      causes: [cause],
      caveats: ["A caveat."],
    }),
  );
  await expect(page.locator(".answer .headline")).toHaveText(headline);
  await expect(page.locator(".answer .headline + .advice")).toHaveText(`What to do: ${cause.advice}`);
  await expect(page.locator(".answer .trust")).toHaveText(`A caveat. ${report.quality.sentence}`);
  const card = page.locator(".causes > li");
  await expect(card).toContainText("The same file opened repeatedly");
  await expect(card.locator(".cost")).toHaveText("9.80 s lost88% of the active time");
  await expect(card).toContainText("9.80 s of 11.1 s of active time; at least 8.70 s, at most 9.90 s");
  await expect(card).toContainText("high: seen in the packets");
  await expect(card).toContainText("Bound by round trips");
  await expect(card).toContainText("17 of fileserver-01.pcapng.zst");
  await expect(card).not.toContainText(cause.sentence);
  await expect(card).not.toContainText(cause.advice);
  await card.getByRole("button", { name: /^Copy/ }).click();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(cause.wireshark);
});

test("the answer, the first cause and its lost time are above the fold, and the navigation has the causes", async ({
  open,
  page,
}) => {
  const half: Cause = { ...cause, title: "Another", lost_ns: { low: 4e9, best: 4_900_000_000, high: 5e9 } };
  const causes = [cause, half, { ...half, title: "Without a time", lost_ns: null }];
  for (const [width, height] of [
    [1440, 900],
    [390, 844],
  ] as const) {
    await page.setViewportSize({ width, height });
    await open(answered({ culprit: "application", headline, states_first_cause: true, causes }));
    const first = await page.locator(".answer .lost li").first().boundingBox();
    expect((first?.y ?? 0) + (first?.height ?? height), `${width} pixels`).toBeLessThan(height);
    // Bars are on one scale: the light part ends at the upper bound.
    const ends = await page
      .locator(".answer .lost-bar")
      .evaluateAll((bars) => bars.map((bar) => Number((bar as HTMLElement).style.getPropertyValue("--high"))));
    expect(ends.map((end) => Number(end.toFixed(3)))).toEqual([0.892, 0.45]);
  }
  await expect(page.locator(".lost .value").first()).toHaveText("9.80 s of 11.1 s (88%)");
  await expect(page.getByRole("navigation").getByRole("link").first()).toHaveText("Causes");
  await page.locator(".lost").getByRole("link", { name: "Another" }).click();
  await expect(page.locator("#cause-2")).toBeInViewport();
});

test("every segment of the time split is named in its bar or in the legend, on a desktop and on a phone", async ({
  open,
  page,
}) => {
  const shared = { ...cause, subject: { ...cause.subject, clients: 12 } };
  for (const width of [1440, 390]) {
    await page.setViewportSize({ width, height: 844 });
    await open(answered({ causes: [shared] }));
    const evidence = page.locator(".answer .evidence");
    const listed = await evidence.locator(".legend .item:visible").allInnerTexts();
    const segments = await evidence.locator(".segment").evaluateAll((all) =>
      all.map((segment) => {
        const text = segment.querySelector<HTMLElement>(".in-bar");
        const whole = text !== null && text.offsetWidth > 0 && text.scrollWidth <= text.offsetWidth;
        const share = Number.parseFloat((segment as HTMLElement).style.flexBasis);
        return { name: /^[^:]+/.exec(segment.getAttribute("title") ?? "")?.[0], inBar: whole, share };
      }),
    );
    expect(segments.length).toBeGreaterThan(4);
    // Narrower segments are not a pixel wide.
    for (const { name, inBar } of segments.filter(({ share }) => share > 0.1))
      expect(inBar || listed.includes(name ?? ""), `${name} at ${width}`).toBe(true);
  }
  for (const caption of ["Clients", "Connections", "Slowest commands"]) {
    await expect(tableOf(page, caption).locator(".legend")).toContainText("Server");
  }
});

test("a first cause that is not in the headline is named with its advice", async ({ open }) => {
  const page = await open(answered({ causes: [cause] }));
  await expect(page.locator(".answer .advice")).toHaveText(`What to do about “${cause.title}”: ${cause.advice}`);
  await expect(page.locator(".causes > li")).toContainText(`${cause.sentence} ${cause.cost}`);
});

test("further causes have their own advice, and from the fourth on they are folded", async ({ open, page }) => {
  const wide = { low: 870_000_000, best: 1_220_000_000, high: 1_570_000_000 };
  const other: Cause = { ...cause, title: "Another", advice: "Act.", lost_ns: wide, share: 0.11, cost: "" };
  const unknown: Cause = { ...other, title: "Without a time", lost_ns: null, share: null };
  await open(answered({ culprit: "application", headline, causes: [cause, other, unknown, other] }));
  const cards = page.locator(".causes > li");
  await expect(cards).toHaveCount(4);
  await expect(cards.nth(1).locator(".advice")).toHaveText("What to do: Act.");
  await expect(cards.nth(1).locator(".cost")).toContainText("1.22 s (870 ms to 1.57 s) lost");
  await expect(cards.nth(2).locator(".cost")).toHaveText("lost time unknown");
  await expect(cards.nth(3).locator(".advice")).toBeHidden();
  await cards.nth(3).locator("summary").click();
  await expect(cards.nth(3).locator(".advice")).toBeVisible();
});

test("folded causes and notes are open on paper", async ({ open, page }) => {
  await open(answered({ causes: [cause, cause, cause, cause], notes: [cause] }));
  await page.emulateMedia({ media: "print" });
  await expect(page.locator(".causes > li").nth(3).locator(".advice")).toBeVisible();
  await expect(page.locator(".notes .advice")).toBeVisible();
});

test("notes are separate from causes, and empty parts are hidden", async ({ open }) => {
  const page = await open(
    answered({ notes: [{ ...cause, lost_ns: null, share: null, cost: "" }], ruled_out: ["Loss."] }),
  );
  await expect(page.locator(".causes")).toHaveCount(0);
  await expect(page.locator(".answer .advice")).toHaveCount(0);
  await expect(page.locator(".notes summary")).toHaveText(`${cause.title}: ${cause.sentence}`);
  await expect(page.locator(".ruled-out li")).toHaveText("Loss.");
  await page.locator(".notes summary").click();
  await expect(page.locator(".notes .advice")).toBeVisible();
  await open(answered({ notes: [], ruled_out: [] }));
  await expect(page.locator(".notes, .ruled-out")).toHaveCount(0);
});

test("the split of all clients is not shown as the time of one", async ({ open }) => {
  const page = await open(answered({ culprit: "application", headline, causes: [cause] }));
  await expect(page.locator(".answer .split-bar")).toHaveCount(0);
  await open(answered({ causes: [{ ...cause, subject: { ...cause.subject, clients: 12 } }] }));
  await expect(page.locator(".answer .split-bar").first()).toBeVisible();
});

test("the commands of an episode are bars that can be looked at more closely", async ({ open }) => {
  const waterfall = report.slowest.slice(0, 50);
  const page = await open({ ...report, waterfall });
  const chart = page.locator("#episodes svg.chart");
  await expect(chart.locator(".command-bar")).toHaveCount(50);
  await chart.locator(".command-bar").first().hover();
  await expect(page.locator("#episodes .readout")).toContainText("after the first command, packets");
  await chart.focus();
  await page.keyboard.press("+");
  await page.keyboard.press("+");
  await expect(page.locator("#episodes").getByRole("button", { name: "Show all" })).toBeVisible();
  expect(await chart.locator(".command-bar").count()).toBeLessThan(50);
  await page.locator("#episodes").getByRole("button", { name: "Show all" }).click();
  await expect(chart.locator(".command-bar")).toHaveCount(50);
});

test("an episode opens with its commands on a time axis, and each of them with its details", async ({ open }) => {
  const page = await open(report);
  const [, episode] = report.episodes;
  if (!episode) throw new Error("no episode");
  const opener = tableOf(page, "Episodes").getByTitle("Commands of episode 2");
  await opener.focus();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog", { name: "Episode 2" });
  // More than the slowest commands of the capture.
  const { commands, longest } = episode;
  expect(longest.length).toBeGreaterThan(report.slowest.filter(({ client }) => client === episode.client).length);
  expect(longest.length).toBe(commands);
  await expect(dialog.locator(".command-bar")).toHaveCount(commands);
  await expect(dialog.locator("dd").last()).toHaveText(String(commands));
  await expect(dialog.locator("code")).toHaveCount(0);
  await dialog.locator(".command-bar").first().click();
  const command = page.getByRole("dialog").last();
  await expect(command).toContainText("Wireshark filter");
  // Escape closes one after the other, also from the chart, and the focus returns.
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toHaveCount(1);
  await dialog.locator("svg.chart").focus();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toHaveCount(0);
  await expect(opener).toBeFocused();
});

test("an episode with more commands than the page has says how many are not drawn, and how to see them", async ({
  open,
}) => {
  const [first, second] = report.episodes;
  if (!first || !second) throw new Error("no episode");
  const large = { ...first, commands: 1_300, timed: 1_290, longest: first.longest.slice(0, 12) };
  const page = await open({ ...report, episodes: [large, { ...second, longest: [] }] });
  await tableOf(page, "Episodes").getByTitle("Commands of episode 1").click();
  const dialog = page.getByRole("dialog");
  await expect(dialog.locator("dd").last()).toHaveText(
    "1,300; the chart shows the 12 longest, not the other 1,278; 10 without a response time",
  );
  await expect(dialog.locator("code")).toHaveText(/^smbscope analyze --episode 1 -o episode-1.html fileserver-01/);
  await dialog.getByRole("button", { name: "Close" }).click();
  await tableOf(page, "Episodes").getByTitle("Commands of episode 2").click();
  await expect(dialog).toContainText("The commands of this episode are not in the page.");
  await expect(dialog.locator("code")).toHaveText(/^smbscope analyze --episode 2/);
});

test("captures of the same traffic at two points show where the time passes", async ({ open }) => {
  const page = await open({ ...report, sides: sides() });
  await expect(page.getByRole("navigation").getByRole("link", { name: "Capture points" })).toHaveAttribute(
    "href",
    "#sides",
  );
  const section = page.locator("#sides");
  // 16.975 ms between, 4 ms beyond and 2 ms of transfer, on average over reads and opens.
  await expect(section.locator(".chain li")).toHaveText([
    "client",
    /^17\.0.msbetween \(74%\), 12.segments lost$/,
    "server",
    /^4\.00.msbeyond server \(17%\)$/,
  ]);
  await expect(section).toContainText(/Transfer of data: 2\.00.ms \(8\.7%\)/);
  // All commands, reads and opens, but not the expected waits.
  const bars = section.locator(".side-bars li");
  await expect(bars).toHaveText([/^All/, /^Read.*17\.0.ms between3\.00.ms beyond$/, /^Open\/Close/]);
  const widths = await bars
    .nth(2)
    .locator(".segment")
    .evaluateAll((all) => all.map((part) => part.getBoundingClientRect().width));
  expect((widths[2] ?? 0) / (widths[0] ?? 1)).toBeCloseTo(5 / 16, 1);
  await expect(section).toContainText(
    /client is 3.h.00.min ahead \(±.8\.00.ms\), server gains 80 ppm; 1.step corrected/,
  );
  const table = tableOf(page, "From client to server");
  expect(await column(table, "Group")).toEqual(["Read", "Open/Close", "All"]);
  expect(await column(table, "Beyond")).toEqual(["3.00 ms", "5.00 ms", "4.00 ms"]);
  expect(await column(table, "Commands")).toEqual(["40", "40", "80"]);
  const row = (name: string) => section.getByRole("row").filter({ hasText: name });
  await expect(row("Shortest time")).toHaveText(/^Shortest time0 to 16\.0.ms0 to 16\.0.ms$/);
  await expect(row("Queue, longest")).toHaveText(/^Queue, longest400.µs2\.40.ms$/);
  await expect(row("Lost segments")).toHaveText("Lost segments12 (1.0%)0");
  await open(report);
  await expect(page.locator("#sides")).toHaveCount(0);
});

test("each pair of neighbouring points has its figures, and the devices between them", async ({ open, page }) => {
  await open({ ...report, sides: sides(["client", "firewall", "server"]) });
  const parts = page.locator("#sides > .part");
  await expect(parts.locator("h3")).toHaveText(["From client to firewall", "From firewall to server"]);
  await expect(parts.first()).toContainText("none found: addresses and ports are the same");
  await expect(parts.last()).toContainText(/ends TCP on 2 of 3.connections.*changes addresses or ports of all 3/);
  await expect(parts.last()).toContainText(/4.commands at firewall/);
  await expect(parts.last()).toContainText("Lost segmentsunknownunknown");
  await expect(page.locator("#sides .device")).toHaveText("device ends TCP");
  // The time beyond the firewall is not the server's.
  await expect(parts.first().locator(".part-server")).toHaveCount(0);
  await expect(parts.last().locator(".segment.part-server")).toHaveCount(3);
  // The chain is a picture in a line, and one down the page on a phone.
  const tops = () =>
    page.locator(".chain .point").evaluateAll((all) => all.map((point) => Math.round(point.getBoundingClientRect().y)));
  expect(new Set(await tops()).size).toBe(1);
  await page.setViewportSize({ width: 390, height: 844 });
  expect(new Set(await tops()).size).toBe(3);
  // A filter is about the other figures.
  await open({ ...report, filter: "command == READ", sides: sides() });
  await expect(page.locator("#sides .lead")).toContainText("The filter does not apply to this section.");
  // So is a selection, which hides what it can't be applied to.
  await page.goto(`${page.url()}#client=10.20.0.11`);
  await expect(page.locator("#sides")).toBeHidden();
});
