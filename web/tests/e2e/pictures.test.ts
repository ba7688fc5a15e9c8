// Screenshots of each page kind, for review. SMBSCOPE_PICTURES names their folder, which CI can keep.
import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { cause } from "../documents/cause";
import { comparedRamps, comparison } from "../documents/comparison";
import { ramp } from "../documents/ramp";
import { simulate } from "../documents/simulate";
import { study } from "../documents/study";
import { expect, test } from "./page";

// Not in test-results, which each run empties.
const FOLDER = process.env.SMBSCOPE_PICTURES ?? fileURLToPath(new URL("../../pictures", import.meta.url));
const report = simulate({ exchanges: 4_000 });

for (const [name, document] of [
  ["report", { ...report, answer: { ...report.answer, causes: [cause, cause], notes: [cause] } }],
  ["ramp", ramp()],
  ["comparison", comparison()],
  ["ramps-compared", comparedRamps()],
  ["study", study()],
] as const) {
  test(`pictures of a ${name} are taken in light, dark, on a phone and in print`, async ({ open, page }) => {
    mkdirSync(FOLDER, { recursive: true });
    const file = (kind: string) => join(FOLDER, `${name}-${kind}`);
    for (const [kind, width, colorScheme] of [
      ["light.png", 1440, "light"],
      ["dark.png", 1440, "dark"],
      ["phone.png", 390, "light"],
    ] as const) {
      await page.setViewportSize({ width, height: 900 });
      await page.emulateMedia({ colorScheme });
      await open(document);
      await page.screenshot({ path: file(kind), animations: "disabled" });
      expect(statSync(file(kind)).size).toBeGreaterThan(10_000);
    }
    await page.pdf({ path: file("print.pdf"), format: "A4" });
    expect(statSync(file("print.pdf")).size).toBeGreaterThan(10_000);
  });
}
