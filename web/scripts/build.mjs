// @ts-check
// Builds the page into the Rust crate that embeds it. `--check` compares it with the committed one and fails if they differ.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { withPolicy } from "./policy.mjs";

const web = fileURLToPath(new URL("..", import.meta.url));
const template = fileURLToPath(new URL("../../crates/smbscope-report/src/html/template.html", import.meta.url));

execFileSync("npx", ["vite", "build", "--logLevel", "warn"], { cwd: web, stdio: ["ignore", "ignore", "inherit"] });
const built = withPolicy(readFileSync(new URL("../dist/index.html", import.meta.url), "utf8"));
if (process.argv.includes("--check")) {
  if (readFileSync(template, "utf8") !== built) {
    console.error("build: template.html is not what web/ builds: run `make web` and commit it");
    process.exit(1);
  }
} else {
  writeFileSync(template, built);
}
console.log(`build: template.html, ${(built.length / 1000).toFixed(0)} kB`);
