/**
 * What the keyboard and the window do now. What appears by itself, such as an approval, may meet a key or a click that
 * was meant for something else: it counts only what was begun a moment after it appeared.
 */
const DEAD_MS = 400;
/** Keys that are down, with the time at which each went down. */
const down = new Map<string, number>();
let focusedAt = 0;

/** These do nothing by themselves, and their release is not always reported: CapsLock on macOS, or a key that the system takes. */
const MODIFIERS = new Set(["Shift", "Control", "Alt", "AltGraph", "Meta", "Fn", "CapsLock", "NumLock", "ScrollLock"]);

addEventListener(
  "keydown",
  ({ code, key, repeat }) => {
    if (!code || MODIFIERS.has(key)) return;
    // A key that is pressed again was released without an event.
    if (!repeat) down.set(code, performance.now());
    else if (!down.has(code)) down.set(code, -Infinity);
  },
  true,
);
// macOS tells of no key that goes up while Meta is down.
addEventListener("keyup", ({ code, key }) => (key === "Meta" ? down.clear() : down.delete(code)), true);
addEventListener("blur", () => down.clear());
addEventListener("focus", () => (focusedAt = performance.now()));

/**
 * Whether a key or a click is meant for something that appeared at a time of `performance.now()`. `by` is what came:
 * a click with the mouse does not count while any key is down, one with a key while another one is.
 */
export function isMeant(since: number, by: Event): boolean {
  const from = Math.max(since, focusedAt) + DEAD_MS;
  const isMouse = by instanceof MouseEvent && by.detail > 0;
  const presses = [...down.values()];
  return document.hasFocus() && performance.now() >= from && presses.length <= (isMouse ? 0 : 1) && presses.every((at) => at >= from);
}

export { DEAD_MS };
