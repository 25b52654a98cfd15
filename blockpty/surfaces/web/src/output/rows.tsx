import { useEffect, useRef, useState } from "preact/hooks";
import { draw, type Line } from "./lines.ts";

const HEIGHT = 19;
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

/** Lines of an output; of a long one only the rows in view are in the document. */
export function Rows({ lines }: { lines: Line[] }) {
  return lines.length <= ALL ? (
    <div class="out">
      {lines.map((line, at) => (
        <Row key={at} line={line} />
      ))}
    </div>
  ) : (
    <VirtualRows lines={lines.slice(0, MOST)} />
  );
}

function VirtualRows({ lines }: { lines: Line[] }) {
  const box = useRef<HTMLDivElement>(null);
  const [[first, last], setView] = useState([0, 80]);
  useEffect(() => {
    const scroller = box.current!.closest(".blocks")!;
    const look = () => {
      const top = scroller.getBoundingClientRect().top - box.current!.getBoundingClientRect().top;
      const from = Math.max(0, Math.floor(top / HEIGHT) - AROUND);
      const to = Math.min(lines.length, Math.ceil((top + scroller.clientHeight) / HEIGHT) + AROUND);
      setView((old) => (old[0] === from && old[1] === to ? old : [from, Math.max(from, to)]));
    };
    look();
    scroller.addEventListener("scroll", look, { passive: true });
    addEventListener("resize", look);
    return () => {
      scroller.removeEventListener("scroll", look);
      removeEventListener("resize", look);
    };
  }, [lines]);
  return (
    <div class="out" ref={box} style={{ height: `${lines.length * HEIGHT}px` }}>
      <div style={{ transform: `translateY(${first * HEIGHT}px)` }}>
        {lines.slice(first, last).map((line, at) => (
          <Row key={first + at} line={line} />
        ))}
      </div>
    </div>
  );
}
