// @ts-check
// Restricts the page to the scripts it was built with: its CSP lists their hashes.
import { createHash } from "node:crypto";

/** Placeholder for the hashes in index.html. */
const OPEN = "script-src 'unsafe-inline'";

/** Script element: attributes and text. Documents and notices have a type that browsers do not run. */
const SCRIPT = /<script((?:\s[^>]*)?)>([\s\S]*?)<\/script>/g;

/**
 * Returns the source expression of a script (CSP Level 3, 2.3.1).
 * @param {string} text
 */
export function hashOf(text) {
  return `'sha256-${createHash("sha256").update(text, "utf8").digest("base64")}'`;
}

/**
 * Returns the page with a policy that allows its own inline scripts.
 * @param {string} page
 */
export function withPolicy(page) {
  const scripts = [...page.matchAll(SCRIPT)].filter(([, attributes]) => !/\stype="(?!module")/.test(attributes ?? ""));
  if (scripts.length === 0 || scripts.some(([, attributes]) => /\ssrc=/.test(attributes ?? "")))
    throw new Error("policy: the page has to have inline scripts, and no other");
  if (page.split(OPEN).length !== 2) throw new Error(`policy: the page has to say ${OPEN} once`);
  return page.replace(OPEN, () => `script-src ${scripts.map(([, , text]) => hashOf(text ?? "")).join(" ")}`);
}
