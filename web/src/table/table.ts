// Table with sorting, filtering and export. Only visible rows are in the document, so that ten thousand rows stay fast.
import { announce, copyButton, save } from "../lib/clipboard";
import { append, h } from "../lib/dom";
import { counted, thousands } from "../lib/format";
import { onPeriod, type Period } from "../lib/period";
import { onPrint } from "../lib/print";
import { onSelection, type RowTests, SELECTION_KINDS, type Selection, selectionText } from "../lib/selection";
import { type Column, cellText, matches, sorted } from "./columns";
import { csv, tsv } from "./export";

/** Height of a row in pixels, as in tables.css. */
const ROW_HEIGHT = 33;

/** Number of rows visible without scrolling. */
const IN_VIEW = 14;

/** Number of rows drawn above and below the visible ones. */
const MARGIN = 12;

/** Horizontal padding of a cell in rem, as in tables.css. */
const PADDING = 1;

/** Number of rows in print. */
export const PRINTED = 25;

/** Number of characters across a printed page. */
const PAPER_CHARACTERS = 130;

export interface TableOptions<Row> {
  /** Caption, also used for the file name. */
  caption: string;
  columns: Column<Row>[];
  rows: readonly Row[];
  /** Initial sort column. Defaults to the order of the document. */
  sort?: { title: string; descending: boolean };
  /** Child rows, shown when the row is expanded. */
  children?: (row: Row) => readonly Row[];
  /** Legend of bars in cells, below the table. */
  legend?: HTMLElement | undefined;
  /** Text below the table. */
  note?: string | undefined;
  /** True for a filter box. Defaults to true if there are more than ten rows. */
  filter?: boolean;
  /** Period of a row. The table then follows the zoomed period. */
  time?: (row: Row) => readonly [from: number, to: number];
  /** Tests of rows for selections that the table follows. */
  only?: RowTests<Row> | undefined;
}

interface Line<Row> {
  row: Row;
  depth: number;
  open: boolean | null;
}

export function table<Row>(options: TableOptions<Row>): HTMLElement {
  return new Table(options).element;
}

/** Estimates the width of a text in digits. Capitals are wider than digits. */
function widthOf(text: string): number {
  return text.length + 0.22 * (text.match(/[A-Z_]/g)?.length ?? 0);
}

/** Leaves out columns without any value, except the first. */
function withValues<Row>(columns: Column<Row>[], rows: readonly Row[]): Column<Row>[] {
  return columns.filter((column, i) => i === 0 || rows.some((row) => column.value(row) !== null));
}

function onScreen<Row>(column: Column<Row>): string {
  return column.screenOnly ? "no-print" : "";
}

/** Gives an element these children. Does not touch those that are there already, in the same order. */
function place(parent: HTMLElement, children: readonly HTMLElement[]): void {
  const kept = new Set<Element>(children);
  for (const child of [...parent.children]) if (!kept.has(child)) child.remove();
  for (const [i, child] of children.entries()) {
    const found = parent.children[i] ?? null;
    if (found !== child) parent.insertBefore(child, found);
  }
}

class Table<Row> {
  readonly element: HTMLElement;
  private readonly options: TableOptions<Row>;
  private readonly scroller: HTMLElement;
  private readonly body = h("tbody");
  private readonly status = h("p", { class: "table-status" });
  private readonly printNote = h("p", { class: "print-only table-note" });
  private readonly headings: HTMLElement[] = [];
  private readonly opened = new Set<Row>();
  private order: Row[];
  private lines: Line<Row>[] = [];
  private words: string[] = [];
  private period: Period | null = null;
  private selection: Selection | null = null;
  private sortColumn: Column<Row> | undefined;
  private descending = true;
  private printing = false;
  private drawn = "";
  /** Rows in the document by their index. They stay while the table scrolls, so that one with the focus keeps it. */
  private readonly placed = new Map<number, HTMLElement>();

