/** Colours of outputs: whatever a program chooses can be read. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { look, readable, TERMINAL } from "../../../../blockpty/surfaces/web/src/output/colours.ts";
import { random } from "./random.mts";

/** The contrast of WCAG 2.2, written down anew. */
function contrast(one: string, other: string): number {
  const luminance = (colour: string) =>
    [0.2126, 0.7152, 0.0722].reduce((sum, share, at) => {
      const level = parseInt(colour.slice(1 + 2 * at, 3 + 2 * at), 16) / 255;
      return sum + share * (level <= 0.04045 ? level / 12.92 : ((level + 0.055) / 1.055) ** 2.4);
    }, 0);
  const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
}
const next = random(5);
const anyColour = () => `#${(next() & 0xffffff).toString(16).padStart(6, "0")}`;

test("a colour is changed until it can be read, and not otherwise", () => {
  for (let round = 0; round < 2000; round++) {
    const [colour, ground] = [anyColour(), anyColour()];
    const found = readable(colour, ground);
    assert.ok(contrast(found, ground) >= 4.5, `${colour} on ${ground}: ${found}`);
    if (contrast(colour, ground) >= 4.5) assert.equal(found, colour);
  }
});

test("the colours with names can be read on the terminal's ground", () => {
  for (const theme of ["light", "dark"] as const) {
    const [ground, text, ...named] = TERMINAL[theme];
    assert.equal(named.length, 16);
    // Black on dark, and white on light, are chosen by programs as grounds.
    for (const [at, colour] of [text, ...named].entries()) if (theme === "light" || at !== 1) assert.ok(contrast(colour, ground) >= 4.5, `${theme} ${at}`);
  }
});

test("grounds are drawn, and text on them can be read", () => {
  for (const theme of ["light", "dark"] as const)
    for (const front of ["", "a0", "a7", "a15", "#111214", "#eeeeee"])
      for (const [back, flags] of [["b1", 0], ["b7", 0], ["#303030", 0], ["#ffff00", 0], ["", 16], ["b4", 16], ["#123456", 16]] as const) {
        const { classes, style } = look({ front, back, flags }, theme);
        const ground = style?.background ?? TERMINAL[theme][2 + Number(/b(\d+)/.exec(classes)?.[1])];
        assert.ok(ground && contrast(style!.color!, ground) >= 4.5, `${theme} ${front} ${back} ${flags}`);
      }
});

test("names stay classes, so that a page in another theme follows", () => {
  assert.deepEqual(look({ front: "a1", back: "", flags: 1 | 8 }, "dark"), { classes: "a1 bold under" });
  assert.deepEqual(look({ front: "", back: "", flags: 0 }, "light"), { classes: "" });
});
