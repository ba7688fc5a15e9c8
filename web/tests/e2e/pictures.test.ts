// Each page kind in light, dark, on a phone and in print: screenshots for review, and the rules of accessibility.
// SMBSCOPE_PICTURES names the folder of the pictures, which CI can keep.
import { mkdirSync, readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { cause } from "../documents/cause";
import { comparedRamps, comparison } from "../documents/comparison";
import { launch } from "../documents/launch";
import { predictedUsers, prediction } from "../documents/prediction";
import { ramp } from "../documents/ramp";
import { sides } from "../documents/sides";
import { simulate } from "../documents/simulate";
import { study } from "../documents/study";
import { expect, type Page, test } from "./page";

// Not in test-results, which each run empties.
const FOLDER = process.env.SMBSCOPE_PICTURES ?? fileURLToPath(new URL("../../pictures", import.meta.url));
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const report = simulate({ exchanges: 4_000 });
const own = { ...cause, title: "Another", subject: { ...cause.subject, client: "10.20.0.13" } };

/** Takes a picture of the window. */
async function picture(page: Page, name: string): Promise<void> {
  mkdirSync(FOLDER, { recursive: true });
  const path = join(FOLDER, `${name}.png`);
  await page.screenshot({ path, animations: "disabled" });
  expect(statSync(path).size).toBeGreaterThan(10_000);
}

/** Returns the violations that axe-core finds. */
async function violations(page: Page): Promise<string[]> {
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(AXE);
  return page.evaluate(async () => {
    const { axe } = globalThis as unknown as { axe: typeof import("axe-core") };
    const rules = ["wcag2a", "wcag2aa", "wcag21aa", "best-practice"];
    const result = await axe.run(globalThis.document, { runOnly: rules });
    return result.violations.map(
      (found) => `${found.id}: ${found.nodes.map((node) => node.target.join(" ")).join("; ")}`,
    );
  });
}

for (const [name, document] of [
  ["report", { ...report, answer: { ...report.answer, causes: [cause, own], notes: [cause] } }],
  ["ramp", ramp()],
  ["launch", launch()],
  ["comparison", comparison()],
  ["ramps-compared", comparedRamps()],
  ["prediction", prediction()],
  ["predicted-users", predictedUsers()],
  ["study", study()],
] as const) {
  test(`a ${name} breaks no rule of accessibility, and has its pictures taken`, async ({ open, page }) => {
    test.slow();
    await page.setViewportSize({ width: 1440, height: 900 });
    await open(document);
    await picture(page, `${name}-light`);
    await page.getByText("Data table").first().click();
    expect(await violations(page), "light").toEqual([]);
    await page.evaluate(() => scrollTo({ top: 0, behavior: "instant" }));
    await page.emulateMedia({ colorScheme: "dark" });
    await picture(page, `${name}-dark`);
    expect(await violations(page), "dark").toEqual([]);
    await page.emulateMedia({ colorScheme: "light" });
    await page.setViewportSize({ width: 390, height: 844 });
    await picture(page, `${name}-phone`);
    expect(await violations(page), "phone").toEqual([]);
    const path = join(FOLDER, `${name}-print.pdf`);
    await page.pdf({ path, format: "A4" });
    expect(statSync(path).size).toBeGreaterThan(10_000);
  });
}

test("capture points break no rule of accessibility, and have their pictures taken", async ({ open, page }) => {
  await page.setViewportSize({ width: 1440, height: 900 });
  const document = simulate({ exchanges: 200 });
  await open({ ...document, sides: sides(["client", "firewall", "server"]) });
  const show = () => page.locator("#sides").evaluate((part) => part.scrollIntoView({ behavior: "instant" }));
  for (const [name, colorScheme, width] of [
    ["light", "light", 1440],
    ["dark", "dark", 1440],
    ["phone", "light", 390],
  ] as const) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 900 });
    await show();
    await picture(page, `sides-${name}`);
    expect(await violations(page), name).toEqual([]);
  }
});

test("a selection, an episode and a command break no rule of accessibility", async ({ open, page }) => {
  await open({ ...report, answer: { ...report.answer, causes: [cause, own], notes: [cause] } });
  await page.locator("#hosts").getByTitle("Show only client 10.20.0.13").first().click();
  await page.evaluate(() => scrollTo({ top: 0, behavior: "instant" }));
  await picture(page, "report-client");
  expect(await violations(page), "selection").toEqual([]);
  await page.locator(".chip.only").click();
  await page.locator("#episodes").getByTitle("Commands of episode 2").click();
  await picture(page, "report-episode");
  expect(await violations(page), "episode").toEqual([]);
  await page.locator(".command-bar").first().click();
  expect(await violations(page), "command").toEqual([]);
});