  constructor(given: TableOptions<Row>) {
    const options = { ...given, columns: withValues(given.columns, given.rows) };
    this.options = options;
    this.order = [...options.rows];
    this.sortColumn = options.columns.find((column) => column.title === options.sort?.title);
    this.descending = options.sort?.descending ?? true;
    const caption = h("caption", { class: "visually-hidden" }, options.caption);
    const head = h("thead", {}, h("tr", {}, ...options.columns.map((column) => this.heading(column))));
    const columns = h(
      "colgroup",
      {},
      ...options.columns.map((column) => h("col", { style: this.width(column), class: onScreen(column) })),
    );
    const grid = h("table", {}, caption, columns, head, this.body);
    if (options.rows.some((row) => (options.children?.(row) ?? []).length > 0)) grid.className = "tree";
    this.scroller = h(
      "div",
      {
        class: "scroller",
        tabindex: 0,
        role: "region",
        "aria-label": `${options.caption}, table`,
        scroll: () => {
          this.element.classList.toggle("moved", this.scroller.scrollLeft > 0);
          this.draw();
        },
      },
      grid,
    );
    const kinds = ["table", options.time && "timed", this.fitsPaper() && "fits-paper"].filter(Boolean);
    const attributes = { class: kinds.join(" "), style: `--needed: ${this.needed()}` };
    this.element = h("div", attributes, this.tools(), this.scroller, this.status, this.printNote);
    if (options.legend) append(this.element, options.legend);
    if (options.note) append(this.element, h("p", { class: "table-note" }, options.note));
    this.arrange();
    if (options.time) {
      onPeriod(this.element, (period) => {
        this.period = period;
        this.arrange();
      });
    }
    const { only } = options;
    if (only) {
      const kinds = SELECTION_KINDS.filter((kind) => only[kind]);
      onSelection(this.element, kinds, (selection) => {
        this.selection = selection && only[selection.kind] ? selection : null;
        this.scroller.scrollTop = 0;
        this.arrange();
      });
    }
    onPrint((printing) => {
      this.printing = printing;
      this.draw();
    });
  }

  /** Creates the filter box and the buttons. */
  private tools(): HTMLElement {
    const { caption, columns, rows, filter } = this.options;
    const tools = h("div", { class: "table-tools no-print" });
    if (filter ?? rows.length > 10) {
      const box = h("input", {
        type: "search",
        placeholder: "Filter",
        "aria-label": `Filter ${caption}`,
        input: () => {
          this.words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
          this.scroller.scrollTop = 0;
          this.arrange();
          announce(`${counted(this.lines.length, "row")} shown`);
        },
      });
      append(tools, box);
    }
    const shown = () => this.lines.map((line) => line.row);
    const file = `smbscope-${caption.toLowerCase().replace(/[^a-z0-9]+/g, "-")}.csv`;
    append(
      tools,
      copyButton("Copy", () => tsv(columns, shown()), { "aria-label": `Copy ${caption} as tab-separated text` }),
      h(
        "button",
        {
          type: "button",
          class: "quiet",
          "aria-label": `Save ${caption} as CSV`,
          click: () => save(file, "text/csv", csv(columns, shown())),
        },
        "CSV",
      ),
    );
    return tools;
  }

  private heading(column: Column<Row>): HTMLElement {
    const button = h("button", { type: "button", click: () => this.sortBy(column) }, column.title);
    if (column.help) button.title = column.help;
    const kind = `${column.kind} ${onScreen(column)}`.trim();
    const cell = h("th", { scope: "col", class: kind, "data-title": column.title }, button);
    this.headings.push(cell);
    return cell;
  }

  private sortBy(column: Column<Row>): void {
    this.descending = this.sortColumn === column ? !this.descending : column.kind !== "text";
    this.sortColumn = column;
    this.scroller.scrollTop = 0;
    this.arrange();
    announce(`Sorted by ${column.title}, ${this.descending ? "descending" : "ascending"}`);
  }

