// Creates elements. Text only becomes text nodes and attribute values, so a name from a capture can never become markup.
import { ABSENT, clean } from "./format";

export type Child = Node | string | number | null | undefined | false;
type Attribute = string | number | boolean | null | undefined | ((event: Event) => void);
type Attributes = Record<string, Attribute>;

/** Creates an HTML element. An attribute that is a function becomes a listener for the event of that name. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  furnish(element, attributes, children);
  return element;
}

/** Creates an SVG element. */
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

/** Appends nodes and texts. Removes misleading characters from texts. */
export function append(element: Element, ...children: Child[]): void {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : clean(String(child)));
  }
}

/** Creates the dash for an unknown value. */
export function muted(): HTMLElement {
  return h("span", { class: "muted" }, ABSENT);
}
