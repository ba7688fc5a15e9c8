// Opens a document from a file, as a user does. Fails on anything that a self-contained page must not do.
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { test as base, expect, type Page } from "@playwright/test";

/** The committed page that the Rust crate embeds. */
const TEMPLATE = fileURLToPath(new URL("../../../crates/smbscope-report/src/html/template.html", import.meta.url));

/** Embeds a document as html.rs does. html.rs and real.test.ts test the original. */
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
  /** Writes a page with the document and opens it. */
  open(document: unknown, title?: string): Promise<Page>;
  /** Opens an existing page. `mayComplain` matches console messages that are allowed. */
  openFile(path: string, options?: { mayComplain: RegExp }): Promise<Page>;
}

/** Fails a test whose page sent a request or wrote to the console. */
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

/** Reads the counts in the data table of the heat map. */
export async function heatMapCounts(page: Page): Promise<number[]> {
  await page.locator("#time summary").first().click();
  await expect(page.locator("#time .numbers tbody tr").first()).toBeVisible();
  const texts = await page.locator("#time .numbers").first().locator("tbody td:nth-child(2)").allInnerTexts();
  return texts.map((text) => Number(text.replaceAll(",", "")));
}

export { expect, type Page };
