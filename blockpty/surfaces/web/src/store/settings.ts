import { effect, signal } from "@preact/signals";
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
