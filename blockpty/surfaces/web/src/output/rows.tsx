import type { RefObject } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { memo } from "../memo.ts";
import { follow } from "../router.ts";
import { askPerson, askToOpen, REL } from "../store/asking.ts";
import { copy } from "../store/notice.ts";
import { numbers, rowHeight, type Theme, theme, wraps } from "../store/settings.ts";
import { number as inWords } from "../words.ts";
import { look } from "./colours.ts";
import { draw, type Line, part, PLAIN, type Style, textOf } from "./lines.ts";
import { address } from "./links.ts";
import { noteSelection, rowsIn, showsRows } from "./selection.ts";
import { LastLines, type Lines } from "./store.ts";
import { columnsIn, Wrapped } from "./wrap.ts";

/** Rows drawn above and below the view. After a jump they are drawn once scrolling pauses. */
const AROUND = 8;
const SETTLED_MS = 100;
/** Fewer lines than this are simply all there. */
const ALL = 200;
/** Browsers stop at about 16 million pixels: of more lines than this, a pixel is several. */
const MOST = 400_000;

/** What rows show, and how. */
interface Shown {
  label: string;
  /** Address of a line, but for its cursor; empty where the lines have no numbers. */
  link: string;
}

interface RowProps extends Line {
  theme: Theme;
  /** Number of the line that begins here; null where another row begins it, 0 where no numbers are shown. */
  number: number | null;
  /** Address of the line; empty where it has none, such as in what the server drew. */
  href: string;
}

const Row = memo(({ raw, style, from = 0, to, theme, number, href }: RowProps) => {
  const { pieces, more } = draw({ raw, style });
  const shown = from === 0 && to === undefined ? pieces : part(pieces, from, to ?? Infinity);
  return (
    <div class={number === 0 ? "row" : "row numbered"}>
      {number && href ? <a class="number" data-number={number} href={href} onClick={follow} tabIndex={-1} aria-label={`Line ${number}`} /> : null}
      {number && !href ? <span class="number" data-number={number} /> : null}
      {shown.map(({ text, style }) => (style === PLAIN ? text : <Styled text={text} style={style} theme={theme} />))}
      {more > 0 && to === undefined && (
        <button class="more" onClick={() => showLine({ raw, style })}>{`… ${inWords(more)} more characters`}</button>
      )}
      {"\n"}
    </div>
  );
});

function Styled({ text, style, theme }: { text: string; style: Style; theme: Theme }) {
  const { classes, style: colours } = look(style, theme);
  const url = style.link ? address(style.link) : null;
  if (!url)
    return (
      <span class={classes} style={colours}>
        {text}
      </span>
    );
  const ask = (event: MouseEvent) => {
    event.preventDefault();
    askToOpen(url);
  };
  return (
    <a class={`out-link ${classes}`} style={colours} href={url.href} title={url.href} rel={REL} target="_blank" onClick={ask} onAuxClick={ask}>
      {text}
    </a>
  );
}

/** Show a line that a row has no room for. */
function showLine(line: Line): void {
  const text = textOf(line);
  const copyIt = { words: "Copy", act: () => void copy(text, "Line copied") };
  askPerson({ title: `A line of ${inWords(text.length)} characters`, text, actions: [copyIt] });
}

const range = (from: number, to: number): number[] => Array.from({ length: Math.max(0, to - from) }, (_, at) => from + at);

const total = (lines: Lines): number => lines.length + lines.coming;

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

/**
 * Return how many pixels of an output are above a view of so much room, at the top of which a byte's line stands, so
 * many pixels of it above; null where the line is folded.
 */
export function pixelsAbove(out: HTMLElement, cursor: number, over: number, room: number): number | null {
  const { lines } = rowsIn(out)!;
  const height = rowHeight.peek();
  const row = lines.rowAt(cursor);
  return row < 0 ? null : rowsAbove(row + over / height, total(lines), room / height) * height;
}

/** The other way round: the byte, and what of its line is above; null where no line is at the top of the view. */
export function cursorAt(out: HTMLElement, pixels: number, room: number): [cursor: number, over: number] | null {
  const { lines } = rowsIn(out)!;
  const height = rowHeight.peek();
  const line = lineAbove(pixels / height, total(lines), room / height);
  return line < 0 || line >= total(lines) ? null : [lines.cursorOf(Math.floor(line)), (line % 1) * height];
}

/** Return the rows of some lines: each its own, or cut where they are too wide. */
function useRows(lines: Lines, box: RefObject<HTMLDivElement | null>): Lines {
  const [columns, setColumns] = useState(0);
  const isOn = wraps.value;
  useLayoutEffect(() => {
    if (!isOn) return;
    // What was moved sideways would stay as wide as it was.
    box.current!.scrollLeft = 0;
    const measure = () => {
      if (!box.current) return;
      const { fontSize, fontFamily, paddingLeft } = getComputedStyle(box.current);
      setColumns(columnsIn(box.current.clientWidth - parseFloat(paddingLeft), `${fontSize} ${fontFamily}`));
    };
    measure();
    void document.fonts.ready.then(measure);
    const resized = new ResizeObserver(measure);
    resized.observe(box.current!);
    return () => resized.disconnect();
  }, [isOn, numbers.value, rowHeight.value]);
  const { store, length } = lines;
  return useMemo(() => (isOn && columns ? new Wrapped(lines, columns) : lines), [lines, store.size, length, isOn && columns]);
}

const unmeasured = new Set<HTMLElement>();

