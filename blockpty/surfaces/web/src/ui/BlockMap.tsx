import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Block } from "../api/types.ts";
import { sign } from "../store/blocks.ts";
import { visible } from "../words.ts";
import { memo } from "../memo.ts";

const weight = (block: Block): number => 1 + Math.log2(1 + block.out_bytes / 80);

/** The marks by themselves: a reader who scrolls moves the view over them, and of thousands none is looked at for that. */
const Marks = memo(({ blocks, selected }: { blocks: Block[]; selected: string }) => (
  <>
    {blocks.map((block) => (
      <i
        key={block.block_id}
        class={`${sign(block)} ${block.block_id === selected ? "selected" : ""}`}
        style={{ flexGrow: weight(block) }}
        title={visible(block.cmd)}
      />
    ))}
  </>
));

/** All blocks as marks at the right edge, higher for more output; a click or drag goes there. */
export function BlockMap(props: {
  blocks: Block[];
  selected: string;
  scroller: RefObject<HTMLDivElement | null>;
  go: (id: string) => void;
}) {
  const { blocks, selected, scroller, go } = props;
  const strip = useRef<HTMLDivElement>(null);
  const [[top, height], setView] = useState([0, 100]);
  useEffect(() => {
    const box = scroller.current!;
    const look = () => {
      const all = Math.max(1, box.scrollHeight);
      setView([(box.scrollTop / all) * 100, (box.clientHeight / all) * 100]);
    };
    look();
    box.addEventListener("scroll", look, { passive: true });
    const resized = new ResizeObserver(look);
    for (const child of box.children) resized.observe(child);
    return () => {
      box.removeEventListener("scroll", look);
      resized.disconnect();
    };
  }, []);
  const drag = (event: PointerEvent) => {
    if (event.type === "pointermove" && !event.buttons) return;
    const weights = blocks.map(weight);
    const { top: from, height: whole } = strip.current!.getBoundingClientRect();
    let left = ((event.clientY - from) / whole) * weights.reduce((sum, one) => sum + one, 0);
    const at = weights.findIndex((one) => (left -= one) < 0);
    const block = blocks[at === -1 ? blocks.length - 1 : at];
    if (block && block.block_id !== selected) go(block.block_id);
  };
  if (blocks.length < 2) return null;
  return (
    <div class="map" ref={strip} aria-hidden="true" onPointerDown={drag} onPointerMove={drag}>
      <Marks blocks={blocks} selected={selected} />
      <b style={{ top: `${top}%`, height: `${Math.min(100, height)}%` }} />
    </div>
  );
}
