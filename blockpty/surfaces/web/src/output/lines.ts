import { withLinks } from "./links.ts";

/**
 * Lines of an output, from the view `ansi`: split at line ends, each with the style it begins in. A line is drawn only
 * when it is looked at. Everything here is text and class names; no markup is made.
 */
export interface Piece {
  text: string;
  style: Style;
}

export interface Drawn {
  pieces: Piece[];
  /** How many characters behind them were left out. */
  more: number;
}

export interface Line {
  raw: string;
  style: Style;
  /** The characters of it that a row shows, where not all. */
  from?: number;
  to?: number;
}

export interface Style {
  front: string;
  back: string;
  flags: number;
  /** Where a link of the program leads to. */
  link: string;
}

export const PLAIN: Style = { front: "", back: "", flags: 0, link: "" };
const ON: Record<number, number> = { 1: 1, 2: 2, 3: 4, 4: 8, 7: 16, 9: 32 };
const OFF: Record<number, number> = { 22: 3, 23: 4, 24: 8, 27: 16, 29: 32 };
/** Characters of a line that a row shows. */
const LONGEST = 2000;
/** Longer than this, what is left out is not read to count its characters: its bytes are. */
const COUNTED = 1_000_000;

// A control sequence, a string (OSC, DCS, APC, PM, SOS), or another escape.
const SEQUENCE = /\x1b\[([0-9:;<=>?]*)([ -/]*)([@-~])|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|$)|\x1b[ -/]*[0-~]|\x1b/y;
const UNSEEN = new RegExp(`${SEQUENCE.source}|[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f]`, "g");
const LINK = /^\x1b\]8;[^;]*;([^\x07\x1b]*)/;
const SGR = /\x1b\[([0-9:;]*)m/y;
const CURSOR = /\x1b\[[0-9;]*[ABEFHJLMSTfdsu]|\x1b\[\?(?:47|1047|1049)[hl]|\x1b[78DEMc]/y;
const WHOLE_SCREEN = /\x1b\[\?(?:47|1047|1049)h/y;
const COLOURED = /^(?:[^\x00-\x08\x0b-\x1f\x7f-\x9f]|\x1b\[[0-9:;]*m)*$/;
const UNFINISHED = /\x1b(?:\[[0-9:;<=>?]{0,64}[ -/]*)?$/;

interface After {
  style: Style;
  /** Whether the cursor was moved beyond its line, so that only a drawing shows what was seen. */
  moves: boolean;
  /** Whether a program drew on the alternate screen. */
  wholeScreen: boolean;
  /** A sequence that was begun at the end. */
  rest: string;
}

/** Follow the sequences of a piece of a line from the style it begins in. */
export function after(style: Style, text: string): After {
  let moves = false;
  let wholeScreen = false;
  for (let at = text.indexOf("\x1b"); at !== -1; at = text.indexOf("\x1b", at + 1)) {
    SGR.lastIndex = CURSOR.lastIndex = WHOLE_SCREEN.lastIndex = at;
    const found = SGR.exec(text);
    if (found) style = changed(style, found[1]);
    else if (CURSOR.test(text)) {
      moves = true;
      wholeScreen ||= WHOLE_SCREEN.test(text);
    }
  }
  return { style, moves, wholeScreen, rest: UNFINISHED.exec(text)?.[0] ?? "" };
}

/** Return a style after a sequence that changes it, of which the numbers are given. */
export function changed(style: Style, given: string): Style {
  const numbers = given.split(/[;:]/).map(Number);
  const { link } = style;
  let { front, back, flags } = style;
  for (let at = 0; at < numbers.length; at++) {
    const one = numbers[at];
    if (one === 0) ({ front, back, flags } = PLAIN);
    else if (ON[one]) flags |= ON[one];
    else if (OFF[one]) flags &= ~OFF[one];
    else if (one >= 30 && one <= 37) front = `a${one - 30}`;
    else if (one >= 90 && one <= 97) front = `a${one - 82}`;
    else if (one >= 40 && one <= 47) back = `b${one - 40}`;
    else if (one >= 100 && one <= 107) back = `b${one - 92}`;
    else if (one === 39) front = "";
    else if (one === 49) back = "";
    else if (one === 38 || one === 48) {
      const [colour, used] = extended(numbers, at + 1);
      if (one === 38) front = colour;
      else back = colour && !colour.startsWith("#") ? `b${colour.slice(1)}` : colour;
      at += used;
    }
  }
  return front || back || flags || link ? { front, back, flags, link } : PLAIN;
}

function extended(numbers: number[], at: number): [string, number] {
  if (numbers[at] === 5) return [indexed(numbers[at + 1] ?? 0), 2];
  // 38:2::r:g:b has an empty colour space before its numbers.
  if (numbers[at] === 2) return [hex(numbers.slice(at + 1, at + 4)), 4];
  return ["", 0];
}

export function indexed(index: number): string {
  if (index < 16) return `a${index}`;
  if (index >= 232) return hex([8 + (index - 232) * 10, 8 + (index - 232) * 10, 8 + (index - 232) * 10]);
  const level = (digit: number): number => (digit === 0 ? 0 : 55 + 40 * digit);
  const rest = index - 16;
  return hex([level(Math.floor(rest / 36)), level(Math.floor(rest / 6) % 6), level(rest % 6)]);
}

const hex = (parts: number[]): string =>
  "#" + [0, 1, 2].map((at) => Math.min(255, Math.max(0, parts[at] || 0)).toString(16).padStart(2, "0")).join("");

/** Draw the beginning of a line, with the links in it. */
export function draw(line: Line): Drawn {
  const { pieces, more } = drawn(line, LONGEST);
  return { pieces: withLinks(pieces), more };
}

/**
 * Draw the beginning of a line: carriage returns, backspaces and erasing within it are applied, other controls are left
 * out. A link of a program ends with its line.
 */
function drawn({ raw, style }: Line, most: number): Drawn {
  if (!/[\x00-\x08\x0b-\x1f\x7f-\x9f]/.test(raw)) {
    const end = raw.length > most ? whole(raw, most) : raw.length;
    return { pieces: [{ text: raw.slice(0, end), style }], more: raw.length - end };
  }
  // No longer ones: the expression would overflow the stack.
  if (raw.length <= LONGEST && COLOURED.test(raw)) return { pieces: coloured(raw, style), more: 0 };
  const cells: string[] = [];
  const styles: Style[] = [];
  let column = 0;
  let now = style;
  let at = 0;
  while (at < raw.length && column < most) {
    const code = raw.codePointAt(at)!;
    if (code === 0x1b) {
      SEQUENCE.lastIndex = at;
      const found = SEQUENCE.exec(raw);
      at = found ? SEQUENCE.lastIndex : at + 1;
      if (!found) continue;
      const link = LINK.exec(found[0]);
      const count = Math.min(LONGEST, Math.max(1, parseInt(found[1] ?? "", 10) || 1));
      if (link) now = { ...now, link: link[1] };
      else if (found[3] === "m" && !/[<=>?]/.test(found[1])) now = changed(now, found[1]);
      else if (found[3] === "K") erase(cells, styles, column, parseInt(found[1], 10) || 0);
      else if (found[3] === "C") column += count;
      else if (found[3] === "D") column = Math.max(0, column - count);
      else if (found[3] === "G") column = count - 1;
      continue;
    }
    at += code > 0xffff ? 2 : 1;
    if (code === 0x0d) column = 0;
    else if (code === 0x08) column = Math.max(0, column - 1);
    else if ((code < 0x20 && code !== 0x09) || (code >= 0x7f && code < 0xa0)) continue;
    else {
      while (cells.length < column) {
        cells.push(" ");
        styles.push(PLAIN);
      }
      cells[column] = String.fromCodePoint(code);
      styles[column++] = now;
    }
  }
  const left = raw.length - at;
  const more = left > COUNTED ? left : raw.slice(at).replace(UNSEEN, "").length;
  return { pieces: joined(cells, styles), more };
}

/** Return the text of a line as it is seen, all of it. */
export const textOf = (line: Line): string => drawn(line, Infinity).pieces.map(({ text }) => text).join("");

/** Return where a text may be cut: not within a character. */
const whole = (text: string, at: number): number => (text.codePointAt(at - 1)! > 0xffff ? at + 1 : at);

/** Draw a line that contains only text and colours, which needs no cells. */
function coloured(raw: string, style: Style): Piece[] {
  const pieces: Piece[] = [];
  let from = 0;
  for (let at = raw.indexOf("\x1b"); at !== -1; at = raw.indexOf("\x1b", from)) {
    const end = raw.indexOf("m", at);
    if (at > from) pieces.push({ text: raw.slice(from, at), style });
    style = changed(style, raw.slice(at + 2, end));
    from = end + 1;
  }
  if (from < raw.length || pieces.length === 0) pieces.push({ text: raw.slice(from), style });
  return pieces;
}

function erase(cells: string[], styles: Style[], column: number, how: number): void {
  if (how === 0) cells.length = styles.length = Math.min(cells.length, column);
  else if (how === 2) cells.length = styles.length = 0;
  else for (let at = 0; at <= column && at < cells.length; at++) [cells[at], styles[at]] = [" ", PLAIN];
}

function joined(cells: string[], styles: Style[]): Piece[] {
  const pieces: Piece[] = [];
  for (let at = 0; at < cells.length; ) {
    let end = at + 1;
    while (end < cells.length && styles[end] === styles[at]) end++;
    pieces.push({ text: cells.slice(at, end).join(""), style: styles[at] });
    at = end;
  }
  return pieces.length ? pieces : [{ text: "", style: PLAIN }];
}

/** Return the part of some pieces from one character to another. */
export function part(pieces: Piece[], from: number, to: number): Piece[] {
  const found: Piece[] = [];
  let at = 0;
  for (const { text, style } of pieces) {
    const cut = text.slice(Math.max(0, from - at), Math.max(0, to - at));
    if (cut) found.push({ text: cut, style });
    at += text.length;
  }
  return found;
}

/** How many lines a block shows that is not opened: all of a short one, else the end, more of it when it failed. */
export function shown(count: number, state: "ok" | "fail" | "run"): number {
  if (count <= 12) return count;
  return { ok: 1, fail: 12, run: 16 }[state];
}
