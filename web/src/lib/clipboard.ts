// Copying to the clipboard and saving a file, both without leaving the page.
import { h } from "./dom";

/** Copies a text to the clipboard. Returns false if the browser refuses. */
export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // No permission, or an old browser that refuses for pages opened from a file.
    const area = h("textarea", { class: "visually-hidden", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

/** Creates a button that copies a text and confirms it briefly. */
export function copyButton(label: string, text: () => string, attributes: Record<string, string> = {}): HTMLElement {
  const button = h("button", { type: "button", class: "quiet", ...attributes }, label);
  button.addEventListener("click", async (event) => {
    event.stopPropagation();
    const done = await copy(text());
    announce(done ? "Copied" : "Copy failed");
    button.textContent = done ? "Copied" : "Copy failed";
    setTimeout(() => {
      button.textContent = label;
    }, 1_500);
  });
  return button;
}

/** Offers the content as a file. */
export function save(name: string, type: string, content: BlobPart): void {
  const address = URL.createObjectURL(new Blob([content], { type }));
  const link = h("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** Announces a change to screen readers. */
export function announce(text: string): void {
  const region = document.getElementById("announcements");
  if (region) region.textContent = text;
}
