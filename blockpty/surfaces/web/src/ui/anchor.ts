import type { RefObject } from "preact";
import { cursorAt, pixelsAbove } from "../output/rows.tsx";
import { reachingBelow } from "./inView.ts";

const NEAR = 24;

/** What is at the top of the view: an edge of a block, or a byte of its output and so many pixels of its line above. */
type Spot = "top" | "bottom" | [cursor: number, over: number];

interface Mark {
  block: HTMLElement;
  spot: Spot;
  /** Where it is in the window, and how far the list was scrolled then. */
  y: number;
  scrolled: number;
}

/**
 * What is read in a list of blocks: its end, or what is at the top of the view. That stays where it is in the window,
 * whatever changes its height above. Not all browsers see to it, and none knows which line a row shows.
 */
export class Anchor {
  atEnd: boolean;
  #box: RefObject<HTMLElement | null>;
  #mark: Mark | null = null;
  #top = 0;
  #height = 0;

  constructor(box: RefObject<HTMLElement | null>, atEnd: boolean) {
    this.#box = box;
    this.atEnd = atEnd;
  }

  /** The block at the top of the view. */
  get block(): string | undefined {
    return this.#mark?.block.dataset.block;
  }

  /** Put back what is read, before it is painted elsewhere. */
  readonly keep = (): void => {
    const box = this.#box.current;
    // A hidden list has no heights.
    if (!box?.clientHeight) return;
    if (this.atEnd) {
      box.scrollTop = box.scrollHeight;
      [this.#top, this.#height] = [box.scrollTop, box.scrollHeight];
      return;
    }
    // What is not in the list any more is nowhere.
    if (this.#mark?.block.isConnected) {
      const { block, spot, y, scrolled } = this.#mark;
      const { scrollTop, scrollHeight, clientHeight } = box;
      const by = heightOf(block, spot, clientHeight) - y + scrollTop - scrolled;
      // So little may be left that the browser had to scroll up.
      const isCut = scrollTop < scrolled && scrollTop + clientHeight > scrollHeight - 1;
      if (Math.abs(by) >= 1) box.scrollTop = (isCut ? scrolled : scrollTop) + by;
    }
    this.remember();
  };

  /** Take note of what is at the top of the view: also after a jump, which is no scrolling from where it was. */
  remember(): void {
    const box = this.#box.current!;
    const edge = box.getBoundingClientRect().top;
    // One of which less than a pixel is in view is none.
    const block = reachingBelow(box.firstElementChild!.children, edge + 1);
    this.#mark = null;
    if (!block) return;
    const spot = spotAt(block, edge, box.clientHeight);
    this.#mark = { block, spot, y: heightOf(block, spot, box.clientHeight), scrolled: box.scrollTop };
  }

  /** Take note of where a reader goes; the end of the list may not be the end of all. */
  scrolled(isLast: boolean): void {
    const { scrollTop, scrollHeight, clientHeight } = this.#box.current!;
    const isNear = isLast && scrollHeight - scrollTop - clientHeight < NEAR;
    const wasAtEnd = this.atEnd;
    // Only a reader goes up, or a list that has become shorter: that does not leave the end.
    if (isNear || (scrollTop < this.#top && scrollHeight >= this.#height)) this.atEnd = isNear;
    [this.#top, this.#height] = [scrollTop, scrollHeight];
    // Something may have changed since the last frame as well.
    if (wasAtEnd || isNear) this.remember();
    else this.keep();
  }
}

function spotAt(block: Element, edge: number, room: number): Spot {
  const out = block.querySelector<HTMLElement>(".out");
  if (!out) return "top";
  const { top, bottom } = out.getBoundingClientRect();
  return edge < top ? "top" : edge >= bottom ? "bottom" : (cursorAt(out, edge - top, room) ?? "top");
}

/** Return where a spot is in the window; of a line that is folded now, the block. */
function heightOf(block: Element, spot: Spot, room: number): number {
  const box = block.getBoundingClientRect();
  if (typeof spot === "string") return box[spot];
  const out = block.querySelector<HTMLElement>(".out");
  const pixels = out && pixelsAbove(out, ...spot, room);
  return pixels === null ? box.top : out!.getBoundingClientRect().top + pixels;
}