/** Make outputs that scroll sideways focusable. All are measured in one frame: measuring one by one forces a layout each. */
function reachable(out: HTMLElement): void {
  if (unmeasured.size === 0)
    requestAnimationFrame(() => {
      const wide = [...unmeasured].map((one) => [one, one.scrollWidth > one.clientWidth] as const);
      unmeasured.clear();
      for (const [one, isWide] of wide) one.tabIndex = isWide ? 0 : -1;
    });
  unmeasured.add(out);
}

/** The element in which the rows are, and in which they can be moved sideways. */
function outProps({ label, link }: Shown, box: RefObject<HTMLDivElement | null>, kind = "out") {
  // While it is moved sideways, it stays as wide as it was, whichever rows come into view.
  const onScroll = ({ currentTarget: out }: { currentTarget: HTMLElement }) => {
    const inner = out.firstElementChild as HTMLElement;
    inner.style.minWidth = out.scrollLeft > 0 ? `${out.scrollWidth}px` : "";
  };
  return { class: numbers.value && link ? `${kind} numbers` : kind, ref: box, role: "region", "aria-label": label, onScroll } as const;
}

/** Return what a row shows, always with the same properties: it is drawn again where one of them changes. */
function rowProps(lines: Lines, row: number, link: string): Required<RowProps> {
  const { raw, style, from, to } = lines.at(row);
  return { raw, style, from, to, theme: theme.value, ...numberOf(lines, row, link) } as Required<RowProps>;
}

function numberOf(lines: Lines, row: number, link: string): Pick<RowProps, "number" | "href"> {
  if (!numbers.value || !link) return { number: 0, href: "" };
  const [line, from] = lines.placeOf(row);
  if (from > 0 || !lines.store.isCounted(line)) return { number: null, href: "" };
  return { number: line + 1, href: lines.store.isDrawn ? "" : `${link}${lines.store.cursorOf(line)}` };
}

interface AllProps extends Shown {
  lines: Lines;
  /** Called with the byte that is looked at. */
  looked: (cursor: number) => void;
  /** Called when the rows may be elsewhere, to scroll to where they were. */
  keep: () => void;
}

/** All lines of an output; of a long one only the rows in view are in the document. */
export function AllRows({ looked, keep, ...shown }: AllProps) {
  const { lines } = shown;
  if (total(lines) > ALL) return <VirtualRows looked={looked} keep={keep} {...shown} />;
  // A new object each time: what reads signals is not drawn again for a store that has grown and is still the same.
  return <Rows {...shown} lines={new LastLines(lines.store, lines.length)} />;
}

/** Some lines. */
export function Rows({ lines: given, ...shown }: { lines: Lines } & Shown) {
  const box = useRef<HTMLDivElement>(null);
  const lines = useRows(given, box);
  useLayoutEffect(() => {
    showsRows(box.current!, lines, 0);
    reachable(box.current!);
  });
  return (
    <div {...outProps(shown, box)}>
      <div>
        {range(0, lines.length).map((at) => (
          <Row key={at} {...rowProps(lines, at, shown.link)} />
        ))}
      </div>
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

function VirtualRows({ lines: given, looked, keep, ...how }: AllProps) {
  const box = useRef<HTMLDivElement>(null);
  const height = rowHeight.value;
  const lines = useRows(given, box);
  const drawn = useRef<View>({ first: 0, last: 80, top: 0, key: 0 });
  const [{ first, last, top, key }, setView] = useState<View>(drawn.current);
  const count = total(lines);
  useLayoutEffect(() => showsRows(box.current!, lines, first));
  // The cleanup of useEffect runs a frame after unmounting, when the listeners would look for rows that are gone.
  useLayoutEffect(() => {
    const scroller = box.current!.closest(".blocks")!;
    const above = () => scroller.getBoundingClientRect().top - box.current!.getBoundingClientRect().top;
    const shown = () => scroller.clientHeight / height;
    let settling = 0;
    const look = () => {
      const over = above();
      const line = lineAbove(over / height, count, shown());
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
      const top = count <= MOST ? from * height : over - (line - from) * height;
      const old = drawn.current;
      if (old.first !== from || old.last !== to || old.top !== top) {
        const stays = !jumps && to - from === old.last - old.first;
        drawn.current = { first: from, last: to, top, key: stays ? old.key + from - old.first : old.key };
        noteSelection();
        setView(drawn.current);
      }
      return Math.floor(line + shown() / 2);
    };
    const scrolled = () => {
      const middle = look();
      if (middle >= 0 && middle < count) looked(lines.cursorOf(middle));
    };
    // Lines that were estimated are counted now, and what is read is elsewhere.
    keep();
    look();
    scroller.addEventListener("scroll", scrolled, { passive: true });
    addEventListener("resize", look);
    return () => {
      clearTimeout(settling);
      scroller.removeEventListener("scroll", scrolled);
      removeEventListener("resize", look);
    };
  }, [lines, lines.store.size, count, height]);
  // Rows are used again for other lines: to make new ones for each look takes most of a frame.
  const rows = last - first;
  const keyOf = (at: number) => (((key + at - first) % rows) + rows) % rows;
  return (
    <div {...outProps(how, box, "out virtual")} tabIndex={0} style={{ height: `${Math.min(count, MOST) * height}px` }}>
      <div style={{ transform: `translateY(${top}px)` }}>
        {range(first, Math.min(last, count)).map((at) => (
          <Row key={keyOf(at)} {...rowProps(lines, at, how.link)} />
        ))}
      </div>
    </div>
  );
}
