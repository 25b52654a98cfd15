import { effect, signal } from "@preact/signals";

/** What is marked in the outputs that are in view: by the browser's own highlights, which change no element. */
export const marked = signal("");
const NAME = "find";
const MOST = 2000;
let planned = 0;

function ranges(text: string): Range[] {
  const wanted = text.toLowerCase();
  const found: Range[] = [];
  for (const row of document.querySelectorAll(".blocks .row")) {
    const whole = row.textContent!.toLowerCase();
    for (let at = whole.indexOf(wanted); at !== -1 && found.length < MOST; at = whole.indexOf(wanted, at + wanted.length)) {
      const range = document.createRange();
      range.setStart(...place(row, at));
      range.setEnd(...place(row, at + wanted.length));
      found.push(range);
    }
  }
  return found;
}

/** Return the text node of a row that holds a character, and where in it. */
export function place(row: Element, at: number): [Node, number] {
  const walker = document.createTreeWalker(row, NodeFilter.SHOW_TEXT);
  let node = walker.nextNode()!;
  for (let left = at; ; left -= node.textContent!.length, node = walker.nextNode()!)
    if (left <= node.textContent!.length) return [node, left];
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
