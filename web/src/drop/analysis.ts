// The analysis as the page uses it: starts the worker, and turns its messages into promises and calls.
import type { ExportFormat, Message, Order } from "./messages";
import AnalysisWorker from "./worker?worker&inline";

export type Progress = (done: number, total: number) => void;

/** Unpacks what `make page` has embedded in an element. */
export function embedded(id: string): Response {
  const packed = Uint8Array.from(atob(document.getElementById(id)?.textContent ?? ""), (letter) =>
    letter.charCodeAt(0),
  );
  return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip")));
}

/** Files under analysis. One request at a time. */
export class Analysis {
  private readonly worker = new AnalysisWorker();

  constructor(private readonly progress: Progress) {}

  /** Analyses the files. Fails with the reason if there is no report. */
  async begin(files: File[]): Promise<void> {
    const module = await WebAssembly.compile(await embedded("smbscope-module").arrayBuffer());
    await this.ask({ module, files });
  }

  async exported(format: ExportFormat): Promise<Blob> {
    const message = await this.ask({ export: format });
    if (message.kind !== "exported") throw new Error(`no export, but ${message.kind}`);
    return message.content;
  }

  /** Ends the thread, whatever it does. */
  cancel(): void {
    this.worker.terminate();
  }

  private ask(order: Order): Promise<Message> {
    return new Promise((resolve, reject) => {
      this.worker.onmessage = ({ data }: MessageEvent<Message>) => {
        if (data.kind === "progress") this.progress(data.done, data.total);
        else if (data.kind === "failed") reject(new Error(data.reason));
        else resolve(data);
      };
      this.worker.onerror = (event) => reject(new Error(event.message));
      this.worker.postMessage(order);
    });
  }
}
