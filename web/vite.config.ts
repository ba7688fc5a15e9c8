// How the report becomes one file: everything inlined, the notices of what is bundled kept in it.
import { viteSingleFile } from "vite-plugin-singlefile";
import { defineConfig } from "vitest/config";
import { notices } from "./scripts/notices.mjs";

export default defineConfig({
  plugins: [viteSingleFile({ removeViteModuleLoader: true }), notices()],
  build: {
    outDir: "dist",
    target: ["es2022"],
    // The oldest browsers that know light-dark(), by which the page has its colours.
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
    // Nothing is loaded later: neither chunks nor source maps.
    modulePreload: false,
    sourcemap: false,
    reportCompressedSize: false,
  },
  test: { include: ["tests/unit/**/*.test.ts"], environment: "node", testTimeout: 60_000 },
});
