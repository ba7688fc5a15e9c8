// Requirements for every page: colours, print, size, hostile names, unknown documents and keyboard.

import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cause } from "../documents/cause";
import { comparison } from "../documents/comparison";
import { predictedUsers, prediction } from "../documents/prediction";
import { ramp } from "../documents/ramp";
import { sides } from "../documents/sides";
import { overlapping, simulate } from "../documents/simulate";
import { study } from "../documents/study";
import { embedded, expect, test } from "./page";

const report = simulate({ exchanges: 4_000 });

test("names that are markup, formulas or marks of direction stay text", async ({ open }) => {
  const hostile = `</script><img src=x onerror="document.title='owned'"><!--=1+1\u202e{{x}}`;
  const document = simulate({ exchanges: 600, prefix: hostile });
  document.title = hostile;
  const named = { ...cause, title: hostile, sentence: hostile, cost: hostile, advice: hostile, wireshark: hostile };
  const subject = {
    ...cause.subject,
    client: hostile,
    server: hostile,
    users: [hostile],
    share: hostile,
    path: hostile,
  };
  const everywhere = { ...named, subject, source: hostile, also: [hostile] };
  document.answer = {
    culprit: "server",
    headline: `Server: ${hostile}`,
    states_first_cause: true,
    evidence: [hostile],
    causes: [everywhere, everywhere],
    notes: [everywhere],
    ruled_out: [hostile],
    caveats: [hostile],
    next: [{ label: hostile, command: hostile }],
    slow: "",
  };
  document.quality.sentence = hostile;
  document.warnings = [hostile];
  document.sides = sides([hostile, `${hostile}2`, "server"]);
  const page = await open(document, hostile);
  const shown = hostile.replace("\u202e", "\ufffd");
  await expect(page.locator("h1")).toHaveText(`SMB response times: ${shown}`);
  await expect(page.locator(".answer .headline")).toHaveText(`Server: ${shown}`);
  const name = page.locator(".causes .pick").first();
  await expect(name).toHaveText(shown);
  await expect(page.locator(".notes code")).toHaveText(shown);
  await expect(page.locator(".chain .point").first()).toHaveText(shown);
  await expect(page.locator("#sides")).toContainText(`/captures/${shown}.pcap`);
  await expect(page.locator("img")).toHaveCount(0);
  await expect(page.locator("script")).toHaveCount(3);
  expect(await page.title()).toContain("<img src=x");
  await page.locator("#hosts").getByRole("button", { name: "10.20.0.11:49152" }).click();
  await expect(page.getByRole("dialog")).toContainText(shown);
  await page.keyboard.press("Escape");
  // As a selection, a name goes through the address and the header, but into no command line.
  await name.click();
  await expect(page.locator(".chip.only")).toContainText(`Only client ${shown}`);
  await expect(page.locator(".selected code")).toHaveCount(0);
  await page.reload();
  await expect(page.locator(".chip.only")).toContainText(`Only client ${shown}`);
  await expect(page.locator("img")).toHaveCount(0);
});

test("a script that got into the page does not run", async ({ openFile, page }) => {
  // Simulates a name that was not escaped.
  const path = join(mkdtempSync(join(tmpdir(), "smbscope-page-")), "page.html");
  const injected = [
    "<script>document.title = 'owned'; window.owned = 1</script>",
    '<script type="module">window.owned = 2</script>',
    `<img src="data:," onerror="window.owned = 3">`,
    `<a href="javascript:void(window.owned = 4)" id="link">x</a>`,
  ].join("");
  writeFileSync(
    path,
    embedded(report, "A report").replace("</body>", () => `${injected}</body>`),
  );
  const refused: string[] = [];
  page.on("console", (message) => refused.push(message.text()));
  await openFile(path, { mayComplain: /Content Security Policy/ });
  await expect(page.locator("h1")).toContainText("SMB response times");
  await page.locator("#link").evaluate((link) => (link as HTMLAnchorElement).click());
  expect(await page.evaluate(() => "owned" in window)).toBe(false);
  expect(await page.title()).not.toBe("owned");
  // Each was refused, and by the policy.
  await expect.poll(() => refused.length).toBeGreaterThanOrEqual(4);
});

test("the page has the licences of bundled packages", async ({ open, page }) => {
  await open(report);
  await page.getByText("Third-party licences").click();
  const notices = await page.locator("footer pre").innerText();
  for (const name of ["d3-scale", "d3-shape", "d3-array"])
    expect(notices).toMatch(new RegExp(`^${name} [\\d.]+ \\(ISC\\)$`, "m"));
  expect(notices).not.toContain("\ufffd");
});

