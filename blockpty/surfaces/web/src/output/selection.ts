import { Problem } from "../api/http.ts";
import { attempt, copy, say } from "../store/notice.ts";
import { lines as inLines } from "../words.ts";
import { textOf } from "./lines.ts";
import { type Lines, OutputStore } from "./store.ts";

/**
 * What is selected of outputs, by line and character: rows are used again for other lines, and most lines have none. A
 * copy is made of the lines, with those that are folded or out of view.
 */
interface View {
  lines: Lines;
  first: number;
}

/** Where a block's output is. */
export interface Source {
  conversation: string;
  block: string;
  cmd: string;
  span: [number, number];
  store: OutputStore | null;
}

interface Spot {
  store: OutputStore;
  line: number;
  column: number;
}

/** An end of the selection: where it is in the document, and what stands there. */
interface End {
  node: Node;
  offset: number;
  /** The block it is in, and the spot in its output; before or behind that, there is none. */
  block: Element | null;
  spot: Spot | "before" | "behind";
}

/** So many bytes of whole outputs are copied at once: all of them are held in memory. */
const MOST = 64 * 1024 * 1024;

const views = new WeakMap<Element, View>();
const sources = new WeakMap<Element, () => Source>();
let ends: [End, End] | null = null;

export const rowsIn = (out: Element): View | undefined => views.get(out);

/** Return the text node of a row that holds a character, and where in it. */
export function place(row: Element, at: number): [Node, number] {
  const walker = document.createTreeWalker(row, NodeFilter.SHOW_TEXT);
  let node = walker.nextNode()!;
  for (let left = at; ; left -= node.textContent!.length, node = walker.nextNode()!)
    if (left <= node.textContent!.length) return [node, left];
}

/** Have the text of a block's output be copied from where it is. */
export function hasOutput(block: Element, source: () => Source): void {
  sources.set(block, source);
}

/** Take note of which rows an element shows now, and have the same lines be selected as before. */
export function showsRows(out: Element, lines: Lines, first: number): void {
  const before = views.get(out);
  views.set(out, { lines, first });
  // Where nothing changes, the browser may not yet have said what is selected now.
  const isSame = before?.first === first && before.lines.length === lines.length && before.lines.store === lines.store;
  if (isSame || !ends || !ends.some(({ spot, block }) => typeof spot === "object" && block?.contains(out))) return;
  const selection = getSelection()!;
  const [anchor, focus] = ends.map((end) => (end.block?.contains(out) ? shownAt(end, out) : end));
  if (selection.anchorNode !== anchor.node || selection.anchorOffset !== anchor.offset || selection.focusNode !== focus.node || selection.focusOffset !== focus.offset)
    selection.setBaseAndExtent(anchor.node, anchor.offset, focus.node, focus.offset);
  ends = [anchor, focus];
}

/** Return an end where its line is shown now; where it is out of view, at the first or the last row. */
function shownAt(end: End, out: Element): End {
  const { lines, first } = views.get(out)!;
  if (typeof end.spot !== "object" || end.spot.store !== lines.store) return end;
  const { line, column } = end.spot;
  const rows = [...out.querySelectorAll(".row")];
  let found = -1;
  for (let at = 0; at < rows.length; at++) {
    const [one, from] = lines.placeOf(first + at);
    if (one > line || (one === line && from > column)) break;
    found = at;
  }
  if (rows.length === 0) return end;
  if (found === -1) {
    // In the text: there the browser leaves an end from which a selection is made larger.
    const [node, offset] = place(rows[0], 0);
    return { ...end, node, offset };
  }
  const [one, from] = lines.placeOf(first + found);
  const length = rows[found].textContent!.length - 1;
  const [node, offset] = place(rows[found], one < line ? length : Math.min(length, column - from));
  return { ...end, node, offset };
}

/** Return what stands at a place of the document. */
function endAt(node: Node, offset: number): End {
  const element = node instanceof Element ? node : node.parentElement!;
  const block = element.closest("[data-block]");
  const out = element.closest(".out");
  const view = out && views.get(out);
  if (!block || !view) {
    const rows = block?.querySelector(".out");
    const isBefore = rows && rows.compareDocumentPosition(node) & Node.DOCUMENT_POSITION_PRECEDING;
    return { node, offset, block, spot: isBefore ? "before" : "behind" };
  }
  const rows = [...out.querySelectorAll(".row")];
  const row = element.closest(".row") ?? (offset === 0 ? rows[0] : rows.at(-1));
  if (!row) return { node, offset, block, spot: "before" };
  const range = document.createRange();
  range.selectNodeContents(row);
  if (row.contains(node)) range.setEnd(node, offset);
  else if (offset === 0) range.collapse(true);
  const [line, from] = view.lines.placeOf(view.first + rows.indexOf(row));
  return { node, offset, block, spot: { store: view.lines.store, line, column: from + range.toString().length } };
}

