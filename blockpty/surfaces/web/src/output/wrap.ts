import { width } from "../terminal/characters.ts";
import { draw, type Line } from "./lines.ts";
import type { Lines, OutputStore } from "./store.ts";

/** Lines cut into rows of so many columns. */
const TAB = 8;
const NARROW = /^[\x20-\x7e]*$/;

/** Return where the rows of a line begin, the first at 0. */
function rowsOf(line: Line, columns: number): number[] {
  const text = draw(line).pieces.map((piece) => piece.text).join("");
  const rows = [0];
  if (NARROW.test(text)) {
    for (let at = columns; at < text.length; at += columns) rows.push(at);
    return rows;
  }
  let column = 0;
  let at = 0;
  for (const one of text) {
    const cells = one === "\t" ? TAB - (column % TAB) : width(one.codePointAt(0)!);
    if (column + cells > columns && column > 0) {
      rows.push(at);
      column = 0;
    }
    column += one === "\t" ? TAB - (column % TAB) : cells;
    at += one.length;
  }
  return rows;
}

/** How many rows the lines of an output have, by where they begin: a long one is drawn for that only once. */
class Counts {
  readonly columns: number;
  #known = new Map<number, [length: number, rows: number]>();

  constructor(columns: number) {
    this.columns = columns;
  }

  of(store: OutputStore, line: number): number {
    const [begin, length] = store.extentOf(line);
    if (length === 0) return 1;
    const known = this.#known.get(begin);
    if (known?.[0] === length) return known[1];
    const one = store.at(line);
    // A character has no more columns than bytes, but for a tab.
    const rows = length <= this.columns && !one.raw.includes("\t") ? 1 : rowsOf(one, this.columns).length;
    this.#known.set(begin, [length, rows]);
    return rows;
  }
}

const counts = new WeakMap<OutputStore, Counts>();

export class Wrapped implements Lines {
  readonly store: OutputStore;
  readonly length: number;
  readonly coming: number;
  #lines: Lines;
  #columns: number;
  /** The first row of each line, and behind the last one their number. */
  #firsts: Uint32Array;

  constructor(lines: Lines, columns: number) {
    this.store = lines.store;
    this.#lines = lines;
    this.#columns = columns;
    let known = counts.get(lines.store);
    if (known?.columns !== columns) counts.set(lines.store, (known = new Counts(columns)));
    const { length } = lines;
    this.#firsts = new Uint32Array(length + 1);
    for (let at = 0; at < length; at++) this.#firsts[at + 1] = this.#firsts[at] + known.of(lines.store, lines.placeOf(at)[0]);
    this.length = this.#firsts[length];
    this.coming = lines.coming;
  }

  at(row: number): Line {
    const [index, within] = this.#find(row);
    const line = this.#lines.at(index);
    if (this.#rows(index) === 1) return line;
    const begins = rowsOf(line, this.#columns);
    return { ...line, from: begins[within], to: begins[within + 1] };
  }

  placeOf(row: number): [number, number] {
    const [index, within] = this.#find(row);
    const [line] = this.#lines.placeOf(index);
    return [line, within === 0 ? 0 : (rowsOf(this.#lines.at(index), this.#columns)[within] ?? 0)];
  }

  rowAt(cursor: number): number {
    const at = this.#lines.rowAt(cursor);
    if (at < 0 || at >= this.#lines.length) return at < 0 ? at : this.length + at - this.#lines.length;
    const rows = this.#rows(at);
    const share = (cursor - this.#lines.cursorOf(at)) / Math.max(1, this.#bytesOf(at));
    return this.#firsts[at] + Math.max(0, Math.min(rows - 1, Math.floor(share * rows)));
  }

  cursorOf(row: number): number {
    const [at, within] = this.#find(row);
    return this.#lines.cursorOf(at) + Math.ceil((within / this.#rows(at)) * this.#bytesOf(at));
  }

  #bytesOf(index: number): number {
    return this.store.extentOf(this.#lines.placeOf(index)[0])[1];
  }

  #rows(index: number): number {
    return index < this.#lines.length ? this.#firsts[index + 1] - this.#firsts[index] : 1;
  }

  /** Return the line that a row is of, and the how manieth of its rows; behind the last one a row is a line. */
  #find(row: number): [number, number] {
    if (row >= this.length) return [this.#lines.length + row - this.length, 0];
    let [low, high] = [0, this.#lines.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#firsts[middle] <= row) low = middle;
      else high = middle - 1;
    }
    return [low, row - this.#firsts[low]];
  }
}

/** Return how wide the longest row may be: as many cells as fit. */
export function columnsIn(room: number, font: string): number {
  const context = (canvas ??= document.createElement("canvas").getContext("2d")!);
  context.font = font;
  return Math.max(20, Math.floor(room / (context.measureText("0".repeat(100)).width / 100)));
}
let canvas: CanvasRenderingContext2D | null = null;
