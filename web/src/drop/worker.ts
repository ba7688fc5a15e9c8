// Runs the analysis in a thread of its own, so that the page stays responsive and can end it at any time.
//
// The other side of the border is crates/smbscope-page/src/abi.rs.
import { EXPORTS, type ExportFormat, type Message, type Order } from "./messages";

/** Reads files synchronously; exists in workers only. */
declare class FileReaderSync {
  readAsArrayBuffer(slice: Blob): ArrayBuffer;
}

interface Analysis {
  memory: WebAssembly.Memory;
  start(): void;
  text(length: number): number;
  add(number: number, length: number): void;
  analyze(): number;
  export(format: number): number;
}

/** Bytes read from a file at once. Of 1 to 32 MiB, this took the least memory in Chromium. */
const BLOCK_BYTES = 8 << 20;
/** Milliseconds between two messages about the progress. */
const PROGRESS_INTERVAL = 100;
/** Bytes of one call of `crypto.getRandomValues`. */
const RANDOM_MAX = 65_536;

const reader = new FileReaderSync();
const sink = new MessageChannel().port1;
sink.close();
let files: File[] = [];
let analysis: Analysis | null = null;
let block = { file: -1, start: 0, bytes: new Uint8Array(new ArrayBuffer()) };
let written: BlobPart[] = [];
let reason = "";
let told = 0;

function tell(message: Message): void {
  postMessage(message);
}

/** Returns a part of the module's memory. Addresses arrive as signed numbers. */
function memory(address: number, length: number): Uint8Array<ArrayBuffer> {
  return new Uint8Array(analysis?.memory.buffer as ArrayBuffer, address >>> 0, length >>> 0);
}

/** Frees a buffer now: the garbage collector rarely runs during an analysis. A closed port drops what it is given. */
function free(buffer: ArrayBuffer): void {
  sink.postMessage(null, [buffer]);
}

function read(number: number, offset: number, address: number, length: number): number {
  const file = files[number];
  if (!file) return -1;
  const isHeld = block.file === number && offset >= block.start && offset < block.start + block.bytes.length;
  if (!isHeld) {
    free(block.bytes.buffer);
    try {
      const bytes = new Uint8Array(reader.readAsArrayBuffer(file.slice(offset, offset + BLOCK_BYTES)));
      block = { file: number, start: offset, bytes };
    } catch {
      return -1;
    }
  }
  const from = offset - block.start;
  const found = block.bytes.subarray(from, from + length);
  memory(address, found.length).set(found);
  return found.length;
}

const imports = {
  page: {
    read,
    write: (address: number, length: number) => written.push(memory(address, length).slice()),
    progress: (done: number, total: number) => {
      const now = performance.now();
      if (now - told < PROGRESS_INTERVAL) return;
      told = now;
      tell({ kind: "progress", done, total });
    },
    random: (address: number, length: number) => {
      for (let at = 0; at < length; at += RANDOM_MAX)
        crypto.getRandomValues(memory(address + at, Math.min(RANDOM_MAX, length - at)));
    },
    fail: (address: number, length: number) => {
      reason = new TextDecoder().decode(memory(address, length).slice());
    },
  },
};

async function begin(module: WebAssembly.Module, given: File[]): Promise<void> {
  const instance = await WebAssembly.instantiate(module, imports);
  const started = instance.exports as unknown as Analysis;
  analysis = started;
  files = given;
  started.start();
  files.forEach((file, number) => {
    const name = new TextEncoder().encode(file.name);
    memory(started.text(name.length), name.length).set(name);
    started.add(number, file.size);
  });
  if (started.analyze() === 1) tell({ kind: "analysed" });
  else tell({ kind: "failed", reason });
}

function exported(format: ExportFormat): void {
  written = [];
  if (analysis?.export(EXPORTS.indexOf(format)) === 1) tell({ kind: "exported", format, content: new Blob(written) });
  else tell({ kind: "failed", reason });
  written = [];
}

addEventListener("message", async ({ data }: MessageEvent<Order>) => {
  try {
    if ("export" in data) exported(data.export);
    else await begin(data.module, data.files);
  } catch (error) {
    // A panic leaves its reason; running out of memory does not.
    tell({ kind: "failed", reason: reason || `the analysis ended: ${error}` });
  }
});
