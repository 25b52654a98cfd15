import { useLayoutEffect } from "preact/hooks";
import table from "./keys.json";
import { singleKeys } from "./store/settings.ts";

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

/** How a key of the table is shown. */
export const pressed = (key = ""): string => (key === " " ? "Space" : key.replaceAll("+", " "));

/** Whether something is done now for a binding. */
export const handled = (id: string): boolean => handlers.has(id);

export function perform(id: string): void {
  handlers.get(id)?.("");
}

/** Return how a key press is written in the table. */
export function named(event: Pick<KeyboardEvent, "key" | "code" | "ctrlKey" | "shiftKey" | "altKey" | "metaKey">): string {
  if (event.altKey || event.metaKey) return "";
  // A character tells of Shift by itself.
  if (!event.ctrlKey) return event.shiftKey && event.key.startsWith("Arrow") ? `Shift+${event.key}` : event.key;
  const key = event.code === "Period" ? "." : event.key;
  return `Ctrl+${event.shiftKey ? "Shift+" : ""}${key}`;
}

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && target.closest("input:not([type=checkbox]), textarea, select, .xterm, [role=alertdialog]") !== null;

/** Whether a key is a character, also after another one: speech input may press those by accident. */
const isCharacter = (name: string): boolean => name.split(" ").every((key) => key.length <= 1);

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

/** Commands that repeat while their key is held; every other one runs once. */
const REPEATED = new Set(
  ["next", "previous", "begin", "following", "previousFailed", "nextFailed", "pageDown", "pageUp", "larger", "smaller"].concat(
    ["earlier", "later", "muchEarlier", "muchLater", "changeBack", "changeOn", "nextBlock", "previousBlock", "slower", "faster"],
  ),
);

/** The button that was reached by keys: a press makes one that was clicked look the same, but it is known before. */
let reached: EventTarget | null = null;

export function listen(): void {
  document.addEventListener("focusin", ({ target }) => (reached = (target as Element).matches("button:focus-visible") ? target : null));
  document.addEventListener("keydown", (event) => {
    const name = sequence(event);
    // What a place does with a key comes before what the key does everywhere.
    const possible = bindings.filter((one) => one.keys.includes(name) && handlers.has(one.id));
    const binding = possible.find((one) => one.where !== "everywhere") ?? possible[0];
    if (event.defaultPrevented) return;
    if (isTyping(event.target) && !name.startsWith("Ctrl+")) {
      if (name === "Escape" && !(event.target as HTMLElement).closest(".xterm")) (event.target as HTMLElement).blur();
      return;
    }
    // Enter and Space on a button are the button's, but that a replay pauses wherever one has clicked.
    const owners = name === "Enter" || binding?.where !== "replay" || event.target === reached ? "button, a, input" : "input";
    if ((name === "Enter" || name === " ") && event.target instanceof HTMLElement && event.target.closest(owners)) return;
    if (!binding || (!singleKeys.peek() && isCharacter(name))) return;
    event.preventDefault();
    if (event.repeat && !REPEATED.has(binding.id)) return;
    handlers.get(binding.id)!(name);
  });
}
