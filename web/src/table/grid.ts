// Plain table without sorting and filtering.
import { type Child, h } from "../lib/dom";

export interface GridOptions {
  caption: string;
  /** Headings, which may be empty, with the class of their column. */
  columns: readonly (readonly [title: string, kind?: string])[];
  /** Cells of each row. The first is the row heading. */
  rows: readonly (readonly Child[])[];
  kind?: string;
  rowKind?: (index: number) => string;
  /** True to display the caption. */
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

/** Creates a plain table that scrolls within itself. */
export function scrollingGrid(options: GridOptions, wide = false): HTMLElement {
  const kind = wide ? "plain-table wide" : "plain-table";
  const within = grid({ ...options, kind: `grid ${options.kind ?? ""}`.trim() });
  return h("div", { class: kind, tabindex: 0, role: "region", "aria-label": options.caption }, within);
}
