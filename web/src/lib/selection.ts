// The selected client, share or file. Tables follow it; parts of the page without figures for it are hidden. A chip in the
// header clears it, and the fragment of the address keeps it: `#client=10.0.0.5`, `#slowest&share=home`.
import { announce } from "./clipboard";
import { type Child, h } from "./dom";

export type SelectionKind = "client" | "share" | "file";

export interface Selection {
  kind: SelectionKind;
  /** Address of a client, name of a share, or path of a file. */
  name: string;
  /** Share of a file, if known. */
  share: string | null;
}

/** Tests by kind for rows about a selection. A missing test means that rows do not say. */
export type RowTests<Row> = { [kind in SelectionKind]?: (row: Row, selection: Selection) => boolean };

export const SELECTION_KINDS: readonly SelectionKind[] = ["client", "share", "file"];

let current: Selection | null = null;

/** Callbacks by the element they belong to. */
const followers = new Map<HTMLElement, (selection: Selection | null) => void>();

let chip: HTMLElement | null = null;

export function clientSelection(client: string): Selection {
  return { kind: "client", name: client, share: null };
}

export function shareSelection(share: string): Selection {
  return { kind: "share", name: share, share: null };
}

export function fileSelection(path: string, share: string | null): Selection {
  return { kind: "file", name: path, share };
}

/** Formats `client 10.0.0.5`. */
export function selectionText({ kind, name, share }: Selection): string {
  return `${kind} ${share === null ? name : `${share}: ${name}`}`;
}

/** Creates tests of rows that name their client, share and path. */
export function namesTests<Row extends { client: string; share: string | null; path: string | null }>(): RowTests<Row> {
  return {
    client: (row, { name }) => row.client === name,
    share: (row, { name }) => row.share === name,
    file: (row, { name, share }) => row.path === name && row.share === share,
  };
}

/** Creates a button that selects. */
export function selectButton(selection: Selection, content: Child = selection.name): HTMLElement {
  const button = h(
    "button",
    {
      type: "button",
      class: "pick",
      title: `Show only ${selectionText(selection)}`,
      "data-select": fragmentOf(selection),
      click: (event) => {
        event.stopPropagation();
        for (const dialog of document.querySelectorAll("dialog")) dialog.close();
        select(selection, button);
      },
    },
    content,
  );
  return button;
}

/** Creates the chip for the sticky header. */
export function selectionChip(): HTMLElement {
  chip = h("button", { type: "button", class: "quiet chip only", hidden: true, click: () => select(null, null) });
  return chip;
}

/** Calls back whenever the selection changes. The element has figures for selections of these kinds. */
export function onSelection(
  element: HTMLElement,
  kinds: readonly SelectionKind[],
  follow: (selection: Selection | null) => void,
): void {
  element.dataset.by = kinds.join(" ");
  followers.set(element, follow);
}

/** Applies the selection of the address, once the page is complete, and follows changes of the address. */
export function followAddress(): void {
  const read = () => {
    const { section, selection } = parsed(location.hash);
    apply(selection);
    if (selection && section) document.getElementById(section)?.scrollIntoView();
  };
  addEventListener("hashchange", read);
  document.addEventListener("click", keepSelection);
  read();
}

/** Selects. The pressed button keeps its position in the window and the focus. */
function select(selection: Selection | null, pressed: HTMLElement | null): void {
  const before = pressed?.getBoundingClientRect().top ?? 0;
  const place = pressed?.closest<HTMLElement>(".table, .causes, .notes");
  apply(selection);
  if (selection) location.hash = fragmentOf(selection);
  else history.pushState(null, "", location.href.replace(/#.*$/, ""));
  announce(selection ? `Only ${selectionText(selection)}` : "Everything shown");
  const same = selection && place?.querySelector<HTMLElement>(`[data-select="${CSS.escape(fragmentOf(selection))}"]`);
  if (same && same.offsetParent !== null) {
    scrollBy({ top: same.getBoundingClientRect().top - before, behavior: "instant" });
    same.focus({ preventScroll: true });
  } else {
    scrollTo({ top: 0, behavior: "instant" });
    (selection ? chip : document.getElementById("main"))?.focus({ preventScroll: true });
  }
}

function apply(selection: Selection | null): void {
  if (JSON.stringify(selection) === JSON.stringify(current)) return;
  current = selection;
  if (selection) document.documentElement.dataset.selected = selection.kind;
  else delete document.documentElement.dataset.selected;
  if (chip) {
    chip.hidden = selection === null;
    chip.replaceChildren(...(selection ? [h("span", {}, `Only ${selectionText(selection)}`), "×"] : []));
    chip.title = "Show everything again";
  }
  for (const [element, follow] of followers) {
    if (element.isConnected) follow(selection);
    else followers.delete(element);
  }
  hideOthers(selection);
}

/** Parts that are shown or hidden as a whole. */
const PARTS = "main :is(section, .part, .table, figure, .tiles, .lost, .evidence)";

/** Hides parts and links of sections without figures for the selection. Lists the sections in `.hidden-sections`. */
function hideOthers(selection: Selection | null): void {
  const has = `[data-by~="${selection?.kind}"]:not([hidden])`;
  const hidden: string[] = [];
  for (const part of document.querySelectorAll<HTMLElement>(PARTS)) {
    if (part.closest("[data-always]")) continue;
    const isOther = selection !== null && !part.matches(has) && part.querySelector(has) === null;
    part.classList.toggle("unselected", isOther);
    if (isOther && part.matches("section")) hidden.push(part.querySelector("h2")?.textContent ?? "");
  }
  for (const link of document.querySelectorAll<HTMLAnchorElement>(".bar nav a")) {
    link.hidden = document.getElementById(link.hash.slice(1))?.classList.contains("unselected") ?? false;
  }
  const list = document.querySelector(".hidden-sections");
  if (list) list.textContent = hidden.join(", ");
}

/** Keeps the selection in the address when a link within the page is followed. */
function keepSelection(event: MouseEvent): void {
  const link = event.target instanceof Element ? event.target.closest<HTMLAnchorElement>('a[href^="#"]') : null;
  const target = link && document.getElementById(decoded(link.hash.slice(1)));
  if (!current || !link || !target) return;
  event.preventDefault();
  location.hash = `${target.id}&${fragmentOf(current)}`;
  target.scrollIntoView();
  target.setAttribute("tabindex", "-1");
  target.focus({ preventScroll: true });
}

function fragmentOf({ kind, name, share }: Selection): string {
  const parts = [`${kind}=${encodeURIComponent(name)}`];
  if (share !== null) parts.push(`share=${encodeURIComponent(share)}`);
  return parts.join("&");
}

/** Parses a fragment, as `fragmentOf` writes it, with the id of a section in front. */
export function parsed(fragment: string): { section: string | null; selection: Selection | null } {
  const parts = fragment.replace(/^#/, "").split("&");
  const values = new Map(
    parts.flatMap((part): [string, string][] => {
      const [name = "", value] = part.split("=");
      return value === undefined ? [] : [[name, decoded(value)]];
    }),
  );
  const section = parts[0] && !parts[0].includes("=") ? decoded(parts[0]) : null;
  const kind = (["file", "share", "client"] as const).find((kind) => values.get(kind));
  if (!kind) return { section, selection: null };
  const share = kind === "file" ? (values.get("share") ?? null) : null;
  return { section, selection: { kind, name: values.get(kind) ?? "", share } };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
