// Messages between the page and the worker that runs the analysis.

/** Exports in the order of `ExportFormat::ALL` in crates/smbscope-page. */
export const EXPORTS = ["view", "json", "html", "csv", "slim"] as const;
export type ExportFormat = (typeof EXPORTS)[number];

/** The first order brings the compiled analysis and the files; later ones ask for exports. */
export type Order = { module: WebAssembly.Module; files: File[] } | { export: ExportFormat };

export type Message =
  | { kind: "progress"; done: number; total: number }
  | { kind: "analysed" }
  | { kind: "exported"; format: ExportFormat; content: Blob }
  | { kind: "failed"; reason: string };
