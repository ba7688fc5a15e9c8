// Frame of every page: heading, navigation, dark mode switch and footer.
import { copyButton } from "./clipboard";
import { append, type Child, h } from "./dom";
import { periodChip, setPeriod } from "./period";
import { selectionChip } from "./selection";

export interface Section {
  id: string;
  title: string;
  /** Shorter title for the navigation. */
  link?: string;
  /** True for a section that is shown with every selection. */
  always?: true;
  content: Child[];
}

export interface Page {
  title: string;
  /** Content between the title and the first section. */
  facts: Child[];
  /** Parts above the sections that the navigation links to. */
  links?: (Pick<Section, "id" | "title"> | false)[];
  sections: (Section | null)[];
  version: string;
}

export function page({ title, facts, links: above = [], sections, version }: Page): HTMLElement[] {
  const shown = sections.filter((section): section is Section => section !== null);
  const linked: Pick<Section, "id" | "title" | "link">[] = [...above.filter((link) => link !== false), ...shown];
  const links = linked.map(({ id, title, link }) => h("a", { href: `#${id}` }, link ?? title));
  const bar = h(
    "header",
    { class: "bar no-print" },
    h("span", { class: "brand" }, "smbscope"),
    h("nav", { "aria-label": "Sections" }, ...links),
    selectionChip(),
    periodChip(),
    themeSwitch(),
  );
  const head = h("div", { class: "head" }, h("h1", {}, title), ...facts);
  const main = h("main", { id: "main", tabindex: -1 }, head, ...shown.map(sectionElement));
  return [
    h("a", { class: "skip no-print", href: "#main" }, "Skip to content"),
    bar,
    main,
    footer(version),
    h("div", { id: "announcements", class: "visually-hidden", role: "status", "aria-live": "polite" }),
  ];
}

function sectionElement({ id, title, content, always }: Section): HTMLElement {
  const heading = h("h2", { id: `${id}-heading` }, title);
  const element = h("section", { id, "aria-labelledby": `${id}-heading`, "data-always": always }, heading);
  append(element, ...content);
  return element;
}

/** Creates a section. Returns null if it has no content. */
export function section(id: string, title: string, content: Child[], link?: string): Section | null {
  return content.some(Boolean) ? { id, title, content, ...(link === undefined ? {} : { link }) } : null;
}

/** Creates a subsection. */
export function part(title: string, ...content: Child[]): HTMLElement {
  return h("div", { class: "part" }, h("h3", {}, title), ...content);
}

/** Creates a subsection of the first screen, which has no section heading above it. */
export function headPart(title: string, content: Child, id: string | null = null): HTMLElement {
  return h("div", { class: "part", id }, h("h2", {}, title), content);
}

/** Creates the introduction below a heading. */
export function lead(...content: Child[]): HTMLElement {
  return h("p", { class: "lead" }, ...content);
}

/** Creates an introduction about everything, which a selection hides. */
export function wholeLead(...content: Child[]): HTMLElement {
  return h("p", { class: "lead whole" }, ...content);
}

