// @ts-check
// The page runs the scripts that it was built with and no other: its policy names them by their hashes.
import { createHash } from "node:crypto";

/** What index.html has in the place of the hashes. */
const OPEN = "script-src 'unsafe-inline'";

/** An inline script that a browser runs, as its attributes and its text; documents and notices have a type of their own. */
const SCRIPT = /<script((?:\s[^>]*)?)>([\s\S]*?)<\/script>/g;

/**
 * The source expression of a script (CSP Level 3, 2.3.1).
 * @param {string} text
 */
export function hashOf(text) {
  return `'sha256-${createHash("sha256").update(text, "utf8").digest("base64")}'`;
}

/**
 * The page with a policy that lets its own inline scripts run.
 * @param {string} page
 */
export function withPolicy(page) {
  const scripts = [...page.matchAll(SCRIPT)].filter(([, attributes]) => !/\stype="(?!module")/.test(attributes ?? ""));
  if (scripts.length === 0 || scripts.some(([, attributes]) => /\ssrc=/.test(attributes ?? "")))
    throw new Error("policy: the page has to have inline scripts, and no other");
  if (page.split(OPEN).length !== 2) throw new Error(`policy: the page has to say ${OPEN} once`);
  return page.replace(OPEN, () => `script-src ${scripts.map(([, , text]) => hashOf(text ?? "")).join(" ")}`);
}
