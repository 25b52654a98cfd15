import { after, changed, type Style, PLAIN } from "./lines.ts";

/**
 * A piece of an output as it was fetched: its bytes, where lines begin in it, and the style that each begins in.
 * What its first line begins in is only known where the piece before it is here.
 */
const NEWLINE = 10;
const ESCAPE = 27;
const BRACKET = 0x5b;
const SEMICOLON = 0x3b;
const ZERO = 0x30;
const M = 0x6d;
/** Changes of style that are remembered: so many, and none longer than this. Hostile output has any of them. */
const MOST_CHANGES = 10_000;
const LONGEST_CHANGE = 64;

/** Styles by number; so many are those of a picture, whose lines begin plain. */
export class Styles {
  readonly known: Style[] = [PLAIN];
  #numbers = new Map<string, number>([["", 0]]);
  /** What each sequence makes of a style, by the style's number. */
  #changes: Map<string, number>[] = [];
  #remembered = 0;

  /** Return the style that a sequence with these numbers in it makes of another one. */
  changed(style: number, given: string): number {
    const known = this.#changes[style]?.get(given);
    if (known !== undefined) return known;
    const after = this.number(changed(this.known[style], given));
    if (this.#remembered++ < MOST_CHANGES) (this.#changes[style] ??= new Map<string, number>()).set(given, after);
    return after;
  }

  number(style: Style): number {
    const name = style === PLAIN ? "" : `${style.front} ${style.back} ${style.flags}`;
    let number = this.#numbers.get(name);
    if (number === undefined) {
      if (this.known.length > 0xffff) return 0;
      number = this.known.push(style) - 1;
      this.#numbers.set(name, number);
    }
    return number;
  }
}

/** The end of a piece: its style, and the beginning of a sequence that goes on in the next one. */
export interface Ending {
  style: number;
  rest: string;
}

export const BEGINNING: Ending = { style: 0, rest: "" };

// What is collected of one piece before it is known how many lines it has.
let starts = new Uint32Array(4096);
let numbers = new Uint16Array(4096);

export class Part {
  /** Where it begins, from the beginning of the output. */
  readonly offset: number;
  readonly data: Uint8Array;
  /** Where lines begin, each behind a line end of this piece, from the beginning of the output; and in which style. */
  starts = new Uint32Array(0);
  styles = new Uint16Array(0);
  before = BEGINNING;
  ending = BEGINNING;
  moves = false;
  wholeScreen = false;
  /** How many lines end before it: the number of the line that it begins with. */
  row = 0;

  constructor(offset: number, data: Uint8Array) {
    this.offset = offset;
    this.data = data;
  }

  get end(): number {
    return this.offset + this.data.length;
  }

  /** Find the lines, from what the piece before ended in. */
  read(known: Styles, before: Ending): void {
    const { data, offset } = this;
    let { style, rest } = before;
    let count = 0;
    let escape = place(data, ESCAPE, 0);
    for (let at = 0; at < data.length; ) {
      const end = place(data, NEWLINE, at);
      if (escape < at) escape = place(data, ESCAPE, at);
      while (!rest && escape < end) {
        // Nearly every sequence is a change of style, whose numbers are read where they are.
        const from = escape + 2;
        let to = from;
        while (data[to] >= ZERO && data[to] <= SEMICOLON) to++;
        if (data[escape + 1] !== BRACKET || data[to] !== M || to - from > LONGEST_CHANGE) break;
        style = known.changed(style, short(data, from, to));
        escape = place(data, ESCAPE, to);
      }
      if (escape < end || rest) {
        const found = after(known.known[style], rest + latin(data.subarray(rest ? at : escape, end)));
        style = known.number(found.style);
        rest = found.rest;
        this.moves ||= found.moves;
        this.wholeScreen ||= found.wholeScreen;
      }
      if (end === data.length) break;
      at = end + 1;
      if (count === starts.length) [starts, numbers] = [grown(starts, Uint32Array), grown(numbers, Uint16Array)];
      starts[count] = offset + at;
      numbers[count++] = style;
    }
    this.before = before;
    this.starts = starts.slice(0, count);
    this.styles = numbers.slice(0, count);
    this.ending = { style, rest };
  }
}

const grown = <Kind extends Uint32Array<ArrayBuffer> | Uint16Array<ArrayBuffer>>(
  old: Kind,
  make: new (length: number) => Kind,
): Kind => {
  const more = new make(2 * old.length);
  more.set(old);
  return more;
};

/** Return where a byte stands, from a place on; the length where it does not. */
const place = (data: Uint8Array, byte: number, from: number): number => {
  const at = data.indexOf(byte, from);
  return at === -1 ? data.length : at;
};

/** Return a few bytes as text; for so few this takes a fifth of the time of the other way. */
const short = (data: Uint8Array, from: number, to: number): string => {
  let text = "";
  for (let at = from; at < to; at++) text += String.fromCharCode(data[at]);
  return text;
};

const latin = (data: Uint8Array): string => {
  let text = "";
  for (let at = 0; at < data.length; at += 8192) text += String.fromCharCode(...data.subarray(at, at + 8192));
  return text;
};
