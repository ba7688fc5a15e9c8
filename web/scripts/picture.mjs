// Takes the screenshot for README.md: the answer at the top of a report.
// node scripts/picture.mjs PAGE.html PICTURE.png
import { resolve } from "node:path";
import { chromium } from "@playwright/test";
import { chromiumPath } from "./chromium.mjs";

const [page = "", picture = ""] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath: chromiumPath(),
  args: ["--no-sandbox"],
});
const tab = await browser.newPage({ viewport: { width: 1200, height: 715 }, colorScheme: "light" });
await tab.goto(`file://${resolve(page)}`);
await tab.screenshot({ path: picture });
await browser.close();
