// @ts-check
// Vite plugin: refuses to bundle packages with other licences than the listed ones, and adds the notices that the licences
// require to the page.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** Licences of packages that may be bundled. Build and test tools may have others. */
const ALLOWED = new Set(["MIT", "ISC", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "0BSD"]);

/** Placeholder in index.html. */
const PLACE = "@SMBSCOPE_NOTICES@";

/**
 * Finds the package of a module: the nearest package.json above it that has a name.
 * @param {string} file
 */
function packageOf(file) {
  for (let at = dirname(file); at !== dirname(at); at = dirname(at)) {
    const path = join(at, "package.json");
    if (!existsSync(path)) continue;
    const { name, version, license } = JSON.parse(readFileSync(path, "utf8"));
    if (name) return { name, version, license, at };
  }
  throw new Error(`${file} belongs to no package`);
}

/**
 * Reads the licence text of a package.
 * @param {string} at
 */
function licenceText(at) {
  const file = readdirSync(at).find((name) => /^licen[cs]e/i.test(name));
  if (!file) throw new Error(`${at} has no licence file`);
  return readFileSync(join(at, file), "utf8").trim();
}

/**
 * Returns the notices of the packages of these modules.
 * @param {Iterable<string>} modules
 */
export function noticesOf(modules) {
  /** @type {Map<string, string>} */
  const found = new Map();
  for (const module of modules) {
    const file = module.replaceAll("\0", "").replace(/\?.*$/, "");
    if (!file.includes("/node_modules/")) continue;
    const { name, version, license, at } = packageOf(file);
    if (!ALLOWED.has(license)) throw new Error(`${name} ${version}: licence ${license} may not be bundled`);
    found.set(name, `${name} ${version} (${license})\n\n${licenceText(at)}`);
  }
  return [...found.keys()].sort().map((name) => found.get(name));
}

/** @returns {import("vite").Plugin} */
export function notices() {
  return {
    name: "smbscope-notices",
    apply: "build",
    enforce: "post",
    generateBundle: {
      order: "post",
      handler(_options, bundle) {
        /** @type {string[]} */
        const modules = [...this.getModuleIds()];
        const text = noticesOf(modules).join("\n\n----\n\n");
        for (const file of Object.values(bundle)) {
          if (file.type !== "asset" || !file.fileName.endsWith(".html")) continue;
          const html = String(file.source);
          if (html.split(PLACE).length !== 2) throw new Error(`${file.fileName} must name ${PLACE} once`);
          // The text of a script element must not look like markup, but licences have addresses in angle brackets.
          file.source = html.replace(PLACE, () => text.replaceAll("<", "‹").replaceAll(">", "›"));
        }
      },
    },
  };
}
