// Opens a document as a user does: as a file, and watched for everything that a self-contained page must not do.
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { test as base, expect, type Page } from "@playwright/test";

/** The page that the Rust crate embeds, as it is committed. */
const TEMPLATE = fileURLToPath(new URL("../../../crates/smbscope-report/src/html/template.html", import.meta.url));

/** What html.rs does; that it does it right is tested there, and with hostile names in real.test.ts. */
export function embedded(document: unknown, title: string): string {
  const text = JSON.stringify(document).replace(
    /[<>&\u2028\u2029]/g,
    (found) => `\\u${found.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  const escaped = title.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  return readFileSync(TEMPLATE, "utf8")
    .replace("@SMBSCOPE_TITLE@", () => escaped)
    .replace("@SMBSCOPE_DATA@", () => text);
}

interface Fixtures {
  /** Makes a page of the document and opens it. */
  open(document: unknown, title?: string): Promise<Page>;
  /** Puts a page that is already a file in front of the watcher, which lets pass what the browser may complain about. */
  openFile(path: string, options?: { mayComplain: RegExp }): Promise<Page>;
}

/** Fails a test whose page asked for anything, or wrote anything to the console. */
export const test = base.extend<Fixtures>({
  openFile: async ({ page }, use) => {
    const wrong: string[] = [];
    let mayComplain: RegExp | undefined;
    page.on("console", (message) => {
      if (!mayComplain?.test(message.text())) wrong.push(`${message.type()}: ${message.text()}`);
    });
    page.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
    page.on("dialog", (dialog) => {
      wrong.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    let own = "";
    await page.route("**/*", (route) => {
      const address = route.request().url();
      if (address === own || address.startsWith("blob:") || address.startsWith("data:")) return route.continue();
      wrong.push(`request: ${address}`);
      return route.abort();
    });
    await use(async (path, options) => {
      mayComplain = options?.mayComplain;
      own = pathToFileURL(path).href;
      await page.goto(own);
      return page;
    });
    expect(wrong).toEqual([]);
  },
  open: async ({ openFile }, use) => {
    await use(async (document, title = "A report") => {
      const path = join(mkdtempSync(join(tmpdir(), "smbscope-page-")), "page.html");
      writeFileSync(path, embedded(document, title));
      return openFile(path);
    });
  },
});

/** The counts in the numbers beneath the heat map, which are made when they are first asked for. */
export async function heatMapCounts(page: Page): Promise<number[]> {
  await page.locator("#time summary").first().click();
  await expect(page.locator("#time .numbers tbody tr").first()).toBeVisible();
  const texts = await page.locator("#time .numbers").first().locator("tbody td:nth-child(2)").allInnerTexts();
  return texts.map((text) => Number(text.replaceAll(",", "")));
}

export { expect, type Page };
