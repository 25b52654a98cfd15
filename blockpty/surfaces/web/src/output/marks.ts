import { effect, signal } from "@preact/signals";
import { place, rowsIn } from "./selection.ts";

/** What is marked in the outputs that are in view: by the browser's own highlights, which change no element. */
export const marked = signal("");
const NAME = "find";
const MOST = 2000;
let planned = 0;

/** The rows of each line that is in the document, in their order: one, or several where lines are wrapped. */
function* linesShown(): Generator<Element[]> {
  for (const out of document.querySelectorAll(".blocks .out")) {
    const view = rowsIn(out);
    let line: Element[] = [];
    for (const [at, row] of [...out.querySelectorAll(".row")].entries()) {
      const isNew = !view || view.lines.placeOf(view.first + at)[1] === 0;
      if (isNew && line.length > 0) yield line;
      if (isNew) line = [];
      line.push(row);
    }
    yield line;
  }
}

function ranges(text: string): Range[] {
  // Unlike lower case, this is as long as what it finds.
  const wanted = new RegExp(text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"), "giu");
  const found: Range[] = [];
  for (const rows of linesShown()) {
    // Each row ends with a line end.
    const texts = rows.map((row) => row.textContent!.slice(0, -1));
    for (const { index, 0: { length } } of texts.join("").matchAll(wanted)) {
      let begin = 0;
      for (const [at, { length: size }] of texts.entries()) {
        const [from, to] = [Math.max(0, index - begin), Math.min(size, index + length - begin)];
        begin += size;
        if (from >= to) continue;
        const range = document.createRange();
        range.setStart(...place(rows[at], from));
        range.setEnd(...place(rows[at], to));
        found.push(range);
      }
      if (found.length >= MOST) return found;
    }
  }
  return found;
}

function draw(): void {
  planned = 0;
  if (!("highlights" in CSS)) return;
  if (marked.peek() === "") CSS.highlights.delete(NAME);
  else CSS.highlights.set(NAME, new Highlight(...ranges(marked.peek())));
}

const plan = (): void => {
  planned ||= requestAnimationFrame(draw);
};
const rows = new MutationObserver(plan);
effect(() => {
  rows.disconnect();
  if (marked.value !== "") rows.observe(document.body, { childList: true, subtree: true, characterData: true });
  plan();
});
