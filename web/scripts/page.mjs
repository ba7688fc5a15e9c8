// @ts-check
// Builds the page into which captures are dropped: node scripts/page.mjs MODULE.wasm PAGE.html
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { withPolicy } from "./policy.mjs";

/** Placeholder in drop.html. */
const PLACE = "@SMBSCOPE_MODULE@";

const [module, page] = process.argv.slice(2);
if (!module || !page) throw new Error("page: give the module and the page to write");
const web = fileURLToPath(new URL("..", import.meta.url));
execFileSync("npx", ["vite", "build", "--mode", "drop", "--logLevel", "warn"], {
  cwd: web,
  stdio: ["ignore", "ignore", "inherit"],
});
const built = withPolicy(readFileSync(new URL("../dist/drop/drop.html", import.meta.url), "utf8"));
if (built.split(PLACE).length !== 2) throw new Error(`page: drop.html has to say ${PLACE} once`);
const packed = gzipSync(readFileSync(module), { level: 9 });
mkdirSync(dirname(page), { recursive: true });
writeFileSync(
  page,
  built.replace(PLACE, () => packed.toString("base64")),
);
const size = (/** @type {number} */ bytes) => `${(bytes / 1e6).toFixed(2)} MB`;
console.log(`page: ${page}, ${size(readFileSync(page).length)}, of it ${size(packed.length)} analysis before base64`);
