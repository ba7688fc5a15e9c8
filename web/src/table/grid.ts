// A plain table: all of it is in the page, in the order of the document.
import { type Child, h } from "../lib/dom";

export interface GridOptions {
  caption: string;
  /** Headings with the class of their column; a heading may be empty. */
  columns: readonly (readonly [title: string, kind?: string])[];
  /** The first cell of a row names it. */
  rows: readonly (readonly Child[])[];
  /** Class of the table. */
  kind?: string;
  /** Classes of rows, by their index. */
  rowKind?: (index: number) => string;
  /** Whether the caption is there for all to see. */
  captioned?: boolean;
}

export function grid({ caption, columns, rows, kind, rowKind, captioned }: GridOptions): HTMLElement {
  const head = columns.map(([title, kind]) =>
    title ? h("th", { scope: "col", class: kind }, title) : h("td", { class: kind }),
  );
  const body = rows.map((cells, index) =>
    h(
      "tr",
      { class: rowKind?.(index) },
      ...cells.map((cell, i) =>
        i === 0 ? h("th", { scope: "row" }, cell) : h("td", { class: columns[i]?.[1] }, cell),
      ),
    ),
  );
  return h(
    "table",
    { class: kind },
    h("caption", { class: captioned ? null : "visually-hidden" }, caption),
    h("thead", {}, h("tr", {}, ...head)),
    h("tbody", {}, ...body),
  );
}

/** The same in a place of its own that scrolls where it is too wide. */
export function scrollingGrid(options: GridOptions, wide = false): HTMLElement {
  const kind = wide ? "plain-table wide" : "plain-table";
  const within = grid({ ...options, kind: `grid ${options.kind ?? ""}`.trim() });
  return h("div", { class: kind, tabindex: 0, role: "region", "aria-label": options.caption }, within);
}
