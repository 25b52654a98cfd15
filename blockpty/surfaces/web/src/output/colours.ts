import type { Theme } from "../store/settings.ts";
import type { Style } from "./lines.ts";

/** Colours of a terminal in both themes: ground, text, and the 16 that have names. */
export const TERMINAL: Record<Theme, string[]> = {
  light: listed(
    "fdfcfa 1b1d22 1b1d22 b3261e 1d7a46 8a5a00 2f5bd7 8b2fa8 00707a 5b606b 666b76 b3261e 1d7a46 8a5a00 2f5bd7 8b2fa8 00707a 3a3e47",
  ),
  dark: listed(
    "101318 e6e8ec 343b47 ff8a80 7fd8a0 f2c14e 8fb0ff d9a3ff 5fd0d6 c9ced8 9aa1ad ffaaa2 a0e6ba ffd981 b3c9ff e6c3ff 93e4e8 ffffff",
  ),
};
/** What text stands on; the ground of a selected block, where contrast is least. */
const GROUND: Record<Theme, string> = { light: "#eff2fc", dark: "#202632" };
const LEAST = 4.5;
const NAMES: [number, string][] = [[1, "bold"], [2, "faint"], [4, "italic"], [8, "under"], [32, "strike"]];
const INVERSE = 16;
const MOST_KEPT = 4096;

/** How a style looks: class names, and colours for what has none. */
export interface Look {
  classes: string;
  style?: { color?: string; background?: string };
}

const kept: Record<Theme, Map<string, Look>> = { light: new Map(), dark: new Map() };

/** Return how a style looks; a text whose colour could not be read on its ground is made lighter or darker. */
export function look(style: Pick<Style, "front" | "back" | "flags">, theme: Theme): Look {
  const { front, back, flags } = style;
  const name = `${front} ${back} ${flags}`;
  let known = kept[theme].get(name);
  if (!known) {
    if (kept[theme].size >= MOST_KEPT) kept[theme].clear();
    kept[theme].set(name, (known = made(front, back, flags, theme)));
  }
  return known;
}

function made(front: string, back: string, flags: number, theme: Theme): Look {
  const classes = NAMES.filter(([bit]) => flags & bit).map(([, name]) => name);
  const isInverse = (flags & INVERSE) !== 0;
  if (!isInverse && !back && !front.startsWith("#")) return { classes: [front, ...classes].filter(Boolean).join(" ") };
  const [, text, ...named] = TERMINAL[theme];
  const hex = (colour: string, other: string) =>
    colour === "" ? other : colour.startsWith("#") ? colour : named[Number(colour.slice(1))];
  const [over, under] = [hex(front, text), hex(back, GROUND[theme])];
  const [wanted, ground] = isInverse ? [under, over] : [over, under];
  const color = readable(wanted, ground);
  if (!isInverse && !back) return { classes: classes.join(" "), style: { color } };
  if (!isInverse && back.startsWith("b")) return { classes: [back, ...classes].join(" "), style: { color } };
  return { classes: classes.join(" "), style: { color, background: ground } };
}

/** Return a colour, or the nearest one towards white or black that can be read on a ground. */
export function readable(colour: string, ground: string): string {
  if (contrast(colour, ground) >= LEAST) return colour;
  const [one, other] = lightness(colour) >= lightness(ground) ? ["#ffffff", "#000000"] : ["#000000", "#ffffff"];
  const end = contrast(one, ground) >= LEAST ? one : other;
  let [low, high] = [0, 1];
  for (let step = 0; step < 7; step++) {
    const middle = (low + high) / 2;
    if (contrast(mixed(colour, end, middle), ground) >= LEAST) high = middle;
    else low = middle;
  }
  return mixed(colour, end, high);
}

function contrast(one: string, other: string): number {
  const [low, high] = [lightness(one), lightness(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

/** Relative luminance, as WCAG has it. */
function lightness(colour: string): number {
  const [red, green, blue] = parts(colour).map((part) => {
    const level = part / 255;
    return level <= 0.04045 ? level / 12.92 : ((level + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

const mixed = (one: string, other: string, share: number): string => {
  const [from, to] = [parts(one), parts(other)];
  return `#${from.map((part, at) => Math.round(part + (to[at] - part) * share).toString(16).padStart(2, "0")).join("")}`;
};

const parts = (colour: string): number[] => [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));

function listed(colours: string): string[] {
  return colours.split(" ").map((one) => `#${one}`);
}
