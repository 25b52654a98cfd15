import table from "./keys.json";

/** Keys of the page: one table makes handlers, help and hints. */
export interface Binding {
  id: string;
  keys: string[];
  words: string;
  where: string;
}

export const bindings: Binding[] = table;
const handlers = new Map<string, () => void>();

/** Have a key do something until the returned function is called. */
export function bind(actions: Record<string, () => void>): () => void {
  for (const [id, action] of Object.entries(actions)) handlers.set(id, action);
  return () => {
    for (const [id, action] of Object.entries(actions)) if (handlers.get(id) === action) handlers.delete(id);
  };
}

/** Return how a key press is written in the table. */
export function named(event: Pick<KeyboardEvent, "key" | "code" | "ctrlKey" | "shiftKey" | "altKey" | "metaKey">): string {
  if (event.altKey || event.metaKey) return "";
  if (!event.ctrlKey) return event.key;
  const key = event.code === "Period" ? "." : event.key;
  return `Ctrl+${event.shiftKey ? "Shift+" : ""}${key}`;
}

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && target.closest("input, textarea, select, .xterm, [role=alertdialog]") !== null;

export function listen(): void {
  document.addEventListener("keydown", (event) => {
    const name = named(event);
    const binding = bindings.find((one) => one.keys.includes(name));
    if (!binding || event.defaultPrevented) return;
    if (isTyping(event.target) && !name.startsWith("Ctrl+")) {
      if (name === "Escape" && !(event.target as HTMLElement).closest(".xterm")) (event.target as HTMLElement).blur();
      return;
    }
    // Enter and Space on a button are the button's.
    if (name === "Enter" && event.target instanceof HTMLElement && event.target.closest("button, a")) return;
    const action = handlers.get(binding.id);
    if (!action) return;
    event.preventDefault();
    action();
  });
}
