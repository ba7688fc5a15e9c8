// Entry point of the page into which captures are dropped: analyses them in the browser and shows the report.
import { save } from "../lib/clipboard";
import { h } from "../lib/dom";
import { bytes } from "../lib/format";
import { licences } from "../lib/page";
import { followAddress } from "../lib/selection";
import "../styles/drop.css";
import { shown } from "../view";
import { Analysis, embedded } from "./analysis";
import type { ExportFormat } from "./messages";

/** Exports that the user can save: label, explanation, ending and type of the file. */
const SAVED: readonly { format: ExportFormat; label: string; about: string; ending: string; type: string }[] = [
  { format: "html", label: "Report", about: "this report as one file", ending: "html", type: "text/html" },
  { format: "json", label: "JSON", about: "the report for programs", ending: "json", type: "application/json" },
  { format: "csv", label: "CSV", about: "one row per command", ending: "csv", type: "text/csv" },
  {
    format: "slim",
    label: "Anonymised capture",
    about: "headers only; names and addresses replaced",
    ending: "anonymised.pcapng.zst",
    type: "application/octet-stream",
  },
];

const place = document.getElementById("page") as HTMLElement;

/** Shows the place to drop captures. */
function showStart(problem?: string): void {
  document.title = "smbscope: drop a capture";
  const input = h("input", { type: "file", multiple: true, id: "files", class: "visually-hidden" });
  input.addEventListener("change", () => void analyse([...(input.files ?? [])]));
  place.replaceChildren(
    h(
      "main",
      { class: "drop", id: "main" },
      h("h1", {}, "Why is the share slow?"),
      problem === undefined ? null : h("p", { class: "failure", role: "alert" }, problem),
      h(
        "label",
        { class: "zone", for: "files" },
        h("strong", {}, "Drop SMB captures here"),
        h(
          "span",
          {},
          "or choose files: pcap, pcapng and others, also compressed. Several form one capture; files with keys decrypt it.",
        ),
        input,
      ),
      h(
        "p",
        { class: "muted" },
        "The analysis runs in this page. It sends nothing: its security policy forbids every connection, and it works offline.",
      ),
    ),
    h("footer", {}, licences()),
  );
}

/** Shows the progress of an analysis. Returns the function that updates it. */
function showProgress(files: File[], cancel: () => void): (done: number, total: number) => void {
  const names = files.length === 1 ? (files[0]?.name ?? "") : `${files.length} captures`;
  const bar = h("progress", { "aria-label": "Progress", max: 1 });
  const said = h("p", { class: "muted", "aria-live": "off" }, "Starting");
  const button = h("button", { type: "button", class: "quiet", click: cancel }, "Cancel");
  place.replaceChildren(
    h("main", { class: "drop", id: "main" }, h("h1", {}, `Analysing ${names}`), bar, said, h("p", {}, button)),
  );
  return (done, total) => {
    bar.value = total > 0 ? done / total : 0;
    said.textContent = `${bytes(done)} of ${bytes(total)} read`;
  };
}

async function analyse(files: File[]): Promise<void> {
  if (files.length === 0) return;
  let show = (_done: number, _total: number) => {};
  const analysis = new Analysis((done, total) => show(done, total));
  show = showProgress(files, () => {
    analysis.cancel();
    showStart();
  });
  try {
    await analysis.begin(files);
    const document = await (await analysis.exported("view")).text();
    place.replaceChildren(...shown(document));
    place.querySelector("main")?.prepend(exports(analysis, files[0]?.name ?? "capture"));
    followAddress();
  } catch (error) {
    analysis.cancel();
    showStart(messageOf(error));
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Creates the bar with the exports. */
function exports(analysis: Analysis, name: string): HTMLElement {
  const stem = name.replace(/\.(pcapng|pcap|cap|snoop|erf|gz|zst|lz4|xz)+$/i, "");
  const said = h("span", { class: "muted", role: "status" });
  const buttons = SAVED.map(({ format, label, about, ending, type }) => {
    const button = h("button", { type: "button", class: "quiet", title: about, "data-format": format }, label);
    button.addEventListener("click", () => void saveIt(format, ending, type));
    return button;
  });
  async function saveIt(format: ExportFormat, ending: string, type: string): Promise<void> {
    for (const button of buttons) button.disabled = true;
    said.textContent = "Writing";
    try {
      save(`${stem}.${ending}`, type, await analysis.exported(format));
      said.textContent = "";
    } catch (error) {
      said.textContent = messageOf(error);
    }
    for (const button of buttons) button.disabled = false;
  }
  const again = h("button", { type: "button", class: "quiet", click: () => location.reload() }, "Other captures");
  return h("div", { class: "exports no-print" }, h("span", {}, "Save"), ...buttons, said, again);
}

addEventListener("dragover", (event) => {
  event.preventDefault();
  place.querySelector(".zone")?.classList.add("over");
});
addEventListener("dragleave", () => place.querySelector(".zone")?.classList.remove("over"));
addEventListener("drop", (event) => {
  event.preventDefault();
  if (place.querySelector(".zone")) void analyse([...(event.dataTransfer?.files ?? [])]);
});

/** Adds the licences of crates to the page's other licences, and shows the start. */
async function start(): Promise<void> {
  document.getElementById("smbscope-notices")?.append("\n\n----\n\n", await embedded("smbscope-crates").text());
  showStart();
}
void start();
