// @ts-check
// Builds the page into which captures are dropped: node scripts/page.mjs MODULE.wasm NOTICES.gz PAGE.html
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { withPolicy } from "./policy.mjs";

const [module, notices, page] = process.argv.slice(2);
if (!module || !notices || !page) throw new Error("page: give the module, the licences of its libraries, and the page");
const web = fileURLToPath(new URL("..", import.meta.url));
execFileSync("npx", ["vite", "build", "--mode", "drop", "--logLevel", "warn"], {
  cwd: web,
  stdio: ["ignore", "ignore", "inherit"],
});
const packed = gzipSync(readFileSync(module), { level: 9 });
let built = withPolicy(readFileSync(new URL("../dist/drop/drop.html", import.meta.url), "utf8"));
const embedded = { "@SMBSCOPE_MODULE@": packed, "@SMBSCOPE_CRATES@": readFileSync(notices) };
for (const [place, content] of Object.entries(embedded)) {
  if (built.split(place).length !== 2) throw new Error(`page: drop.html has to say ${place} once`);
  built = built.replace(place, () => content.toString("base64"));
}
mkdirSync(dirname(page), { recursive: true });
writeFileSync(page, built);
const size = (/** @type {number} */ bytes) => `${(bytes / 1e6).toFixed(2)} MB`;
console.log(`page: ${page}, ${size(readFileSync(page).length)}, of it ${size(packed.length)} analysis before base64`);