  /** Returns the width of a column in characters: its longest value among at most 300 rows. */
  private characters(column: Column<Row>): number {
    if (column.width !== undefined && column.kind !== "text") return column.width;
    const { rows } = this.options;
    const step = Math.max(1, Math.floor(rows.length / 300));
    // The title of the column that sorts is bold.
    const bold = this.options.sort?.title === column.title ? 1 : 0;
    let longest = column.title.length + 2 + bold + 0.5 * (column.title.match(/m/g)?.length ?? 0);
    for (let i = 0; i < rows.length; i += step) {
      const row = rows[i];
      if (row !== undefined) longest = Math.max(longest, widthOf(cellText(column, row)));
    }
    return Math.min(Math.ceil(longest), column.width ?? (column.kind === "text" ? 44 : 24));
  }

  /** Returns the style of a column. The elastic one takes the remaining width. */
  private width(column: Column<Row>): string {
    return column === this.elastic() ? "" : `width: calc(${this.characters(column)}ch + ${PADDING}rem)`;
  }

  private elastic(): Column<Row> | undefined {
    const { columns } = this.options;
    return columns.find((column) => column.cutStart) ?? columns.find((column) => column.kind === "text");
  }

  /** Returns the width at which nothing scrolls sideways. In a narrow window, the elastic column leaves room for figures. */
  private needed(): string {
    const { columns } = this.options;
    const elastic = this.elastic();
    const others = columns.filter((column) => column !== elastic);
    const fixed = others.reduce((sum, column) => sum + this.characters(column), 0);
    const rest = elastic ? ` + min(${this.characters(elastic)}ch, 36cqw)` : "";
    return `calc(${fixed}ch + ${columns.length * PADDING}rem${rest})`;
  }

  /** Returns true if only values of the elastic column have to wrap on paper. */
  private fitsPaper(): boolean {
    const printed = this.options.columns.filter((column) => !column.screenOnly);
    const characters = (column: Column<Row>) => Math.min(this.characters(column), column === this.elastic() ? 20 : 99);
    return printed.reduce((sum, column) => sum + characters(column) + 1, 0) <= PAPER_CHARACTERS;
  }

  /** Filters, sorts and redraws. */
  private arrange(): void {
    const { columns, rows, children } = this.options;
    const wanted = (row: Row) => this.words.length === 0 || matches(columns, row, this.words);
    const chosen = rows.filter((row) => this.within(row) && this.isSelected(row));
    const kept = chosen.filter((row) => wanted(row) || (children?.(row) ?? []).some(wanted));
    this.order = this.sortColumn ? sorted(kept, this.sortColumn, this.descending) : kept;
    for (const [i, column] of columns.entries()) {
      const direction = column === this.sortColumn ? (this.descending ? "descending" : "ascending") : "none";
      this.headings[i]?.setAttribute("aria-sort", direction);
    }
    this.lines = this.order.flatMap((row) => this.unfolded(row, 0));
    this.drawn = "";
    this.placed.clear();
    this.draw();
  }

  /** Returns true if a row overlaps the zoomed period. */
  private within(row: Row): boolean {
    const { period } = this;
    const time = this.options.time?.(row);
    return !period || !time || (time[0] < period.to && time[1] >= period.from);
  }

  private isSelected(row: Row): boolean {
    const { selection } = this;
    const test = selection && this.options.only?.[selection.kind];
    return !test || test(row, selection);
  }

  private unfolded(row: Row, depth: number): Line<Row>[] {
    const below = this.options.children?.(row) ?? [];
    if (below.length === 0) return [{ row, depth, open: null }];
    // A match may be in a child row.
    const open = this.opened.has(row) || this.words.length > 0;
    const kept = this.sortColumn ? sorted(below, this.sortColumn, this.descending) : [...below];
    const lines = open ? kept.flatMap((child) => this.unfolded(child, depth + 1)) : [];
    return [{ row, depth, open }, ...lines];
  }

