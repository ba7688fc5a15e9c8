// Copying to the clipboard and saving a file, both without leaving the page.
import { h } from "./dom";

/** Whether the text is in the clipboard now. */
export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // No permission, or an old browser with a page from a file.
    const area = h("textarea", { class: "visually-hidden", "aria-hidden": "true" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

/** A button that copies a text and says so for a moment. */
export function copyButton(label: string, text: () => string, attributes: Record<string, string> = {}): HTMLElement {
  const button = h("button", { type: "button", class: "quiet", ...attributes }, label);
  button.addEventListener("click", async (event) => {
    event.stopPropagation();
    const done = await copy(text());
    announce(done ? "Copied" : "Could not be copied");
    button.textContent = done ? "Copied" : "Not copied";
    setTimeout(() => {
      button.textContent = label;
    }, 1_500);
  });
  return button;
}

/** Offers the text as a file. */
export function save(name: string, type: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = h("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** Says something to those who cannot see it happen. */
export function announce(text: string): void {
  const region = document.getElementById("announcements");
  if (region) region.textContent = text;
}
