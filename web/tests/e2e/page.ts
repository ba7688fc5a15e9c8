// Opens a document as a user does: as a file, and watched for everything that a self-contained page must not do.
import { execFileSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { test as base, expect, type Page } from "@playwright/test";

/** The program that writes pages: crates/smbscope-report/examples/html_page.rs. */
const WRITER =
  process.env.HTML_PAGE ?? fileURLToPath(new URL("../../../target/debug/examples/html_page", import.meta.url));

interface Fixtures {
  /** Makes a page of the document and opens it. */
  open(document: unknown, title?: string): Promise<Page>;
  /** Puts a page that is already a file in front of the watcher. */
  openFile(path: string): Promise<Page>;
}

/** Fails a test whose page asked for anything, or wrote anything to the console. */
export const test = base.extend<Fixtures>({
  openFile: async ({ page }, use) => {
    const wrong: string[] = [];
    page.on("console", (message) => wrong.push(`${message.type()}: ${message.text()}`));
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
    await use(async (path) => {
      own = pathToFileURL(path).href;
      await page.goto(own);
      return page;
    });
    expect(wrong).toEqual([]);
  },
  open: async ({ openFile }, use) => {
    await use(async (document, title = "A report") => {
      const html = execFileSync(WRITER, [title], { input: JSON.stringify(document), maxBuffer: 1e9 });
      const path = join(mkdtempSync(join(tmpdir(), "smbscope-page-")), "page.html");
      writeFileSync(path, html);
      return openFile(path);
    });
  },
});

export { expect };
