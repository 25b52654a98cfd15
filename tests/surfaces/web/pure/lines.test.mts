/** Lines of an output: what is seen of one, and that it does not matter where the pieces are divided. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { changed, draw, PLAIN, shown, textOf } from "../../../../blockpty/surfaces/web/src/output/lines.ts";
import { BEGINNING, Part, Styles } from "../../../../blockpty/surfaces/web/src/output/parts.ts";
import { random } from "./random.mts";

const seen = (raw: string) => textOf({ raw, style: PLAIN });

test("what moves inside a line is applied", () => {
  const cases = {
    plain: "plain", "10%\r20%": "20%", "100%\r20%\x1b[K": "20%", "ab\x08c": "ac", "a\tb": "a\tb", "x\x1b": "x",
    "\x1b[32ma\x1b[m b": "a b", "\x1b]0;title\x07x": "x", "\x1bP$qm\x1b\\y": "y", "a\x0bb": "ab", "": "", "ab\x1b[1Gc": "cb",
    "abc\x1b[2Dx": "axc", "a\x1b[3Cb": "a   b", "abc\x1b[1K": "   ", "abc\x1b[2Kd": "   d", "😀\x08x": "x", "\x9b31mred": "31mred",
  };
  for (const [raw, text] of Object.entries(cases)) assert.equal(seen(raw), text, JSON.stringify(raw));
});

test("a style is what its sequences make of it", () => {
  const after = (...given: string[]) => given.reduce(changed, PLAIN);
  const style = (front: string, back = "", flags = 0) => ({ front, back, flags, link: "" });
  assert.deepEqual(after("31"), style("a1"));
  assert.deepEqual(after("1;4;91;103"), style("a9", "b11", 1 | 8));
  assert.deepEqual(after("38;5;9;48;5;196"), style("a9", "#ff0000"));
  assert.deepEqual(after("38;2;1;2;3", "48:2:255:0:16"), style("#010203", "#ff0010"));
  assert.deepEqual(after("38;5;244"), style("#808080"));
  assert.deepEqual(after("48;5;3"), style("", "b3"));
  assert.deepEqual(after("1;3;7", "22", "27"), style("", "", 4));
  for (const given of ["", "0", "39;49", "38", "38;5", "48;2", "999"]) assert.equal(after(given).front, given === "38;5" ? "a0" : "");
  assert.equal(after("31;1", "0"), PLAIN);
});

test("of a long line a part is drawn, with the number of characters that were left out", () => {
  const wide = `${"x".repeat(1999)}😀${"y".repeat(500)}`;
  const plain = draw({ raw: wide, style: PLAIN });
  assert.equal(plain.pieces.map(({ text }) => text).join(""), `${"x".repeat(1999)}😀`, "not within a character");
  assert.equal(plain.more, 500);
  const coloured = draw({ raw: `\x1b[31m${"x".repeat(2000)}\x1b[32m${"y".repeat(300)}\x1b[m`, style: PLAIN });
  assert.equal(coloured.more, 300);
  assert.equal(textOf({ raw: wide, style: PLAIN }), wide);
});

test("as many lines are shown as matter", () => {
  assert.deepEqual([shown(12, "ok"), shown(13, "ok"), shown(13, "fail"), shown(100, "run")], [12, 1, 12, 16]);
});

/** Read a stream in these parts; return where its lines begin, in which style, and what else is known of it. */
function read(stream: Uint8Array, cuts: number[]) {
  const styles = new Styles();
  const lines: unknown[] = [];
  let [ending, moves, wholeScreen, from] = [BEGINNING, false, false, 0];
  for (const to of [...cuts, stream.length]) {
    const part = new Part(from, stream.subarray(from, to));
    part.read(styles, ending);
    part.starts.forEach((start, at) => lines.push([start, styles.known[part.styles[at]]]));
    ({ ending } = part);
    moves ||= part.moves;
    wholeScreen ||= part.wholeScreen;
    from = to;
  }
  return { lines, style: styles.known[ending.style], moves, wholeScreen };
}

const bytes = (text: string) => new TextEncoder().encode(text);
const STREAMS = [
  "one\n\x1b[1;31mtwo\nthree\x1b[m\n\nfour", "\x1b[38;2;10;20;30mdeep\n\x1b[48;5;200m\n\x1b[0mend\n", "a\r\nb\x1b[2Kc\n\x1b[3Aup\n",
  "\x1b[?1049hvim\n\x1b[31m\x1b[?1049l\n", "\x1b]8;;https://example.org\x07link\x1b]8;;\x07\n\x1b[4mx\n", "\x1b\x1b[3\x1b[32m\nx\x1b[", "日本\n\x1b[7m語\n",
];

test("a stream is the same wherever it is divided", () => {
  for (const text of STREAMS) {
    const stream = bytes(text);
    const whole = read(stream, []);
    for (let one = 0; one <= stream.length; one++) {
      assert.deepEqual(read(stream, [one]), whole, `${JSON.stringify(text)} at ${one}`);
      for (let two = one; two <= stream.length; two++) assert.deepEqual(read(stream, [one, two]), whole, `${JSON.stringify(text)} at ${one}, ${two}`);
    }
  }
});

test("random bytes are the same wherever they are divided, and draw as text", () => {
  const next = random(17);
  const alphabet = ["\x1b[", "\x1b", "m", "3", "1", ";", "\n", "\r", "x", "A", "K", "?", "49", "h", "\x1b]8;;", "\x07", "é", "\x9b", "0"];
  for (let round = 0; round < 300; round++) {
    const text = Array.from({ length: 1 + (next() % 40) }, () => alphabet[next() % alphabet.length]).join("");
    const stream = bytes(text);
    const whole = read(stream, []);
    for (let cut = 1; cut < stream.length; cut++) assert.deepEqual(read(stream, [cut]), whole, `${JSON.stringify(text)} at ${cut}`);
    for (const line of text.split("\n")) assert.doesNotMatch(seen(line), /[\x00-\x08\x0a-\x1f\x7f-\x9f]/, JSON.stringify(line));
  }
});