/** Creates a list of names and values. */
export function facts(entries: [string, Child][]): HTMLElement {
  return h("dl", { class: "facts" }, ...entries.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

/** Creates a list of definitions. */
export function meanings(entries: readonly [string, string][]): HTMLElement {
  return h("dl", { class: "meanings" }, ...entries.flatMap(([name, text]) => [h("dt", {}, name), h("dd", {}, text)]));
}

export function list(texts: readonly Child[], kind?: string): HTMLElement {
  return h("ul", { class: kind }, ...texts.map((text) => h("li", {}, text)));
}

/** Creates the box for an answer, in the culprit's colour. */
export function answerBox(culprit: string, ...content: Child[]): HTMLElement {
  return h("div", { class: `answer culprit-${culprit}` }, ...content);
}

/** Creates the box for the result of a ramp, a column or a study. */
export function resultBox(culprit: string, about: string, headline: string | null, ...content: Child[]): HTMLElement {
  return answerBox(
    culprit,
    h("p", { class: "about" }, about),
    headline === null ? null : h("p", { class: "headline" }, headline),
    ...content,
  );
}

/** Lists suggested commands, ready to copy. */
export function whatNext(steps: readonly { label: string; command: string }[] = []): HTMLElement | null {
  if (steps.length === 0) return null;
  const lines = steps.map(({ label, command }) =>
    h(
      "li",
      {},
      h("span", { class: "muted" }, label),
      h("code", {}, command),
      copyButton("Copy", () => command, { "aria-label": `Copy ${command}` }),
    ),
  );
  return h("div", { class: "part next" }, h("h2", {}, "What next"), h("ul", {}, ...lines));
}

/** Shows a command, ready to copy. */
export function commandLine(label: string, command: string): HTMLElement {
  const copy = copyButton("Copy", () => command, { "aria-label": `Copy ${command}` });
  return h("p", { class: "command" }, h("span", { class: "muted" }, label), h("code", {}, command), copy);
}

/** Selection that several places of the page share, such as a load point. */
export class Choice<Value> {
  private at: number;
  private readonly places: { select: HTMLSelectElement; draw(): void }[] = [];

  constructor(
    private readonly label: string,
    private readonly options: readonly { name: string; value: Value }[],
    first: number,
  ) {
    this.at = first;
  }

  /** Creates a place that shows the selected value, with a select box if there are several. */
  place(show: (value: Value) => Child[]): HTMLElement {
    const content = h("div");
    const said = h("p", { class: "print-only choice-said" });
    const select = h(
      "select",
      { change: () => this.choose(select.selectedIndex) },
      ...this.options.map(({ name }, i) => h("option", { value: i, selected: i === this.at }, name)),
    );
    const draw = () => {
      const option = this.options[this.at];
      content.replaceChildren();
      said.textContent = option ? `${this.label}: ${option.name}` : "";
      if (option) append(content, ...show(option.value));
    };
    draw();
    this.places.push({ select, draw });
    const label = h("label", { class: "choice no-print" }, this.label, select);
    return h("div", {}, ...(this.options.length > 1 ? [label, said] : []), content);
  }

  private choose(at: number): void {
    // The new selection may not cover the zoomed period.
    setPeriod(null);
    this.at = at;
    for (const { select, draw } of this.places) {
      select.selectedIndex = at;
      draw();
    }
  }
}

/** Opens a dialog. Closing it returns the focus to the element that had it. */
export function openDialog(label: string, title: string, ...content: Child[]): void {
  const close = h("button", { type: "button", class: "quiet" }, "Close");
  const dialog = h(
    "dialog",
    { "aria-label": label },
    h("div", { class: "dialog-head" }, h("h2", {}, title), close),
    ...content,
  );
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  // A click on the backdrop closes it, too.
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  document.body.append(dialog);
  dialog.showModal();
}

/** Creates a key figure. */
export function tile(name: string, value: string, more?: string): HTMLElement {
  return h(
    "div",
    { class: "tile" },
    h("dt", {}, name),
    h("dd", {}, h("span", { class: "value" }, value), more ? h("span", { class: "more" }, more) : null),
  );
}

export function tiles(...content: (HTMLElement | null)[]): HTMLElement {
  return h("dl", { class: "tiles" }, ...content);
}

/** Creates the dark mode switch. It follows the system until pressed. */
function themeSwitch(): HTMLElement {
  const root = document.documentElement;
  const isDark = () =>
    (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const button = h("button", { type: "button", class: "quiet theme" });
  const say = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `Switch to ${isDark() ? "light" : "dark"} mode`);
  };
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    say();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", say);
  say();
  return button;
}

/** Creates the licences of the libraries in the file, closed at first. */
export function licences(): HTMLElement {
  const text = h("pre", { tabindex: 0 });
  // Trusted text: keeps its line breaks.
  text.textContent = document.getElementById("smbscope-notices")?.textContent?.trim() ?? "";
  return h("details", { class: "no-print" }, h("summary", {}, "Third-party licences"), text);
}

function footer(version: string): HTMLElement {
  return h(
    "footer",
    {},
    h("p", {}, `Created by smbscope ${version}. This file is self-contained and loads nothing from the network.`),
    licences(),
  );
}
