import { computed, effect, signal } from "@preact/signals";
import { ofBrowser } from "./kept.ts";

/** What this browser remembers. */
export type Theme = "light" | "dark";

const system = matchMedia("(prefers-color-scheme: dark)");
const chosen = signal<string | null>(ofBrowser.get("blockpty.theme"));
const dark = signal(system.matches);
system.onchange = () => (dark.value = system.matches);

export const theme = signal<Theme>("light");
effect(() => {
  theme.value = chosen.value === "light" || chosen.value === "dark" ? chosen.value : dark.value ? "dark" : "light";
  document.documentElement.dataset.theme = theme.value;
});

export function switchTheme(): void {
  chosen.value = theme.peek() === "dark" ? "light" : "dark";
  ofBrowser.set("blockpty.theme", chosen.value);
}

const SLOW = "blockpty.slow";
/** From how many ms on a block counts as slow. */
export const slowMs = signal(Number(ofBrowser.get(SLOW)) || 10_000);

export function setSlow(ms: number): void {
  slowMs.value = ms;
  ofBrowser.set(SLOW, `${ms}`);
}

const SIZE = "blockpty.size";
/** Pixels of the text of outputs, in steps. */
const SIZES = [10, 11, 12.5, 14, 16, 18, 20];
const USUAL = SIZES.indexOf(12.5);
const kept = Number(ofBrowser.get(SIZE) ?? USUAL);
const size = signal(SIZES[kept] ? kept : USUAL);
/** Pixels of a row of an output. */
export const rowHeight = computed(() => Math.round(1.52 * SIZES[size.value]));
effect(() => {
  const { style } = document.documentElement;
  style.setProperty("--out-size", `${SIZES[size.value]}px`);
  style.setProperty("--out-row", `${rowHeight.value}px`);
});

/** Make the text of outputs larger by so many steps, or smaller. */
export function resizeText(by: number): void {
  size.value = Math.max(0, Math.min(SIZES.length - 1, size.peek() + by));
  ofBrowser.set(SIZE, `${size.value}`);
}

/** Something that is on or off. */
function choice(name: string, byDefault: "yes" | "no" = "no") {
  const on = signal((ofBrowser.get(name) ?? byDefault) === "yes");
  const flip = () => {
    on.value = !on.peek();
    ofBrowser.set(name, on.value ? "yes" : "no");
  };
  return [on, flip] as const;
}

/** Whether keys do something without Ctrl. */
export const [singleKeys, switchSingleKeys] = choice("blockpty.keys", "yes");
export const [wraps, switchWrap] = choice("blockpty.wrap");
export const [numbers, switchNumbers] = choice("blockpty.numbers");
/** Whether the terminal itself is for a screen reader, which reads the blocks otherwise. */
export const [screenReader, switchScreenReader] = choice("blockpty.reader");
