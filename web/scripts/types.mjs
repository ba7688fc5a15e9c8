// @ts-check
// Generates src/types/*.ts from the published JSON Schemas. `--check` compares them and fails if they differ.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { compile } from "json-schema-to-typescript";

const schemas = new URL("../../schema/", import.meta.url);
const types = new URL("../src/types/", import.meta.url);
const check = process.argv.includes("--check");

/**
 * Converts a schema to the older draft that the generator supports: `prefixItems` becomes `items`, and
 * `unevaluatedProperties` is dropped, as TypeScript types say nothing about further properties.
 * @param {any} node
 * @returns {any}
 */
function older(node) {
  if (Array.isArray(node)) return node.map(older);
  if (node === null || typeof node !== "object") return node;
  const { prefixItems, unevaluatedProperties, propertyNames, $id, ...rest } = node;
  if (prefixItems) Object.assign(rest, { items: prefixItems, additionalItems: false, maxItems: prefixItems.length });
  // The generator would create a separate type for a $ref with a description.
  if (rest.$ref) delete rest.description;
  return Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, older(value)]));
}

mkdirSync(types, { recursive: true });
let stale = 0;

/**
 * Writes a file, or compares it with the committed one.
 * @param {string} name
 * @param {string} text
 * @param {string} source
 */
function keep(name, text, source) {
  const target = new URL(name, types);
  if (!check) return writeFileSync(target, text);
  if (existsSync(target) && readFileSync(target, "utf8") === text) return;
  console.error(`types: src/types/${name} is not what ${source} says: run \`make web\` and commit it`);
  stale += 1;
}

for (const file of readdirSync(schemas)
  .filter((name) => name.endsWith(".schema.json"))
  .sort()) {
  const schema = older(JSON.parse(readFileSync(new URL(file, schemas), "utf8")));
  const text = await compile({ ...schema, title: `${schema.title} document` }, file, {
    bannerComment: `// Made from schema/${file} by scripts/types.mjs; do not edit.`,
    additionalProperties: false,
    maxItems: 2,
    style: { printWidth: 120 },
  });
  keep(file.replace(/^smbscope\.(\w+)-1\.schema\.json$/, "$1.ts"), text, file);
}

// Descriptions of the quality counters, from the schema.
const source = "smbscope.report-1.schema.json";
const { properties } = JSON.parse(readFileSync(new URL(source, schemas), "utf8")).$defs.Quality;
const meanings = Object.entries(properties)
  .filter(([, { type }]) => type === "integer")
  .map(([name, { description }]) => `  ${name}: ${JSON.stringify(description)},\n`);
keep(
  "counters.ts",
  `// Made from schema/${source} by scripts/types.mjs; do not edit.\n\nexport const COUNTERS = {\n${meanings.join("")}};\n`,
  source,
);
process.exit(stale ? 1 : 0);
