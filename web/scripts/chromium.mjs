// @ts-check
// Finds the system's Chromium. Playwright wants its path, not its name.
import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

/** Names of Chromium, as in scripts/setup.sh. */
const NAMES = ["chromium", "chromium-browser", "google-chrome"];

/** @returns {string} */
export function chromiumPath() {
  const { SMBSCOPE_CHROMIUM, PATH = "" } = process.env;
  if (SMBSCOPE_CHROMIUM) return SMBSCOPE_CHROMIUM;
  for (const name of NAMES) {
    for (const directory of PATH.split(delimiter)) {
      const path = join(directory, name);
      try {
        accessSync(path, constants.X_OK);
        return path;
      } catch {
        // Not here.
      }
    }
  }
  throw new Error(`none of ${NAMES.join(", ")} is in PATH: run \`make setup\`, or set SMBSCOPE_CHROMIUM`);
}
