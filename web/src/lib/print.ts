// Notifies tables and charts before and after printing.

type Listener = (printing: boolean) => void;

const listeners: Listener[] = [];

/** Calls the listener before and after printing. */
export function onPrint(listener: Listener): void {
  if (listeners.length === 0) {
    const tell = (printing: boolean) => {
      for (const each of listeners) each(printing);
    };
    addEventListener("beforeprint", () => tell(true));
    addEventListener("afterprint", () => tell(false));
    matchMedia("print").addEventListener("change", (event) => tell(event.matches));
  }
  listeners.push(listener);
}
