import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { noticesOf } from "../../scripts/notices.mjs";

const module = (path: string) => fileURLToPath(new URL(`../../node_modules/${path}`, import.meta.url));

describe("the notices of bundled packages", () => {
  it("hold each package once, with its licence", () => {
    const notices = noticesOf([
      module("d3-scale/src/log.js"),
      module("d3-scale/src/linear.js"),
      "/somewhere/src/main.ts",
    ]);
    expect(notices.length).toBe(1);
    expect(notices[0]).toMatch(/^d3-scale [\d.]+ \(ISC\)\n/);
    expect(notices[0]).toContain("Permission to use, copy, modify");
  });

  it("refuse a package with a licence that is not listed", () => {
    // axe-core is MPL-2.0: good for testing, not for the page.
    expect(() => noticesOf([module("axe-core/axe.js")])).toThrow(/axe-core .*MPL-2.0 may not be bundled/);
  });
});
