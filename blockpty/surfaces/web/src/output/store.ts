import { bytesOf, readRendered } from "../api/output.ts";
import { after, type Line, PLAIN } from "./lines.ts";
import { BEGINNING, Part, Styles } from "./parts.ts";

/**
 * The output of one block, as far as it has been fetched: pieces, first those around what is looked at, and where each
 * line begins. A line is decoded when it is drawn, so a long output costs its bytes and two numbers a line. How many
 * lines there are in what is not here yet is guessed by the others: a line is found again by its byte, not its number.
 */

/** What is fetched at once. */
const PIECE = 128 * 1024;
/** Shortest time between two redraws while pieces arrive, unless the lines in view were missing: each costs a frame. */
const SHOWN_MS = 100;
/** Once so much of one output is here, only what is looked at is fetched. */
const MOST = 64 * 1024 * 1024;

/**
 * What draws rows: how many there are, each of them, and where it begins: its line, and the character in that. Not all
 * may be here yet: rows are found by their bytes, since their numbers change.
 */
export interface Lines {
  readonly length: number;
  readonly coming: number;
  readonly store: OutputStore;
  at(row: number): Line;
  placeOf(row: number): [line: number, from: number];
  /** The row that holds a byte of the stream; negative before the first one. */
  rowAt(cursor: number): number;
  cursorOf(row: number): number;
}

const MISSING: Line = { raw: "…", style: PLAIN };

/** Some lines of others: those from a number on. */
export class LastLines implements Lines {
  readonly store: OutputStore;
  #first: number;
  readonly length: number;
  readonly coming = 0;

  constructor(store: OutputStore, count: number) {
    this.store = store;
    this.length = Math.min(count, store.length);
    this.#first = store.length - this.length;
  }

