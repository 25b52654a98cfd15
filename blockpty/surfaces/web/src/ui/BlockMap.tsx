import type { RefObject } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Block } from "../api/types.ts";
import { memo } from "../memo.ts";
import { type Sign, sign } from "../store/blocks.ts";
import { type Conversation, numberOf } from "../store/conversation.ts";
import { number, visible } from "../words.ts";
import { reachingBelow } from "./inView.ts";

/** So many marks at most, each for several blocks where there are more. */
const MARKS = 300;

const weight = (block: Block): number => 1 + Math.log2(1 + block.out_bytes / 80);

/** Some blocks, one after the other. */
interface Group {
  blocks: Block[];
  weight: number;
  sign: Sign;
  title: string;
}

function grouped(blocks: Block[]): Group[] {
  const size = Math.max(1, Math.ceil(blocks.length / MARKS));
  return Array.from({ length: Math.ceil(blocks.length / size) }, (_, at) => {
    const some = blocks.slice(at * size, (at + 1) * size);
    const signs = some.map(sign);
    return {
      blocks: some,
      weight: some.reduce((sum, one) => sum + weight(one), 0),
      sign: (["fail", "run"] as const).find((one) => signs.includes(one)) ?? signs[0],
      title: size === 1 ? visible(some[0].cmd) : `${number(some.length)} blocks from ${some[0].block_id}`,
    };
  });
}

/** The marks alone: scrolling moves the frame of the view over them, and draws none of them again. */
const Marks = memo(({ groups, selected, hits }: { groups: Group[]; selected: string; hits: Set<string> }) => (
  <>
    {groups.map(({ blocks, weight, sign, title }) => {
      const has = (holds: (id: string) => boolean) => blocks.some((one) => holds(one.block_id));
      const marks = [sign, has((id) => id === selected) && "selected", hits.size > 0 && has((id) => hits.has(id)) && "hit"];
      return <i key={blocks[0].seq} class={marks.filter(Boolean).join(" ")} style={{ flexGrow: weight }} title={title} />;
    })}
  </>
));

interface MapProps {
  conversation: Conversation;
  scroller: RefObject<HTMLDivElement | null>;
}

/** All blocks as marks at the right edge, higher for more output; a click or drag goes there. */
export function BlockMap({ conversation, scroller }: MapProps) {
  const blocks = conversation.matching.value;
  const groups = useMemo(() => grouped(blocks), [blocks]);
  const found = conversation.find.hits.value;
  const hits = useMemo(() => new Set(found.map((one) => one.block_id)), [found]);
  const strip = useRef<HTMLDivElement>(null);
  const [[top, height], setView] = useState([0, 0]);
  const isShown = groups.length > 1;
  // A layout effect is undone before the rows are gone.
  useLayoutEffect(() => {
    if (!isShown) return;
    const box = scroller.current!;
    /** Where the upper edge of a block stands on the strip, or a part of it. */
    const place = (id: string, part: number): number | null => {
      const seq = numberOf(id);
      const at = groups.findLastIndex((group) => group.blocks[0].seq <= seq);
      const within = groups[at]?.blocks.findIndex((one) => one.seq === seq) ?? -1;
      if (within === -1) return null;
      const mark = strip.current!.children[at] as HTMLElement;
      return mark.offsetTop + ((within + part) / groups[at].blocks.length) * mark.offsetHeight;
    };
    const look = () => {
      const list = box.firstElementChild!.children;
      const edge = box.getBoundingClientRect();
      const edges = [edge.top, edge.bottom].map((y) => {
        const block = reachingBelow(list, y);
        const { top, height } = block?.getBoundingClientRect() ?? { top: 0, height: 1 };
        return place(block?.id ?? "", Math.max(0, Math.min(1, (y - top) / Math.max(1, height))));
      });
      setView(edges[0] === null || edges[1] === null ? [0, 0] : [edges[0], edges[1] - edges[0]]);
    };
    look();
    box.addEventListener("scroll", look, { passive: true });
    const resized = new ResizeObserver(look);
    for (const child of [box, ...box.children]) resized.observe(child);
    return () => {
      box.removeEventListener("scroll", look);
      resized.disconnect();
    };
  }, [groups, isShown]);

  const wanted = useRef("");
  const isGoing = useRef(false);
  /** One after the other, and only to where the pointer is by then. */
  const go = async (id: string) => {
    wanted.current = id;
    if (isGoing.current) return;
    isGoing.current = true;
    for (let last = ""; last !== wanted.current; ) await conversation.reveal((last = wanted.current), null);
    isGoing.current = false;
  };
  const drag = (event: PointerEvent) => {
    if (event.type === "pointermove" && !event.buttons) return;
    const marks = strip.current!.children;
    const at = Math.min(groups.length - 1, Array.prototype.indexOf.call(marks, reachingBelow(marks, event.clientY)));
    const { top, height } = marks[at].getBoundingClientRect();
    const { blocks } = groups[at];
    const part = Math.max(0, Math.min(1, (event.clientY - top) / Math.max(1, height)));
    const { block_id } = blocks[Math.min(blocks.length - 1, Math.floor(part * blocks.length))];
    if (block_id !== conversation.selected.value) void go(block_id);
  };
  if (!isShown) return null;
  return (
    <div class="map" ref={strip} aria-hidden="true" onPointerDown={drag} onPointerMove={drag}>
      <Marks groups={groups} selected={conversation.selected.value} hits={hits} />
      {height > 0 && <b style={{ top: `${top}px`, height: `${height}px` }} />}
    </div>
  );
}
