import { signal } from "@preact/signals";

/** The time, by the second: ages and durations are written in seconds. A hidden page writes none. */
export const now = signal(Date.now());

setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1000);