  at(row: number): Line {
    return this.store.at(this.#first + row);
  }

  placeOf(row: number): [number, number] {
    return [this.#first + row, 0];
  }

  rowAt(cursor: number): number {
    return this.store.rowAt(cursor) - this.#first;
  }

  cursorOf(row: number): number {
    return this.store.cursorOf(this.#first + row);
  }
}

export class OutputStore implements Lines {
  readonly store = this;
  readonly conversation: string;
  readonly block: string;
  /** Cursor of the first byte. */
  readonly begin: number;
  /** Whether the output moves the cursor beyond its line, so that only a drawing shows what was seen. */
  movesCursor = false;
  wholeScreen = false;
  /** How many bytes are here. */
  size = 0;
  #parts: Part[] = [];
  #styles = new Styles();
  /** How much of the output is wanted, and which byte of it is looked at, both from its beginning. */
  #wanted: number;
  #looked = 0;
  #newlines = 0;
  #drawn: Line[] | null = null;
  #drawnSize = 0;
  #decoder = new TextDecoder();
  #fills = 0;
  #filling: Promise<unknown> = Promise.resolve();

  constructor(conversation: string, block: string, begin: number, end: number) {
    this.conversation = conversation;
    this.block = block;
    this.begin = begin;
    this.#wanted = end - begin;
  }

  /** How many lines there are up to the last byte that is here. */
  get length(): number {
    if (this.#drawn) return this.#drawn.length;
    const last = this.#parts.at(-1);
    if (!last) return 0;
    // A line that has been begun counts once there is something in it.
    return last.row + last.starts.length + ((last.starts.at(-1) ?? -1) < last.end ? 1 : 0);
  }

  /** How many lines there may be in what is wanted behind those. */
  get coming(): number {
    const left = this.#wanted - (this.#parts.at(-1)?.end ?? 0);
    return this.#drawn || left <= 0 ? 0 : this.#guess(left);
  }

  /** Whether all that is wanted is here. */
  get whole(): boolean {
    return this.size >= this.#wanted;
  }

  at(index: number): Line {
    if (this.#drawn) return this.#drawn[index];
    const at = lastWhere(this.#parts, (part) => part.row <= index);
    const part = this.#parts[at];
    const line = index - (part?.row ?? 0);
    if (!part || line > part.starts.length) return MISSING;
    const end = line < part.starts.length ? part.starts[line] - 1 : part.end;
    const [from, style] = line > 0 ? [part.starts[line - 1], part.styles[line - 1]] : this.#begun(at);
    const raw = this.#decoder.decode(this.#slice(from, end, at)).replace(/\r+$/, "");
    return { raw, style: this.#styles.known[style] };
  }

  placeOf(row: number): [number, number] {
    return [row, 0];
  }

  /** Return where a line begins and how many bytes it has, or in a drawing characters; none where it is not here. */
  extentOf(line: number): [begin: number, length: number] {
    if (this.#drawn) return [-1 - line, this.#drawn[line].raw.length];
    const at = lastWhere(this.#parts, (one) => one.row <= line);
    const part = this.#parts[at];
    const within = line - (part?.row ?? 0);
    if (!part || within > part.starts.length) return [0, 0];
    const begin = within > 0 ? part.starts[within - 1] : this.#begun(at)[0];
    return [begin, (within < part.starts.length ? part.starts[within] : part.end) - begin];
  }

  /** Whether the number of a line is known: all before it is here. */
  isCounted(line: number): boolean {
    if (this.#drawn) return true;
    let end = 0;
    for (const part of this.#parts) {
      if (part.offset !== end) return false;
      if (line <= part.row + part.starts.length) return true;
      end = part.end;
    }
    return false;
  }

  /** Whether the lines were drawn by the server, so that they are no bytes of the stream. */
  get isDrawn(): boolean {
    return this.#drawn !== null;
  }

  /** Cursor at which a program that drew on the alternate screen last left it. */
  get lastScreen(): number {
    const text = new TextDecoder("latin1");
    for (const part of [...this.#parts].reverse()) {
      const at = Math.max(...["47", "1047", "1049"].map((mode) => text.decode(part.data).lastIndexOf(`\x1b[?${mode}l`)));
      if (at !== -1) return this.begin + part.offset + at;
    }
    return this.begin + this.#wanted;
  }

  /** Return the number of the line that holds a byte of the stream. */
  rowAt(cursor: number): number {
    const wanted = cursor - this.begin;
    const part = this.#parts[lastWhere(this.#parts, (one) => one.offset <= wanted)];
    const line = !part
      ? this.#guess(wanted)
      : wanted <= part.end
        ? part.row + 1 + lastWhere(part.starts, (start) => start <= wanted)
        : part.row + part.starts.length + this.#guess(wanted - part.end);
    return Math.max(0, Math.min(line, this.length + this.coming - 1));
  }

  /** Return the first byte of a line, in the stream. */
  cursorOf(line: number): number {
    const at = lastWhere(this.#parts, (one) => one.row <= line);
    const part = this.#parts[at];
    const further = line - (part?.row ?? 0);
    if (!part) return this.begin + Math.round(further * this.#bytesPerLine);
    if (further === 0) return this.begin + this.#begun(at)[0];
    if (further <= part.starts.length) return this.begin + part.starts[further - 1];
    return this.begin + part.end + Math.round((further - part.starts.length) * this.#bytesPerLine);
  }

  /** Take note of what is looked at, which is fetched first. */
  look(cursor: number): void {
    this.#looked = Math.max(0, Math.min(cursor - this.begin, this.#wanted - 1));
  }

  /** Whether what is looked at is not here. */
  get isMissing(): boolean {
    const part = this.#parts[lastWhere(this.#parts, (one) => one.offset <= this.#looked)];
    return !this.#drawn && (!part || this.#looked >= part.end);
  }

  /** Whether it is being fetched. */
  get isFilling(): boolean {
    return this.#fills > 0;
  }

  /**
   * Fetch up to a cursor, a piece at a time; `grown` is called when there is more and may end it by returning false.
   * Raises Problem. An output that moves the cursor is then drawn by the server.
   */
  async fill(to: number, grown: () => boolean): Promise<void> {
    this.#wanted = Math.max(this.#wanted, to - this.begin);
    // One after the other: both would fetch the same piece.
    const turn = <Result>(what: () => Promise<Result>): Promise<Result> => {
      const done = this.#filling.then(what);
      this.#filling = done.catch(() => undefined);
      return done;
    };
    this.#fills++;
    try {
      let shown = -Infinity;
      for (let more = true; more; ) {
        const missed = this.isMissing;
        more = await turn(() => this.#fetch());
        const now = performance.now();
        if (this.size === 0 || (more && !missed && now - shown < SHOWN_MS)) continue;
        shown = now;
        // Also where nothing was missing: what another call has fetched was not shown if that was ended.
        if (!grown()) return;
      }
      if (await turn(() => this.#draw())) grown();
    } finally {
      this.#fills--;
    }
  }

  /** Fetch the piece that is missing nearest to what is looked at; returns whether there was one. */
  async #fetch(): Promise<boolean> {
    const span = this.#nearest();
    if (!span) return false;
    const { data } = await bytesOf(this.conversation, this.begin + span[0], this.begin + span[1]);
    if (data.length === 0) return false;
    this.#take(new Part(span[0], data));
    return true;
  }

  #nearest(): [number, number] | null {
    if (this.size >= MOST && !this.isMissing) return null;
    let best: [number, number] | null = null;
    let least = Infinity;
    let from = 0;
    for (const part of [...this.#parts, null]) {
      const to = part?.offset ?? this.#wanted;
      if (from < to) {
        const at = Math.max(from, Math.min(this.#looked, to - 1));
        const begin = Math.max(from, at - (at % PIECE));
        const distance = Math.abs(at - this.#looked);
        if (distance < least) [best, least] = [[begin, Math.min(to, begin - (begin % PIECE) + PIECE)], distance];
      }
      from = part?.end ?? to;
    }
    return best;
  }

  async #draw(): Promise<boolean> {
    const part = this.#parts[0];
    if (!this.movesCursor || this.wholeScreen || part?.offset !== 0) return false;
    let end = part.end;
    for (const next of this.#parts) if (next.offset === end) end = next.end;
    if (end === this.#drawnSize || (end < this.#wanted && end < MOST)) return false;
    this.#drawn = linesOf(await readRendered(this.conversation, this.block, this.begin, this.begin + end));
    this.#drawnSize = end;
    return true;
  }

  #take(part: Part): void {
    const parts = this.#parts;
    let at = lastWhere(parts, (one) => one.offset <= part.offset) + 1;
    parts.splice(at, 0, part);
    this.size += part.data.length;
    // What follows begins in what this one ended in, which was not known before.
    for (let before = parts[at - 1]; at < parts.length; before = parts[at++]) {
      const one = parts[at];
      const ending = at > 0 && before.end === one.offset ? before.ending : BEGINNING;
      if (one !== part && one.before.style === ending.style && one.before.rest === ending.rest) break;
      one.read(this.#styles, ending);
      this.movesCursor ||= one.moves;
      this.wholeScreen ||= one.wholeScreen;
    }
    this.#newlines += part.starts.length;
    let [row, end] = [0, 0];
    for (const one of parts) {
      if (one.offset > end) row += this.#guess(one.offset - end);
      one.row = row;
      row += one.starts.length;
      end = one.end;
    }
  }

  get #bytesPerLine(): number {
    return Math.max(1, this.size / Math.max(1, this.#newlines));
  }

  #guess(bytes: number): number {
    return Math.max(1, Math.round(bytes / this.#bytesPerLine));
  }

  /** Return where the line begins in which a part does, as far as it is here, and in which style. */
  #begun(at: number): [number, number] {
    const parts = this.#parts;
    for (; at > 0 && parts[at - 1].end === parts[at].offset; at--) {
      const { starts, styles } = parts[at - 1];
      if (starts.length) return [starts[starts.length - 1], styles[starts.length - 1]];
    }
    return [parts[at].offset, parts[at].before.style];
  }

  /** Return bytes up to one in a part, from one in it or in those before. */
  #slice(from: number, to: number, at: number): Uint8Array {
    let first = at;
    while (this.#parts[first].offset > from) first--;
    if (first === at) return this.#parts[at].data.subarray(from - this.#parts[at].offset, to - this.#parts[at].offset);
    const bytes = new Uint8Array(to - from);
    for (; first <= at; first++) {
      const { offset, data } = this.#parts[first];
      const begin = Math.max(from, offset);
      bytes.set(data.subarray(begin - offset, to - offset), begin - from);
    }
    return bytes;
  }
}

/** Return the place of the last of some, for the first of which something holds and for the others does not; or -1. */
function lastWhere<One>(all: ArrayLike<One>, holds: (one: One) => boolean): number {
  let low = 0;
  let high = all.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(all[middle])) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

function linesOf(text: string): Line[] {
  const parts = (text.endsWith("\n") ? text.slice(0, -1) : text).split("\n");
  let style = PLAIN;
  return parts.map((raw) => {
    const line = { raw, style };
    style = after(style, raw).style;
    return line;
  });
}
