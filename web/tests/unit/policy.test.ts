import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { hashOf, withPolicy } from "../../scripts/policy.mjs";

const page = (scripts: string) =>
  `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'">${scripts}`;

describe("the policy of the page", () => {
  it("names a script by its hash", () => {
    // The example of CSP Level 3, 2.3.1.
    expect(hashOf("alert('Hello, world.');")).toBe("'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng='");
  });

  it("lets the page's own scripts run, and no document", () => {
    const made = withPolicy(
      page('<script type="application/json">{}</script><script type="module" crossorigin>1</script>'),
    );
    expect(made).toContain(`script-src ${hashOf("1")}"`);
    expect(made).not.toContain(hashOf("{}"));
  });

  it("refuses a page whose scripts are elsewhere, or that has none", () => {
    expect(() => withPolicy(page('<script src="x.js"></script>'))).toThrow(/inline/);
    expect(() => withPolicy(page(""))).toThrow(/inline/);
    expect(() => withPolicy("<script>1</script>")).toThrow(/once/);
  });

  it("holds in the page that is committed", () => {
    const template = new URL("../../../crates/smbscope-report/src/html/template.html", import.meta.url);
    const text = readFileSync(template, "utf8");
    const script = /<script type="module"[^>]*>([\s\S]*?)<\/script>/.exec(text)?.[1] ?? "";
    const policy = /script-src ([^;"]*)/.exec(text)?.[1];
    expect(script.length).toBeGreaterThan(100_000);
    expect(policy).toBe(hashOf(script));
  });
});
