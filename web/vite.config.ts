// Builds the report as one file, with all assets and third-party licences inlined.
import { viteSingleFile } from "vite-plugin-singlefile";
import { defineConfig } from "vitest/config";
import { notices } from "./scripts/notices.mjs";

export default defineConfig({
  plugins: [viteSingleFile({ removeViteModuleLoader: true }), notices()],
  build: {
    outDir: "dist",
    target: ["es2022"],
    // Oldest browsers with light-dark().
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
    // No chunks or source maps that would be loaded later.
    modulePreload: false,
    sourcemap: false,
    reportCompressedSize: false,
  },
  test: { include: ["tests/unit/**/*.test.ts"], environment: "node", testTimeout: 60_000 },
});
