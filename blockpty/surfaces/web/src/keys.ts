import { useLayoutEffect } from "preact/hooks";
import table from "./keys.json";

/** Keys of the page: one table makes handlers, help and hints. */
export interface Binding {
  id: string;
  keys: string[];
  words: string;
  where: string;
}

// Those of the terminal program, which has the same table, are left out.
export const bindings: Binding[] = table.filter((one) => one.only !== "terminal");
type Action = (key: string) => void;
const handlers = new Map<string, Action>();

/**
 * Have keys do something, which is given the key, for as long as a component is shown. A layout effect: what useEffect
 * does and undoes comes a frame late, when a key would still go to a place that has gone, or not yet to the new one.
 */
export function useKeys(actions: Record<string, Action>): void {
  useLayoutEffect(() => {
    for (const [id, action] of Object.entries(actions)) handlers.set(id, action);
    return () => {
      for (const [id, action] of Object.entries(actions)) if (handlers.get(id) === action) handlers.delete(id);
    };
  });
}

/** Whether something is done now for a binding. */
export const handled = (id: string): boolean => handlers.has(id);

export function perform(id: string): void {
  handlers.get(id)?.("");
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

const LEADER = "g";
const LEADER_MS = 1200;
let leadUntil = 0;

/** Return the name of a press, with the `g` before it where that was pressed a moment ago. */
function sequence(event: KeyboardEvent): string {
  const name = named(event);
  const leads = performance.now() < leadUntil;
  leadUntil = !leads && name === LEADER && !isTyping(event.target) ? performance.now() + LEADER_MS : 0;
  return leads ? `${LEADER} ${name}` : name;
}

export function listen(): void {
  document.addEventListener("keydown", (event) => {
    const name = sequence(event);
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
    action(name);
  });
}
