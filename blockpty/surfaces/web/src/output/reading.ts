import { call, of } from "../api/http.ts";
import type { Block } from "../api/types.ts";
import { type Line, movesCursor, split, usesWholeScreen } from "./lines.ts";

/** Up to this size an output is fetched whole; of a longer one its end, until all is asked for. */
const WHOLE = 64 * 1024;
const TAIL = 16 * 1024;
const PIECE = 1024 * 1024;
const MOST = 16 * 1024 * 1024;

export interface Output {
  text: string;
  lines: Line[];
  /** Whether there is more before these lines. */
  partial: boolean;
  whole: boolean;
  wholeScreen: boolean;
}

/** Read the output of a block as lines; raises Problem. `all`: the whole, up to 16 MiB, instead of its end. */
export async function readOutput(conversation: string, block: Block, all: boolean): Promise<Output> {
  const [begin, ended] = block.span;
  const end = ended ?? begin + block.out_bytes;
  const limit = all ? MOST : WHOLE;
  const partial = end - begin > limit;
  const from = partial ? (all ? begin : end - TAIL) : begin;
  let text = await pieces(conversation, block.block_id, "ansi", from, end, limit);
  const wholeScreen = usesWholeScreen(text);
  if (!wholeScreen && movesCursor(text))
    text = await pieces(conversation, block.block_id, "rendered", from, end, limit);
  // What begins inside a line is left out.
  if (partial && !all) text = text.slice(text.indexOf("\n") + 1);
  return { text, lines: split(text), partial: partial && !all, whole: all || !partial, wholeScreen };
}

async function pieces(
  conversation: string, id: string, view: string, from: number, end: number, limit: number,
): Promise<string> {
  let text = "";
  for (let cursor = from; cursor < end && text.length < limit; ) {
    const size = Math.min(PIECE, limit);
    const query = new URLSearchParams({ block_id: id, view, from_cursor: `${cursor}`, max_bytes: `${size}` });
    const piece = await call<{ data: string; cursor: number }>(of(conversation, `read?${query}`));
    if (piece.cursor <= cursor) break;
    text += piece.data;
    cursor = piece.cursor;
  }
  return text;
}

/** Return how many lines of an output end before a byte of the stream. */
export async function linesBefore(conversation: string, block: Block, at: number): Promise<number> {
  let count = 0;
  for (let cursor = block.span[0]; cursor < at; ) {
    // A raw piece is as long as it is in the stream.
    const size = Math.min(PIECE, at - cursor);
    const query = new URLSearchParams({ block_id: block.block_id, view: "raw", from_cursor: `${cursor}`, max_bytes: `${size}` });
    const piece = await call<{ data: string; cursor: number }>(of(conversation, `read?${query}`));
    if (piece.cursor <= cursor) break;
    for (let place = piece.data.indexOf("\n"); place !== -1; place = piece.data.indexOf("\n", place + 1)) count++;
    cursor = piece.cursor;
  }
  return count;
}

/** Return a line as it is copied: without anything that only a terminal obeys. */
export const plain = (line: Line): string =>
  line.raw.replace(/\x1b\[[0-9:;<=>?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]|[\x00-\x08\x0b-\x1f\x7f]/g, "");