test("an unknown document is reported", async ({ open }) => {
  const page = await open({ schema: "smbscope.future/9" });
  await expect(page.getByRole("heading", { level: 1 })).toHaveText("This page cannot show its document");
  await expect(page.locator("main")).toContainText("smbscope.future/9");
});

test("a document that is not an object has no schema", async ({ open }) => {
  const page = await open([1, 2]);
  await expect(page.locator("main")).toContainText("none");
});

test("colours follow the system until they are switched", async ({ open, page }) => {
  await page.emulateMedia({ colorScheme: "dark" });
  await open(report);
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = await ground();
  await page.getByRole("button", { name: "Switch to light mode" }).click();
  const light = await ground();
  expect(light).not.toBe(dark);
  await page.emulateMedia({ colorScheme: "light" });
  expect(await ground()).toBe(light);
  await page.getByRole("button", { name: "Switch to dark mode" }).click();
  expect(await ground()).toBe(dark);
});

test("print is light, without controls, and notes truncated tables", async ({ open, page }) => {
  await page.emulateMedia({ colorScheme: "dark" });
  await open(report);
  await page.getByRole("searchbox").first().waitFor();
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  await expect(page.locator(".bar")).toBeHidden();
  await expect(page.locator("body")).toHaveCSS("background-color", "rgb(255, 255, 255)");
  await expect(page.locator("body")).toHaveCSS("color", "rgb(27, 29, 33)");
  const files = page.locator(".table").filter({ has: page.getByRole("table", { name: "Files", exact: true }) });
  await expect(files.locator("tbody tr")).toHaveCount(25);
  await expect(files.locator(".print-only")).toHaveText(`The first 25 of ${report.files.length} rows are printed.`);
  const pdf = await page.pdf({ format: "A4" });
  expect(pdf.subarray(0, 5).toString()).toBe("%PDF-");
  await page.emulateMedia({ media: "screen" });
  await expect(page.locator(".bar")).toBeVisible();
});

test("a narrow window does not scroll sideways", async ({ open, page }) => {
  await page.setViewportSize({ width: 360, height: 800 });
  await open(report);
  expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(360);
});

for (const [name, document] of [
  ["report", report],
  ["ramp", ramp()],
  ["comparison", comparison()],
  ["prediction", prediction()],
  ["prediction for users", predictedUsers()],
  ["study", study()],
] as const) {
  test(`tables of a ${name} scroll within themselves on a phone, and their first column stays`, async ({
    open,
    page,
  }) => {
    await page.setViewportSize({ width: 390, height: 844 });
    await open(document);
    for (const summary of await page.getByText("Data table").all()) await summary.click();
    const wrong = await page.locator("table").evaluateAll(async (tables) => {
      const found: string[] = [];
      for (const table of tables) {
        const caption = table.querySelector("caption")?.textContent;
        const scroller = table.closest(".scroller, .plain-table");
        const right = (scroller ?? table).getBoundingClientRect().right;
        if (right > innerWidth + 1) found.push(`${caption}: clipped`);
        if (!scroller || scroller.scrollWidth <= scroller.clientWidth) continue;
        const first = () =>
          table.querySelector("tbody tr[aria-rowindex] > *, tbody tr > th")?.getBoundingClientRect().left;
        const before = first();
        scroller.scrollLeft = scroller.scrollWidth;
        await new Promise(requestAnimationFrame);
        if (Math.abs((first() ?? 0) - (before ?? 0)) > 1) found.push(`${caption}: its first column scrolled away`);
        const last = table.querySelector("thead tr > :last-child")?.getBoundingClientRect();
        if ((last?.right ?? 0) > right + 1) found.push(`${caption}: its last column is out of reach`);
      }
      return found;
    });
    expect(wrong).toEqual([]);
    expect(await page.evaluate(() => globalThis.document.documentElement.scrollWidth)).toBe(390);
  });
}

