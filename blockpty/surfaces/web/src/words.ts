/** Numbers, times and names in words, as the page writes them. */
export function duration(ms: number | null): string {
  if (ms === null) return "";
  if (ms < 1000) return `${ms} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min ${Math.floor((ms % 60_000) / 1000)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** How long something took, as it is read aloud. */
export function spoken(ms: number): string {
  const some = (count: number, unit: string): string => `${number(count)} ${unit}${count === 1 ? "" : "s"}`;
  if (ms < 1000) return some(ms, "millisecond");
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return some(seconds, "second");
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${some(minutes, "minute")} ${some(seconds % 60, "second")}`;
  return `${some(Math.floor(minutes / 60), "hour")} ${some(minutes % 60, "minute")}`;
}

/** How long something has been running, in whole seconds; empty during the first one. */
export function elapsed(ms: number): string {
  return ms < 1000 ? "" : ms < 60_000 ? `${Math.floor(ms / 1000)} s` : duration(ms);
}

/** A time since the beginning, as players show it. */
export function clock(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  return (parts[0] ? parts : parts.slice(1)).map((one) => String(one).padStart(2, "0")).join(":");
}

export function age(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 2) return "now";
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} m`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h`;
  return seconds < 172_800 ? "yesterday" : `${Math.floor(seconds / 86_400)} days`;
}

export function bytes(count: number): string {
  if (count < 1000) return `${count} B`;
  if (count < 1_000_000) return `${Math.round(count / 1000)} kB`;
  return `${(count / 1_000_000).toFixed(1)} MB`;
}

export const number = (count: number): string => count.toLocaleString("en");
export const lines = (count: number): string => (count === 1 ? "1 line" : `${number(count)} lines`);
export const time = (ts: number): string => new Date(ts).toLocaleTimeString("en-GB");

// Cc but tab and line feed, Cf (bidirectional controls, zero width), line and paragraph separators, private use.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\p{Cf}\u2028\u2029\p{Co}]/gu;

/** Return a text in which nothing is invisible: U+202E is written <U+202E>. */
export function visible(text: string): string {
  return text.replace(HIDDEN, (one) => `<U+${one.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}>`);
}
