import { signal } from "@preact/signals";
import { say } from "./notice.ts";

/** Keys that browsers keep for themselves, and what a terminal sends for them with Ctrl. */
export const BROWSER_KEYS = { W: 0x17, T: 0x14, N: 0x0e };

/** Not every browser has it. Without codes it would take the keys of the window manager too. */
const keyboard = (navigator as { keyboard?: { lock(codes: string[]): Promise<void>; unlock(): void } }).keyboard;

/** Whether the page fills the screen. */
export const isFull = signal(false);
document.addEventListener("fullscreenchange", () => (isFull.value = document.fullscreenElement !== null));

/** Whether all of the browser's keys go to the program. */
export const hasKeys = signal(false);

export function switchFullScreen(): void {
  if (isFull.value) void document.exitFullscreen();
  else document.documentElement.requestFullscreen().catch(() => say("This browser lets no page fill the screen.", true));
}

/** Have the browser's keys as long as the page fills the screen; returns what gives them back. Escape is held to leave. */
export function takeKeys(): () => void {
  let given = false;
  const codes = ["Escape", ...Object.keys(BROWSER_KEYS).map((letter) => `Key${letter}`)];
  void keyboard?.lock(codes).then(
    () => (hasKeys.value = !given),
    () => undefined,
  );
  return () => {
    given = true;
    hasKeys.value = false;
    keyboard?.unlock();
  };
}