test("no table is wider than a printed page, and no drawing higher", async ({ open, page }) => {
  test.slow();
  // A4 without its margins of 12 and 14 mm, at 96 pixels per inch.
  const [width, height] = [210 - 2 * 12, 297 - 2 * 14].map((mm) => Math.floor((mm / 25.4) * 96)) as [number, number];
  for (const document of [overlapping(report), ramp(), comparison(), study()]) {
    // Charts of a narrow window are redrawn for paper.
    await page.emulateMedia({ media: "screen" });
    await page.setViewportSize({ width: 390, height });
    await open(document);
    await page.setViewportSize({ width, height });
    await page.emulateMedia({ media: "print" });
    // The page hears of the change of media when it next paints, which takes a while on a busy machine.
    const drawn = () =>
      page
        .locator("svg.chart")
        .evaluateAll((all) => [...new Set(all.map((svg) => (svg as SVGSVGElement).viewBox.baseVal.width))]);
    await expect.poll(drawn).toEqual([700]);
    const heights = await page
      .locator("svg.chart")
      .evaluateAll((all) => all.map((svg) => svg.getBoundingClientRect().height));
    expect(heights.length).toBeGreaterThan(2);
    for (const drawing of heights) expect(drawing).toBeLessThan(height - 100);
    const wide = await page
      .locator("table")
      .evaluateAll((tables) =>
        tables
          .filter((table) => table.getBoundingClientRect().right > innerWidth + 1)
          .map((table) => table.querySelector("caption")?.textContent),
      );
    expect(wide).toEqual([]);
  }
});

test("nothing moves after the first paint", async ({ open, page }) => {
  await page.addInitScript(() => {
    const shifts: number[] = [];
    Object.assign(globalThis, { shifts });
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) shifts.push((entry as unknown as { value: number }).value);
    }).observe({ type: "layout-shift", buffered: true });
  });
  await open(report);
  await page.waitForTimeout(500);
  expect(await page.evaluate(() => (globalThis as unknown as { shifts: number[] }).shifts)).toEqual([]);
});

test("ten thousand files scroll, and only those in view are in the document", async ({ open, page }) => {
  const some = simulate({ exchanges: 20_000, clients: 40, files: 500 });
  const large = {
    ...some,
    files: Array.from({ length: 10_000 }, (_, i) => ({ ...(some.files[i % 400] ?? some.files[0]), path: `file ${i}` })),
    connections: Array.from({ length: 2_000 }, (_, i) => ({ ...(some.connections[i % 40] ?? {}), flow_id: i + 1 })),
  };
  await open(large);
  const files = page.locator(".table").filter({ has: page.getByRole("table", { name: "Files", exact: true }) });
  const scroller = files.locator(".scroller");
  await scroller.evaluate((element) => {
    element.scrollTop = element.scrollHeight;
  });
  await expect(files.locator(`tr[aria-rowindex="${large.files.length + 1}"]`)).toBeVisible();
  expect(await files.locator("tbody tr").count()).toBeLessThan(60);
  for (const part of [0.1, 0.7, 0.3, 0.9, 0]) {
    const row = 1 + Math.round(part * large.files.length);
    await scroller.evaluate((element, part) => {
      element.scrollTop = element.scrollHeight * part;
    }, part);
    await expect(files.locator(`tr[aria-rowindex="${row + 1}"]`)).toBeVisible();
    expect(await files.locator("tbody tr").count()).toBeLessThan(60);
  }
});

test("keyboard alone reaches everything, and the first stop skips the header", async ({ open, page }) => {
  test.slow();
  const few = simulate({ exchanges: 600, clients: 3, files: 20 });
  await open({ ...few, slowest: few.slowest.slice(0, 50), answer: { ...few.answer, causes: [cause], notes: [cause] } });
  await page.keyboard.press("Tab");
  await expect(page.getByRole("link", { name: "Skip to content" })).toBeFocused();
  await page.keyboard.press("Tab");
  await expect(page.getByRole("navigation").getByRole("link").first()).toBeFocused();
  await page.evaluate(() => {
    document.addEventListener("focusin", ({ target }) => (target as Element).setAttribute("data-reached", ""));
  });
  // Rows are drawn as the focus reaches them.
  const isAtEnd = () => page.evaluate(() => document.activeElement?.textContent === "Third-party licences");
  for (let stops = 0; stops < 1_500 && !(await isAtEnd()); stops += 1) await page.keyboard.press("Tab");
  expect(await isAtEnd()).toBe(true);
  const missed = await page
    .locator("main :is(a, button:enabled, input, select, summary, [tabindex='0']):not([data-reached])")
    .evaluateAll((all) => all.filter((element) => element.checkVisibility()).map((element) => element.outerHTML));
  expect(missed).toEqual([]);
  const rows = page.locator("#slowest tr[aria-rowindex]").last();
  await expect(rows).toHaveAttribute("aria-rowindex", "51");
});
