// Elements from code. Text only ever becomes text nodes and attribute values, so that a name from a capture can never
// become markup.
import { ABSENT, clean } from "./format";

export type Child = Node | string | number | null | undefined | false;
type Attribute = string | number | boolean | null | undefined | ((event: Event) => void);
type Attributes = Record<string, Attribute>;

/** An HTML element; attributes that are functions listen to the event of that name. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  furnish(element, attributes, children);
  return element;
}

/** The same for SVG. */
export function s<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  furnish(element, attributes, children);
  return element;
}

function furnish(element: Element, attributes: Attributes, children: Child[]): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== undefined && value !== null && value !== false) element.setAttribute(name, String(value));
  }
  append(element, ...children);
}

/** Adds nodes and texts; texts from a capture lose what could mislead the eye. */
export function append(element: Element, ...children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : clean(String(child)));
  }
}

/** What stands for what is not known, where it is more than a text. */
export function muted(): HTMLElement {
  return h("span", { class: "muted" }, ABSENT);
}
