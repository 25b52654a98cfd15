import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { draw, type Line } from "./lines.ts";
import type { Lines } from "./store.ts";

/** Pixels of a row, as in the style sheet. */
export const HEIGHT = 19;
const AROUND = 20;
/** Fewer lines than this are simply all there. */
const ALL = 200;
/** Browsers stop at about 16 million pixels. */
const MOST = 400_000;

export function Row({ line }: { line: Line }) {
  return (
    <div class="row">
      {draw(line).map(({ text, classes, colour }) =>
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
  );
}

const range = (from: number, to: number): number[] => Array.from({ length: Math.max(0, to - from) }, (_, at) => from + at);

/** Lines of an output; of a long one only the rows in view are in the document. `coming`: lines that are not here yet. */
export function Rows({ lines, coming = 0 }: { lines: Lines; coming?: number }) {
  return lines.length + coming <= ALL ? (
    <div class="out">
      {range(0, lines.length).map((at) => (
        <Row key={at} line={lines.at(at)} />
      ))}
    </div>
  ) : (
    <VirtualRows lines={lines} coming={coming} />
  );
}

function VirtualRows({ lines, coming }: { lines: Lines; coming: number }) {
  const box = useRef<HTMLDivElement>(null);
  const [[first, last], setView] = useState([0, 80]);
  const there = Math.min(lines.length, MOST);
  const count = Math.min(lines.length + coming, MOST);
  // The cleanup of useEffect runs a frame after unmounting, when the listeners would look for rows that are gone.
  useLayoutEffect(() => {
    const scroller = box.current!.closest(".blocks")!;
    const look = () => {
      const top = scroller.getBoundingClientRect().top - box.current!.getBoundingClientRect().top;
      const from = Math.max(0, Math.floor(top / HEIGHT) - AROUND);
      const to = Math.min(count, Math.ceil((top + scroller.clientHeight) / HEIGHT) + AROUND);
      setView((old) => (old[0] === from && old[1] === to ? old : [from, Math.max(from, to)]));
    };
    look();
    scroller.addEventListener("scroll", look, { passive: true });
    addEventListener("resize", look);
    return () => {
      scroller.removeEventListener("scroll", look);
      removeEventListener("resize", look);
    };
  }, [lines, count]);
  // Rows are used again for other lines: to make new ones for each look takes most of a frame.
  return (
    <div class="out" ref={box} style={{ height: `${count * HEIGHT}px` }}>
      <div style={{ transform: `translateY(${first * HEIGHT}px)` }}>
        {range(first, Math.min(last, there)).map((at) => (
          <Row key={at - first} line={lines.at(at)} />
        ))}
      </div>
    </div>
  );
}
