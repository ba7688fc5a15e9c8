// The frame of every page: heading, links to the sections, the switch between light and dark, and the footer.
import { copyButton } from "./clipboard";
import { append, type Child, h } from "./dom";
import { periodChip, setPeriod } from "./period";

export interface Section {
  id: string;
  /** Heading, and the link to it. */
  title: string;
  /** Shorter, for the link. */
  link?: string;
  content: Child[];
}

export interface Page {
  title: string;
  /** Beneath the title. */
  facts: Child[];
  sections: (Section | null)[];
  version: string;
}

export function page({ title, facts, sections, version }: Page): HTMLElement[] {
  const shown = sections.filter((section): section is Section => section !== null);
  const links = shown.map(({ id, title, link }) => h("a", { href: `#${id}` }, link ?? title));
  const bar = h(
    "header",
    { class: "bar no-print" },
    h("span", { class: "brand" }, "smbscope"),
    h("nav", { "aria-label": "Sections" }, ...links),
    periodChip(),
    themeSwitch(),
  );
  const head = h("div", { class: "head" }, h("h1", {}, title), ...facts);
  const main = h("main", { id: "main" }, head, ...shown.map(sectionElement));
  return [
    h("a", { class: "skip no-print", href: "#main" }, "To the report"),
    bar,
    main,
    footer(version),
    h("div", { id: "announcements", class: "visually-hidden", role: "status", "aria-live": "polite" }),
  ];
}

function sectionElement({ id, title, content }: Section): HTMLElement {
  const heading = h("h2", { id: `${id}-heading` }, title);
  const element = h("section", { id, "aria-labelledby": `${id}-heading` }, heading);
  append(element, ...content);
  return element;
}

/** A section; none where it has no content. */
export function section(id: string, title: string, content: Child[], link?: string): Section | null {
  return content.some(Boolean) ? { id, title, content, ...(link === undefined ? {} : { link }) } : null;
}

/** A part of a section with a heading of its own. */
export function part(title: string, ...content: Child[]): HTMLElement {
  return h("div", { class: "part" }, h("h3", {}, title), ...content);
}

/** A part of the first screen, which is no section. */
export function headPart(title: string, ...content: Child[]): HTMLElement {
  return h("div", { class: "part" }, h("h2", {}, title), ...content);
}

/** Text beneath a heading. */
export function lead(...content: Child[]): HTMLElement {
  return h("p", { class: "lead" }, ...content);
}

/** A term and its value. */
export function facts(entries: [string, Child][]): HTMLElement {
  return h("dl", { class: "facts" }, ...entries.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

/** Terms and what they mean. */
export function meanings(entries: readonly [string, string][]): HTMLElement {
  return h("dl", { class: "meanings" }, ...entries.flatMap(([name, text]) => [h("dt", {}, name), h("dd", {}, text)]));
}

export function list(texts: readonly Child[], kind?: string): HTMLElement {
  return h("ul", { class: kind }, ...texts.map((text) => h("li", {}, text)));
}

/** The box in which the answer stands, in the colour of the culprit. */
export function answerBox(culprit: string, ...content: Child[]): HTMLElement {
  return h("div", { class: `answer culprit-${culprit}` }, ...content);
}

/** The same for what is not about a culprit: a ramp, a column, a study. */
export function resultBox(culprit: string, about: string, headline: string | null, ...content: Child[]): HTMLElement {
  return answerBox(
    culprit,
    h("p", { class: "about" }, about),
    headline === null ? null : h("p", { class: "headline" }, headline),
    ...content,
  );
}

/** Commands that look closer, to paste. */
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

/** One of several things that can be chosen, in each place that shows something of it. */
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

  /** A place that shows what is chosen, with a box to choose by where there is a choice. */
  place(show: (value: Value) => Child[]): HTMLElement {
    const content = h("div");
    const select = h(
      "select",
      { change: () => this.choose(select.selectedIndex) },
      ...this.options.map(({ name }, i) => h("option", { value: i, selected: i === this.at }, name)),
    );
    const draw = () => {
      const option = this.options[this.at];
      content.replaceChildren();
      if (option) append(content, ...show(option.value));
    };
    draw();
    this.places.push({ select, draw });
    const label = h("label", { class: "choice no-print" }, this.label, select);
    return h("div", {}, this.options.length > 1 ? label : null, content);
  }

  private choose(at: number): void {
    // What is zoomed to may not be there in what comes now.
    setPeriod(null);
    this.at = at;
    for (const { select, draw } of this.places) {
      select.selectedIndex = at;
      draw();
    }
  }
}

/** A figure that is read at a glance. */
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

/** Follows the system until pressed. */
function themeSwitch(): HTMLElement {
  const root = document.documentElement;
  const isDark = () =>
    (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const button = h("button", { type: "button", class: "quiet theme" });
  const say = () => {
    button.textContent = isDark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `Change to ${isDark() ? "light" : "dark"} colours`);
  };
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    say();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", say);
  say();
  return button;
}

function footer(version: string): HTMLElement {
  const notices = document.getElementById("smbscope-notices")?.textContent?.trim() ?? "";
  const text = h("pre", { tabindex: 0 });
  // Its own text, lines and all; names from captures go another way.
  text.textContent = notices;
  const summary = h("summary", {}, "Licences of what this page is made with");
  return h(
    "footer",
    {},
    h("p", {}, `Made with smbscope ${version}. This file holds all of it and loads nothing.`),
    h("details", { class: "no-print" }, summary, text),
  );
}