/** Take note of what is selected: before rows are used again, since the browser says it a moment later. */
export function noteSelection(): void {
  const { anchorNode, anchorOffset, focusNode, focusOffset } = getSelection()!;
  // Also where nothing is selected: a click with Shift goes on from there.
  if (!anchorNode || !focusNode) {
    ends = null;
    return;
  }
  const same = (end: End | undefined, node: Node, offset: number) => (end?.node === node && end.offset === offset ? end : endAt(node, offset));
  ends = [same(ends?.[0], anchorNode, anchorOffset), same(ends?.[1], focusNode, focusOffset)];
}
document.addEventListener("selectionchange", noteSelection);

document.addEventListener("copy", (event) => {
  noteSelection();
  const selection = getSelection()!;
  if (!ends || isCollapsed(ends) || (event.target as Element).closest?.("input, textarea, .xterm")) return;
  const range = selection.getRangeAt(0);
  const blocks = [...document.querySelectorAll("[data-block]")].filter((one) => range.intersectsNode(one));
  const isWithin = ends[0].block === ends[1].block && ends[0].block !== null;
  const [start, end] = isBackward(selection, range, ends) ? [ends[1], ends[0]] : ends;
  // What is not of an output is copied as it is.
  if (blocks.length === 0 || (isWithin && typeof start.spot === "string" && start.spot === end.spot)) return;
  const wanted = blocks
    .map((block) => ({
      source: sources.get(block)!(),
      start: start.block === block ? start.spot : "before",
      end: end.block === block ? end.spot : "behind",
    }) as const)
    .filter((one) => one.start !== "behind" && one.end !== "before");
  event.preventDefault();
  const entire = wanted.filter((one) => typeof one.start === "string" && typeof one.end === "string");
  if (entire.reduce((size, { source: { span } }) => size + span[1] - span[0], 0) > MOST) return say("This is too much to copy.", true);
  const texts = wanted.map((one) => textIn(one.source.store, one));
  if (texts.every((text) => text !== null)) event.clipboardData!.setData("text/plain", texts.join("\n"));
  else
    void attempt(async () => {
      const fetched: string[] = [];
      for (const [at, one] of wanted.entries()) fetched.push(texts[at] ?? textIn(await whole(one.source), one) ?? "");
      const text = fetched.join("\n");
      await copy(text, `${inLines(text.split("\n").length)} copied`);
    });
});

const isCollapsed = ([{ spot: anchor, block }, { spot: focus, block: other }]: [End, End]): boolean =>
  typeof anchor === "object" && typeof focus === "object"
    ? block === other && anchor.line === focus.line && anchor.column === focus.column
    : getSelection()!.isCollapsed;

/** Whether a selection was made from its end; both ends may be shown at the same place, where they are out of view. */
function isBackward(selection: Selection, range: Range, [{ spot: anchor }, { spot: focus, block }]: [End, End]): boolean {
  if (typeof anchor === "object" && typeof focus === "object" && block?.contains(selection.anchorNode))
    return anchor.line > focus.line || (anchor.line === focus.line && anchor.column > focus.column);
  return selection.anchorNode !== range.startContainer || selection.anchorOffset !== range.startOffset;
}

interface Wanted {
  source: Source;
  /** Where it begins and ends in this block. */
  start: End["spot"];
  end: End["spot"];
}

/** Return what is wanted of a block's output, with its command where it begins before that; null where not all is here. */
function textIn(store: OutputStore | null, { source, start, end }: Wanted): string | null {
  const [begin, last] = source.span;
  const isWhole = typeof start !== "object";
  const head = isWhole ? [`$ ${source.cmd}`] : [];
  if (last === begin || store?.wholeScreen) return head.join("\n");
  if (!store?.whole || (store.begin > begin && isWhole) || (store.movesCursor && !store.isDrawn)) return null;
  const first = isWhole ? 0 : lineIn(store, start);
  const behind = typeof end === "object" ? lineIn(store, end) : store.length - 1;
  const lines = [];
  for (let at = first; at <= behind; at++) lines.push(textOf(store.at(at)));
  if (typeof end === "object") lines[lines.length - 1] = lines[lines.length - 1].slice(0, end.column);
  if (!isWhole) lines[0] = lines[0].slice(start.column);
  return [...head, ...lines].join("\n");
}

/** Return the number of a spot's line in another store of the same output; both end with its end. */
const lineIn = (store: OutputStore, spot: Spot): number => (store === spot.store ? spot.line : store.length - spot.store.length + spot.line);

/** Fetch an output from its beginning; raises Problem. */
async function whole({ conversation, block, span }: Source): Promise<OutputStore> {
  const store = new OutputStore(conversation, block, ...span);
  await store.fill(span[1], () => true);
  if (!store.whole) throw new Problem("too_long", `The output of ${block} is too long to be copied`, "Save it as a file (e).");
  return store;
}
