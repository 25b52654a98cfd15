import { signal } from "@preact/signals";
import { ofBrowser } from "./kept.ts";

/** Whether a window is too narrow for blocks and screen side by side: one of the two is shown then. */
const narrow = matchMedia("(max-width: 1279px)");
export const isNarrow = signal(narrow.matches);
narrow.onchange = () => (isNarrow.value = narrow.matches);

export const view = signal<"blocks" | "screen">("blocks");

/** A column whose width a person may choose: its limits, in px. */
export const COLUMNS = {
  side: { usual: 268, least: 160, most: 480 },
  screen: { usual: 600, least: 320, most: 1600 },
} as const;
export type Column = keyof typeof COLUMNS;

const keyOf = (column: Column): string => `blockpty.width.${column}`;
const property = (column: Column): string => `--${column}`;

/** Give a column a width, which this browser remembers; null for the usual one. */
export function setWidth(column: Column, px: number | null): void {
  const { least, most } = COLUMNS[column];
  const { style } = document.documentElement;
  if (px === null) {
    style.removeProperty(property(column));
    ofBrowser.remove(keyOf(column));
    return;
  }
  const width = Math.round(Math.min(most, innerWidth / 2, Math.max(least, px)));
  style.setProperty(property(column), `${width}px`);
  ofBrowser.set(keyOf(column), `${width}`);
}

for (const column of Object.keys(COLUMNS) as Column[]) {
  const kept = Number(ofBrowser.get(keyOf(column)));
  if (kept) document.documentElement.style.setProperty(property(column), `${kept}px`);
}