  /** Puts the visible rows into the document. */
  private draw(): void {
    const count = this.lines.length;
    const height = this.scroller.clientHeight || ROW_HEIGHT * IN_VIEW;
    const first = this.printing ? 0 : Math.max(0, Math.floor(this.scroller.scrollTop / ROW_HEIGHT) - MARGIN);
    const rows = this.printing ? PRINTED : Math.ceil(height / ROW_HEIGHT) + 2 * MARGIN;
    const last = Math.min(count, first + rows);
    const key = `${first} ${last} ${this.printing}`;
    if (key === this.drawn) return;
    this.drawn = key;
    const space = (lines: number) =>
      h(
        "tr",
        { class: "space", "aria-hidden": "true", style: `height: ${lines * ROW_HEIGHT}px` },
        h("td", { colspan: this.options.columns.length }),
      );
    const content: HTMLElement[] = [];
    if (first > 0) content.push(space(first));
    for (let i = first; i < last; i += 1) {
      const line = this.lines[i];
      const row = this.placed.get(i) ?? (line && this.rowElement(line, i));
      if (!row) continue;
      this.placed.set(i, row);
      content.push(row);
    }
    for (const i of this.placed.keys()) if (i < first || i >= last) this.placed.delete(i);
    if (last < count && !this.printing) content.push(space(count - last));
    if (count === 0) {
      content.push(
        h("tr", {}, h("td", { class: "empty", colspan: this.options.columns.length }, `No rows${this.limits()}`)),
      );
    }
    place(this.body, content);
    this.body.parentElement?.setAttribute("aria-rowcount", String(count + 1));
    const total = this.options.rows.length;
    const shown = this.order.length;
    const all = total > IN_VIEW ? counted(total, "row") : "";
    const some = `${thousands(shown)} of ${counted(total, "row")}`;
    const limits = this.limits();
    this.status.textContent = limits !== "" ? `${some}${limits}` : shown < total ? some : all;
    this.printNote.textContent = count > last ? `The first ${last} of ${thousands(count)} rows are printed.` : "";
  }

  /** Formats the selection and the zoomed period: ` for client 10.0.0.5 in 23.0 s – 31.5 s`. */
  private limits(): string {
    const chosen = this.selection ? ` for ${selectionText(this.selection)}` : "";
    return `${chosen}${this.period ? ` in ${this.period.text}` : ""}`;
  }

  private rowElement(line: Line<Row>, index: number): HTMLElement {
    let toggleDone = line.open === null;
    const cells = this.options.columns.map((column) => {
      const cut = column.cutStart ? "cut-start" : "";
      const elastic = column === this.elastic() ? "elastic" : "";
      const cell = h("td", { class: [column.kind, onScreen(column), cut, elastic].filter(Boolean).join(" ") });
      const text = cellText(column, line.row);
      if (!toggleDone && column.kind === "text") {
        toggleDone = true;
        append(
          cell,
          h(
            "button",
            {
              type: "button",
              class: "fold",
              "aria-expanded": String(line.open),
              click: () => this.toggle(line, index),
            },
            column.cell ? column.cell(line.row) : text,
          ),
        );
      } else {
        append(cell, column.cell ? column.cell(line.row) : cut ? h("bdi", { dir: "ltr" }, text) : text);
      }
      if (column.kind === "text" && text.length > 20) cell.title = text;
      return cell;
    });
    const attributes = {
      "aria-rowindex": index + 2,
      class: `depth-${line.depth}${line.open === null ? "" : " foldable"}`,
    };
    return h("tr", attributes, ...cells);
  }

  private toggle(line: Line<Row>, index: number): void {
    if (!this.opened.delete(line.row)) this.opened.add(line.row);
    this.arrange();
    // The button was recreated: keeps the focus on the row.
    const row = this.body.querySelector(`tr[aria-rowindex="${index + 2}"]`);
    row?.querySelector<HTMLElement>("button.fold")?.focus();
  }
}
