import type { IUnicodeVersionProvider, Terminal } from "@xterm/xterm";
import { PICTOGRAPHS, SPACING, VERSION, WIDE, ZERO } from "./widths.ts";

/**
 * Widths of characters as the engine has them, so that the page's terminal puts each into the same cell; with mode 2027
 * one cell for each grapheme cluster. What is known of a cluster goes from one character to the next as a number.
 */
const CLUSTERS = 2027;

const JOINER = 0x200d;
const EMOJI_STYLE = 0xfe0f;

// What a cluster is: its bits above the width and the flag that xterm.js reads.
const PICTOGRAPH = 1;
const KEYCAP = 2;
const JOINS_NEXT = 4;
const HALF_FLAG = 8;

function among(ranges: number[], code: number): boolean {
  let low = 0;
  let high = ranges.length / 2;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ranges[2 * middle + 1] < code) low = middle + 1;
    else high = middle;
  }
  return 2 * low < ranges.length && ranges[2 * low] <= code;
}

const widths = new Map<number, 0 | 1 | 2>();

export function width(code: number): 0 | 1 | 2 {
  if (code < 0x300) return code < 0x20 || (code >= 0x7f && code < 0xa0) ? 0 : 1;
  let found = widths.get(code);
  if (found === undefined) {
    found = among(ZERO, code) ? 0 : among(WIDE, code) ? 2 : 1;
    widths.set(code, found);
  }
  return found;
}

const isHalfFlag = (code: number): boolean => code >= 0x1f1e6 && code <= 0x1f1ff;
const isKeycap = (code: number): boolean => code === 0x23 || code === 0x2a || (code >= 0x30 && code <= 0x39);

const properties = (kind: number, columns: number, joins: boolean): number => (kind << 3) | (columns << 1) | (joins ? 1 : 0);

/** The characters of one terminal. */
export class Characters implements IUnicodeVersionProvider {
  readonly version = `blockpty ${VERSION}`;
  clustered = false;

  wcwidth(code: number): 0 | 1 | 2 {
    return width(code);
  }

  charProperties(code: number, preceding: number): number {
    const columns = width(code);
    const before = (preceding >> 1) & 3;
    if (this.clustered) return this.#cluster(code, columns, preceding, before);
    // A mark joins the cell before the cursor, also where the cursor was moved there.
    return columns === 0 ? properties(0, before, true) : properties(0, columns, false);
  }

  #cluster(code: number, columns: number, preceding: number, before: number): number {
    const kind = preceding >> 3;
    if (before > 0 && this.#belongs(code, columns, kind)) {
      const isWide = ((kind & (PICTOGRAPH | KEYCAP)) !== 0 && code === EMOJI_STYLE) || isHalfFlag(code);
      const joined = (kind & ~(JOINS_NEXT | HALF_FLAG)) | (code === JOINER ? JOINS_NEXT : 0);
      return properties(joined, isWide ? 2 : Math.max(before, columns), true);
    }
    if (columns === 0) return properties(0, before, true);
    const first = (among(PICTOGRAPHS, code) ? PICTOGRAPH : 0) | (isKeycap(code) ? KEYCAP : 0) | (isHalfFlag(code) ? HALF_FLAG : 0);
    return properties(first, columns, false);
  }

  #belongs(code: number, columns: number, kind: number): boolean {
    if (columns === 0 || among(SPACING, code)) return true;
    if (isHalfFlag(code)) return (kind & HALF_FLAG) !== 0;
    if ((kind & PICTOGRAPH) === 0) return false;
    return (code >= 0x1f3fb && code <= 0x1f3ff) || ((kind & JOINS_NEXT) !== 0 && among(PICTOGRAPHS, code));
  }
}

/** Have a terminal measure characters as the engine does. */
export function measureCharacters(terminal: Terminal): void {
  const characters = new Characters();
  terminal.unicode.register(characters);
  terminal.unicode.activeVersion = characters.version;
  const { parser } = terminal;
  const set = (on: boolean) => (params: (number | number[])[]) => {
    if (params.includes(CLUSTERS)) characters.clustered = on;
    return false;
  };
  parser.registerCsiHandler({ prefix: "?", final: "h" }, set(true));
  parser.registerCsiHandler({ prefix: "?", final: "l" }, set(false));
  const off = () => {
    characters.clustered = false;
    return false;
  };
  parser.registerEscHandler({ final: "c" }, off); // RIS
}
