// Builds the report as one file, with all assets and third-party licences inlined; in mode `drop`, the page into which
// captures are dropped.
import { viteSingleFile } from "vite-plugin-singlefile";
import { defineConfig } from "vitest/config";
import { notices } from "./scripts/notices.mjs";

export default defineConfig(({ mode }) => ({
  plugins: [viteSingleFile({ removeViteModuleLoader: true }), notices()],
  build: {
    outDir: mode === "drop" ? "dist/drop" : "dist",
    rolldownOptions: { input: mode === "drop" ? "drop.html" : "index.html" },
    target: ["es2022"],
    // Oldest browsers with light-dark().
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
    // No chunks or source maps that would be loaded later.
    modulePreload: false,
    sourcemap: false,
    reportCompressedSize: false,
  },
  test: { include: ["tests/unit/**/*.test.ts"], environment: "node", testTimeout: 60_000 },
}));
