import { bytesOf, readRendered } from "../api/output.ts";
import { after, type Line, type Style, PLAIN } from "./lines.ts";

/**
 * The output of one block, as far as it has been fetched: bytes in pieces, and where each line begins. A line is decoded
 * when it is drawn, so a long output costs its bytes and four numbers a line.
 */
const NEWLINE = 10;
const ESCAPE = 27;
/** What is fetched at once. */
const PIECE = 256 * 1024;
/** More than this of one output is not indexed. */
export const MOST = 64 * 1024 * 1024;
const FIRST_LINES = 64;

/** What draws rows: a number of lines, and each of them. */
export interface Lines {
  readonly length: number;
  at(index: number): Line;
}

/** Some lines of others: those from a number on. */
export class LastLines implements Lines {
  #all: Lines;
  #first: number;
  readonly length: number;

  constructor(all: Lines, count: number) {
    this.#all = all;
    this.length = Math.min(count, all.length);
    this.#first = all.length - this.length;
  }

  at(index: number): Line {
    return this.#all.at(this.#first + index);
  }
}

export class OutputStore implements Lines {
  readonly conversation: string;
  readonly block: string;
  /** Cursor of the first byte that is here, and of the first that is not. */
  readonly begin: number;
  cursor: number;
  /** Whether the output moves the cursor beyond its line, so that only a drawing shows what was seen. */
  movesCursor = false;
  wholeScreen = false;
  #pieces: Uint8Array[] = [];
  /** Offset of each piece, and of each line, from `begin`; the number of the style that each line begins in. */
  #offsets: number[] = [];
  #starts = new Uint32Array(FIRST_LINES);
  #styles = new Uint16Array(FIRST_LINES);
  #known: Style[] = [PLAIN];
  #numbers = new Map<string, number>([["", 0]]);
  #style = 0;
  #count = 0;
  #size = 0;
  /** The beginning of a sequence that goes on in the next piece. */
  #rest = "";
  #drawn: Line[] | null = null;
  #decoder = new TextDecoder();
  #filling: Promise<void> = Promise.resolve();

  constructor(conversation: string, block: string, begin: number) {
    this.conversation = conversation;
    this.block = block;
    this.begin = begin;
    this.cursor = begin;
  }

  get length(): number {
    if (this.#drawn) return this.#drawn.length;
    // A line that has been begun counts once there is something in it.
    return this.#count && this.#starts[this.#count - 1] === this.#size ? this.#count - 1 : this.#count;
  }

  at(index: number): Line {
    if (this.#drawn) return this.#drawn[index];
    const end = index + 1 < this.#count ? this.#starts[index + 1] - 1 : this.#size;
    const raw = this.#decoder.decode(this.#slice(this.#starts[index], end)).replace(/\r+$/, "");
    return { raw, style: this.#known[this.#styles[index]] };
  }

  /** Return the number of the line that holds a byte of the stream. */
  lineAt(cursor: number): number {
    const wanted = cursor - this.begin;
    let low = 0;
    let high = this.#count;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.#starts[middle] <= wanted) low = middle;
      else high = middle;
    }
    return Math.min(low, Math.max(0, this.length - 1));
  }

  /**
   * Fetch up to a cursor, a piece at a time; `grown` is called after each and may end it by returning false.
   * Raises Problem. An output that moves the cursor is then drawn by the server.
   */
  fill(to: number, grown: () => boolean): Promise<void> {
    // One after the other: both would fetch the same piece.
    const turn = this.#filling.then(() => this.#fill(to, grown));
    this.#filling = turn.catch(() => undefined);
    return turn;
  }

  async #fill(to: number, grown: () => boolean): Promise<void> {
    const before = this.cursor;
    const until = Math.min(to, this.begin + MOST);
    while (this.cursor < until) {
      const { data, cursor } = await bytesOf(this.conversation, this.cursor, Math.min(until, this.cursor + PIECE));
      if (cursor <= this.cursor) break;
      this.#take(data);
      this.cursor = cursor;
      if (!grown()) return;
    }
    if (this.movesCursor && !this.wholeScreen && (!this.#drawn || this.cursor > before)) {
      const text = await readRendered(this.conversation, this.block, this.begin, this.cursor);
      this.#drawn = linesOf(text);
      grown();
    }
  }

  #take(data: Uint8Array): void {
    const from = this.#size;
    if (this.#count === 0) this.#line(0);
    this.#offsets.push(from);
    this.#pieces.push(data);
    this.#size += data.length;
    let escape = place(data, ESCAPE, 0);
    for (let at = 0; at < data.length; ) {
      const end = place(data, NEWLINE, at);
      if (escape < at) escape = place(data, ESCAPE, at);
      if (escape < end || this.#rest) this.#scan(data, this.#rest ? at : escape, end);
      if (end === data.length) break;
      at = end + 1;
      this.#line(from + at);
    }
  }

  #line(offset: number): void {
    if (this.#count === this.#starts.length) {
      const [starts, styles] = [new Uint32Array(2 * this.#count), new Uint16Array(2 * this.#count)];
      starts.set(this.#starts);
      styles.set(this.#styles);
      [this.#starts, this.#styles] = [starts, styles];
    }
    this.#starts[this.#count] = offset;
    this.#styles[this.#count++] = this.#style;
  }

  /** Take note of the sequences of a part of a line. */
  #scan(data: Uint8Array, from: number, to: number): void {
    const { style, moves, wholeScreen, rest } = after(this.#known[this.#style], this.#rest + latin(data.subarray(from, to)));
    this.#rest = rest;
    this.movesCursor ||= moves;
    this.wholeScreen ||= wholeScreen;
    this.#style = this.#number(style);
  }

  #number(style: Style): number {
    const name = style === PLAIN ? "" : `${style.front} ${style.back} ${style.flags}`;
    let number = this.#numbers.get(name);
    if (number === undefined) {
      // So many styles are those of a picture: its lines begin plain.
      if (this.#known.length > 0xffff) return 0;
      number = this.#known.push(style) - 1;
      this.#numbers.set(name, number);
    }
    return number;
  }

  #slice(from: number, to: number): Uint8Array {
    let low = 0;
    let high = this.#offsets.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.#offsets[middle] <= from) low = middle;
      else high = middle;
    }
    const begin = this.#offsets[low];
    if (to - begin <= this.#pieces[low].length) return this.#pieces[low].subarray(from - begin, to - begin);
    const parts = new Uint8Array(to - from);
    for (let at = from; at < to && low < this.#pieces.length; low++) {
      const part = this.#pieces[low].subarray(at - this.#offsets[low], to - this.#offsets[low]);
      parts.set(part, at - from);
      at += part.length;
    }
    return parts;
  }
}

/** Return where a byte stands, from a place on; the length where it does not. */
const place = (data: Uint8Array, byte: number, from: number): number => {
  const at = data.indexOf(byte, from);
  return at === -1 ? data.length : at;
};

const latin = (data: Uint8Array): string => {
  let text = "";
  for (let at = 0; at < data.length; at += 8192) text += String.fromCharCode(...data.subarray(at, at + 8192));
  return text;
};

function linesOf(text: string): Line[] {
  const parts = (text.endsWith("\n") ? text.slice(0, -1) : text).split("\n");
  let style = PLAIN;
  return parts.map((raw) => {
    const line = { raw, style };
    style = after(style, raw).style;
    return line;
  });
}
