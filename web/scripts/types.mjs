// @ts-check
// Makes src/types/*.ts from the published JSON Schemas; `--check` only compares, and fails where they differ.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { compile } from "json-schema-to-typescript";

const schemas = new URL("../../schema/", import.meta.url);
const types = new URL("../src/types/", import.meta.url);
const check = process.argv.includes("--check");

/**
 * The schema in the words of the older draft that the generator reads: `prefixItems` is `items` with a list, and
 * `unevaluatedProperties` is dropped, as a type of TypeScript says nothing about further properties.
 * @param {any} node
 * @returns {any}
 */
function older(node) {
  if (Array.isArray(node)) return node.map(older);
  if (node === null || typeof node !== "object") return node;
  const { prefixItems, unevaluatedProperties, propertyNames, $id, ...rest } = node;
  if (prefixItems) Object.assign(rest, { items: prefixItems, additionalItems: false, maxItems: prefixItems.length });
  // A description beside a $ref is about the property; the generator would make a type of its own of it.
  if (rest.$ref) delete rest.description;
  return Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, older(value)]));
}

mkdirSync(types, { recursive: true });
let stale = 0;
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
  const target = new URL(file.replace(/^smbscope\.(\w+)-1\.schema\.json$/, "$1.ts"), types);
  if (check) {
    let committed = "";
    try {
      committed = readFileSync(target, "utf8");
    } catch {}
    if (committed !== text) {
      console.error(`types: ${target.pathname} is not what ${file} says: run \`make web\` and commit it`);
      stale += 1;
    }
  } else {
    writeFileSync(target, text);
  }
}
process.exit(stale ? 1 : 0);
