import { part, type Piece } from "./lines.ts";

/** Links in outputs: only to the web, of a program or in the text. */
const FOUND = /\bhttps?:\/\/[^\s<>"`\x00-\x1f\x7f-\x9f]+/gi;
export const LONGEST = 2000;
const CLOSING: Record<string, string> = { ")": "(", "]": "[", "}": "{" };

/** Return the address that a text leads to, as the browser would open it: names of other scripts are in punycode. */
export function address(text: string): URL | null {
  if (text.length > LONGEST || !/^https?:\/\//i.test(text)) return null;
  try {
    return new URL(text);
  } catch {
    return null;
  }
}

/** Return the addresses in a text, and where they are. */
export function addressesIn(text: string): { link: string; at: number }[] {
  return [...text.matchAll(FOUND)].map(({ 0: found, index }) => ({ link: trimmed(found), at: index })).filter(({ link }) => address(link));
}

/** Mark the addresses in a line. */
export function withLinks(pieces: Piece[]): Piece[] {
  if (!pieces.some(({ text }) => text.includes("/"))) return pieces;
  // The colour may change within an address.
  const line = pieces.map(({ text }) => text).join("");
  const marked: Piece[] = [];
  let behind = 0;
  for (const { link, at } of addressesIn(line)) {
    marked.push(...part(pieces, behind, at));
    behind = at + link.length;
    for (const { text, style } of part(pieces, at, behind)) marked.push({ text, style: style.link ? style : { ...style, link } });
  }
  return behind === 0 ? pieces : [...marked, ...part(pieces, behind, line.length)];
}

/** Leave out what ends a sentence, and brackets that were opened before the address. */
function trimmed(text: string): string {
  const unopened = (closing: string, opening: string) => text.split(closing).length - text.split(opening).length;
  // Counted once: a line may be all brackets.
  const left = Object.fromEntries(Object.entries(CLOSING).map(([closing, opening]) => [closing, unopened(closing, opening)]));
  let end = text.length;
  for (; end > 0; end--) {
    const last = text[end - 1];
    if (left[last] > 0) left[last]--;
    else if (!".,;:!?'*".includes(last)) break;
  }
  return text.slice(0, end);
}
