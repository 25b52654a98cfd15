import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { memo } from "../memo.ts";
import { draw, type Line } from "./lines.ts";
import type { Lines } from "./store.ts";

/** Pixels of a row, as in the style sheet. */
export const HEIGHT = 19;
/** Rows drawn above and below the view. After a jump they are drawn once scrolling pauses. */
const AROUND = 8;
const SETTLED_MS = 100;
/** Fewer lines than this are simply all there. */
const ALL = 200;
/** Browsers stop at about 16 million pixels: of more lines than this, a pixel is several. */
const MOST = 400_000;

const Row = memo(({ raw, style }: Line) => (
  <div class="row">
    {draw({ raw, style }).map(({ text, classes, colour }) =>
      classes || colour ? (
        <span class={classes} style={colour ? { color: colour } : undefined}>
          {text}
        </span>
      ) : (
        text
      ),
    )}
    {"\n"}
  </div>
));

const range = (from: number, to: number): number[] => Array.from({ length: Math.max(0, to - from) }, (_, at) => from + at);

/** An output of which not all is here: lines are found by their bytes, since their numbers change. */
export interface Growing extends Lines {
  readonly size: number;
  readonly coming: number;
  lineAt(cursor: number): number;
  cursorOf(line: number): number;
}

const total = (lines: Growing): number => lines.length + lines.coming;

/** Return which line is at the top of a view of so many lines, where so many rows are above it. */
function lineAbove(rows: number, count: number, shown: number): number {
  const last = Math.min(count, MOST) - shown;
  return rows <= 0 || last <= 0 ? rows : rows < last ? (rows * (count - shown)) / last : rows - last + count - shown;
}

/** The other way round. */
function rowsAbove(line: number, count: number, shown: number): number {
  const last = Math.min(count, MOST) - shown;
  return line <= 0 || last <= 0 ? line : line < count - shown ? (line * last) / (count - shown) : line - count + shown + last;
}

/** Return how many pixels of the rows are above a view of so much room, in the middle of which a byte's line stands. */
export function pixelsAbove(lines: Growing, cursor: number, room: number): number {
  const shown = room / HEIGHT;
  return rowsAbove(lines.lineAt(cursor) - shown / 2, total(lines), shown) * HEIGHT;
}

/** All lines of an output; of a long one only the rows in view are in the document. */
export function AllRows({ lines, looked }: { lines: Growing; looked: (cursor: number) => void }) {
  return total(lines) <= ALL ? <Rows lines={lines} /> : <VirtualRows lines={lines} looked={looked} />;
}

/** Some lines. */
export function Rows({ lines }: { lines: Lines }) {
  return (
    <div class="out">
      {range(0, lines.length).map((at) => (
        <Row key={at} {...lines.at(at)} />
      ))}
    </div>
  );
}

interface View {
  first: number;
  last: number;
  /** Where the first one stands. */
  top: number;
  /** Key of the first row. Lines that stay in view keep their keys, so their rows are left alone. */
  key: number;
}

function VirtualRows({ lines, looked }: { lines: Growing; looked: (cursor: number) => void }) {
  const box = useRef<HTMLDivElement>(null);
  const drawn = useRef<View>({ first: 0, last: 80, top: 0, key: 0 });
  const [{ first, last, top, key }, setView] = useState<View>(drawn.current);
  /** The byte whose line is at the top of the view, and how much of that line is above it, in lines. */
  const held = useRef<[number, number] | null>(null);
  const count = total(lines);
  // The cleanup of useEffect runs a frame after unmounting, when the listeners would look for rows that are gone.
  useLayoutEffect(() => {
    const scroller = box.current!.closest(".blocks")!;
    const above = () => scroller.getBoundingClientRect().top - box.current!.getBoundingClientRect().top;
    const shown = () => scroller.clientHeight / HEIGHT;
    let settling = 0;
    const look = () => {
      const over = above();
      const line = lineAbove(over / HEIGHT, count, shown());
      // An output that is out of view has its first or last rows: where it goes from there is no jump.
      const seen = Math.max(0, Math.min(line, count - shown()));
      const jumps = seen + shown() < drawn.current.first || seen > drawn.current.last;
      const around = jumps ? 0 : AROUND;
      clearTimeout(settling);
      if (jumps) settling = setTimeout(look, SETTLED_MS);
      // Always as many rows: one more or less is made anew.
      const rows = Math.ceil(shown()) + 1 + 2 * around;
      const from = Math.max(0, Math.min(Math.floor(line) - around, count - rows));
      const to = Math.min(count, from + rows);
      // As long as a line has a row of its own, the rows stay where they are.
      const top = count <= MOST ? from * HEIGHT : over - (line - from) * HEIGHT;
      const old = drawn.current;
      if (old.first !== from || old.last !== to || old.top !== top) {
        const stays = !jumps && to - from === old.last - old.first;
        drawn.current = { first: from, last: to, top, key: stays ? old.key + from - old.first : old.key };
        setView(drawn.current);
      }
      held.current = line >= 1 && line < count ? [lines.cursorOf(Math.floor(line)), line % 1] : null;
      return Math.floor(line + shown() / 2);
    };
    const scrolled = () => {
      const middle = look();
      if (middle >= 0 && middle < count) looked(lines.cursorOf(middle));
    };
    // Lines that were guessed are counted now: what is looked at stays where it is.
    if (held.current) {
      const [cursor, part] = held.current;
      const wanted = lines.lineAt(cursor) + part;
      const over = above();
      if (Math.floor(lineAbove(over / HEIGHT, count, shown())) !== Math.floor(wanted))
        scroller.scrollTop += rowsAbove(wanted, count, shown()) * HEIGHT - over;
    }
    look();
    scroller.addEventListener("scroll", scrolled, { passive: true });
    addEventListener("resize", look);
    return () => {
      clearTimeout(settling);
      scroller.removeEventListener("scroll", scrolled);
      removeEventListener("resize", look);
    };
  }, [lines, lines.size, count]);
  // Rows are used again for other lines: to make new ones for each look takes most of a frame.
  const rows = last - first;
  const keyOf = (at: number) => (((key + at - first) % rows) + rows) % rows;
  return (
    <div class="out" ref={box} style={{ height: `${Math.min(count, MOST) * HEIGHT}px` }}>
      <div style={{ transform: `translateY(${top}px)` }}>
        {range(first, Math.min(last, count)).map((at) => (
          <Row key={keyOf(at)} {...lines.at(at)} />
        ))}
      </div>
    </div>
  );
}
