import { BASE } from "../base.ts";
import { signedOut, token } from "./auth.ts";
import { call, of, Problem } from "./http.ts";

/** Reading outputs: bytes of a span, and what a person saw of it. */
const RENDERED = 1024 * 1024;
const LARGEST = 64 * RENDERED;
const MOST_LINES = 100_000;

interface Span {
  data: Uint8Array;
  /** Where the next one begins. */
  cursor: number;
}

/** Fetch bytes of the stream, at most 1 MiB; raises Problem. */
export async function bytesOf(conversation: string, from: number, to: number): Promise<Span> {
  const given = token();
  const headers = { Authorization: `Bearer ${given ?? ""}` };
  let answer: Response;
  try {
    answer = await fetch(`${BASE}/v1${of(conversation, `stream?from=${from}&to=${to}`)}`, { headers });
    if (answer.status === 401) signedOut(given);
    if (answer.ok)
      return {
        data: new Uint8Array(await answer.arrayBuffer()),
        cursor: Number(answer.headers.get("Blockpty-Cursor")),
      };
  } catch {
    throw new Problem("unreachable", "The server does not answer.", "blockpty serve starts it.");
  }
  throw new Problem("error", `The server answered with ${answer.status}.`, "");
}

interface Piece {
  data: string;
  cursor: number;
  next_line: number | null;
}

/** Read a block's output as a person saw it in the end, with colours; raises Problem. */
export async function readRendered(conversation: string, block: string, from: number, to: number): Promise<string> {
  let text = "";
  // The server draws an output from its beginning each time, so that pieces grow: it then draws all of it about twice.
  for (let line: number | null = 0, most = RENDERED; line !== null && line < MOST_LINES; most = Math.min(2 * most, LARGEST)) {
    const query = new URLSearchParams({
      block_id: block, view: "rendered", style: "sgr", from_cursor: `${from}`, to_cursor: `${to}`,
      from_line: `${line}`, max_bytes: `${most}`,
    });
    const piece: Piece = await call<Piece>(of(conversation, `read?${query}`));
    text += piece.data;
    line = piece.next_line;
  }
  return text;
}

/** Read a block's output as text, to be copied; raises Problem. */
export async function readText(conversation: string, block: string, view: "text" | "rendered", end: number): Promise<string> {
  let text = "";
  for (let cursor: number | null = null; cursor === null || cursor < end; ) {
    const query = new URLSearchParams({ block_id: block, view, max_bytes: `${RENDERED}` });
    if (cursor !== null) query.set("from_cursor", `${cursor}`);
    const piece: Piece = await call<Piece>(of(conversation, `read?${query}`));
    text += piece.data;
    if (cursor !== null && piece.cursor <= cursor) break;
    cursor = piece.cursor;
  }
  return text.replace(/\n$/, "");
}
