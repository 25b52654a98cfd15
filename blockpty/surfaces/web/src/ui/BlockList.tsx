import { effect, type Signal, signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { useKeys } from "../keys.ts";
import { outputsPainted } from "../output/reading.ts";
import { go, toBlock, toConversation } from "../router.ts";
import { merged, sign } from "../store/blocks.ts";
import { type Conversation, numberOf } from "../store/conversation.ts";
import { attempt } from "../store/notice.ts";
import { resizeText, switchNumbers, switchWrap } from "../store/settings.ts";
import { number } from "../words.ts";
import { Anchor } from "./anchor.ts";
import { BlockView } from "./Block.tsx";
import { BlockMap } from "./BlockMap.tsx";

/** So much of a page stays in view when it is turned. */
const KEPT_IN_VIEW = 57;
const LAST = 4;
/** So many of the last blocks are drawn first, about a screenful; the others come behind the outputs of these. */
const FIRST = 14;
/** Where a person types, or is asked something: a block that is shown a frame later must not get the keys. */
const ELSEWHERE = "input, textarea, select, .findbar, [role=dialog], [role=alertdialog]";

/** The blocks as one document, or one of them alone. It follows the end only while it is at the end. */
export function BlockList(props: { conversation: Conversation; alone?: boolean }) {
  const { conversation, alone = false } = props;
  const { from, to, list } = alone ? conversation.alone.value : conversation.blocks.value;
  const box = useRef<HTMLDivElement>(null);
  const anchor = useMemo(() => new Anchor(box, !alone), []);
  /** How far a reader has seen that which follows. */
  const seen = useMemo(() => signal({ seq: 0, count: 0, skips: 0 }), [conversation]);

  const catchUp = () => {
    const [seq, { count, skips }] = [conversation.matching.peek().at(-1)?.seq ?? 0, conversation.lines.peek()];
    if (seen.peek().seq !== seq || seen.peek().count !== count) seen.value = { seq, count, skips };
  };
  const toEnd = () => {
    anchor.atEnd = true;
    catchUp();
    if (to < Infinity) void attempt(() => conversation.newest());
    else anchor.keep();
  };
  const [isWhole, setWhole] = useState(false);
  useLayoutEffect(() => {
    anchor.keep();
    if (!alone) conversation.tidy(anchor.atEnd);
    page();
  }, [list, isWhole]);
  useEffect(
    () =>
      effect(() => {
        void conversation.lines.value;
        void conversation.matching.value;
        if (anchor.atEnd || seen.peek().seq === 0) catchUp();
      }),
    [conversation],
  );
  useEffect(() => {
    const resized = new ResizeObserver(anchor.keep);
    for (const one of [box.current!, box.current!.firstElementChild!]) resized.observe(one);
    return () => resized.disconnect();
  }, []);
  const wanted = conversation.shown.value;
  useEffect(() => {
    if (!wanted) return;
    anchor.atEnd = false;
    if (!wanted.block) toEnd();
    else
      requestAnimationFrame(() => {
        show(wanted.block, alone ? "start" : "center");
        scrolled();
        if (wanted.at !== null) tell(wanted.block, "reveal", wanted.at);
      });
  }, [wanted]);

  // All at once take longer to draw than to fetch.
  useEffect(() => {
    if (conversation.loaded.value) void outputsPainted().then(() => setWhole(true));
  }, [conversation.loaded.value]);
  const undrawn = list.slice(0, -FIRST);
  const isWanted = wanted || undrawn.some((one) => one.block_id === conversation.selected.value);
  const first = isWhole || isWanted ? 0 : undrawn.length;
  /** Load what comes before or behind, near the edge of what is here. */
  const page = () => {
    if (alone || first > 0 || !box.current) return;
    const { scrollTop, scrollHeight, clientHeight } = box.current;
    const before = conversation.blocks.peek();
    // One page is loaded at a time: who scrolled on meanwhile may be near the other edge, and scrolls no more.
    const again = () => conversation.blocks.peek() !== before && requestAnimationFrame(page);
    if (from > 0 && scrollTop < clientHeight) void conversation.earlier().then(again);
    else if (to < Infinity && scrollHeight - scrollTop - clientHeight < clientHeight) void conversation.later().then(again);
  };

  const show = (id: string, where: ScrollLogicalPosition) => {
    const found = box.current?.querySelector<HTMLElement>(`[data-block="${CSS.escape(id)}"]`);
    found?.scrollIntoView({ block: where });
    if (found) anchor.remember();
    const active = document.activeElement;
    if (!active?.checkVisibility() || !active.closest(ELSEWHERE)) found?.focus({ preventScroll: true });
  };
  const step = (by: number, where: ScrollLogicalPosition = "nearest") => {
    const at = list.findIndex((one) => one.block_id === conversation.selected.value);
    // From what is in view, where the one that was selected is far away.
    const here = anchor.atEnd ? list.length - 1 : list.findIndex((one) => one.block_id === anchor.block);
    const next = list[at === -1 ? Math.max(0, here) : Math.min(list.length - 1, Math.max(0, at + by))];
    if (!next) return;
    conversation.selected.value = next.block_id;
    requestAnimationFrame(() => show(next.block_id, where));
  };
  const tell = (id: string, name: string, at = 0) =>
    box.current
      ?.querySelector(`[data-block="${CSS.escape(id)}"]`)
      ?.dispatchEvent(new CustomEvent("block-action", { detail: { name, at } }));
  const act = (name: string) => () => tell(conversation.selected.value, name);
  const stepFailed = (by: number) => {
    // Of those that are here it is known before all others are read.
    const all = merged(conversation.matching.peek(), list).filter((one) => sign(one) === "fail");
    const from = numberOf(conversation.selected.peek()) || (by > 0 ? 0 : Infinity);
    const next = by > 0 ? all.find((one) => one.seq > from) : all.findLast((one) => one.seq < from);
    const at = list.findIndex((one) => one.seq === next?.seq);
    if (at === -1) next && void conversation.reveal(next.block_id, null);
    else {
      conversation.selected.value = list[at].block_id;
      step(0, "start");
    }
  };
  const turn = (pages: number) => box.current?.scrollBy({ top: pages * (box.current.clientHeight - KEPT_IN_VIEW) });
  const folded = useRef(false);
  const foldAll = () => {
    folded.current = !folded.current;
    for (const block of list) tell(block.block_id, folded.current ? "none" : "some");
  };
  useKeys({
    next: () => step(1),
    previous: () => step(-1),
    begin: () => step(0, "start"),
    following: () => step(1, "start"),
    open: act("open"),
    fold: act("fold"),
    copyOutput: act("copyOutput"),
    copyCommand: act("copyCommand"),
    copyBoth: act("copyBoth"),
    copyLink: act("copyLink"),
    exportOutput: act("exportOutput"),
    runAgain: act("runAgain"),
    wrap: switchWrap,
    lineNumbers: switchNumbers,
    larger: () => resizeText(1),
    smaller: () => resizeText(-1),
    previousFailed: () => stepFailed(-1),
    nextFailed: () => stepFailed(1),
    foldAll,
    ...(alone ? {} : { toEnd }),
    pageDown: () => turn(1),
    pageUp: () => turn(-1),
    openAlone: () => {
      const { value } = conversation.selected;
      if (value) go(alone ? toConversation(conversation.id) : toBlock(conversation.id, value));
    },
  });

  const scrolled = () => {
    if (!box.current) return;
    anchor.scrolled(!alone && to === Infinity);
    if (anchor.atEnd) catchUp();
    page();
  };
  const select = (event: MouseEvent) => {
    const found = (event.target as HTMLElement).closest<HTMLElement>("[data-block]");
    if (found) conversation.selected.value = found.dataset.block!;
  };
  return (
    <div class="document">
      <div class="blocks" ref={box} onScroll={scrolled} onClick={select} role={list.length > 0 ? "feed" : undefined} aria-label="Blocks">
        <div>
          {list.slice(first).map((block, at) => (
            <BlockView
              key={block.block_id}
              conversation={conversation.id}
              block={block}
              moved={first + at > 0 && block.cwd !== list[first + at - 1].cwd}
              selected={conversation.selected.value === block.block_id}
              last={first + at >= list.length - LAST}
              anchor={anchor}
            />
          ))}
          {conversation.loaded.value && !alone && list.length === 0 && from === 0 && <Nothing conversation={conversation} />}
        </div>
      </div>
      {!alone && <BlockMap conversation={conversation} scroller={box} />}
      {!alone && <Pill {...{ conversation, seen, isAway: to < Infinity }} go={toEnd} />}
    </div>
  );
}

interface PillProps {
  conversation: Conversation;
  seen: Signal<{ seq: number; count: number; skips: number }>;
  /** The newest blocks are not here. */
  isAway: boolean;
  go: () => void;
}

/** Blocks and lines that arrived since the end was last in view. */
function Pill({ conversation, seen, isAway, go }: PillProps) {
  const { seq, ...before } = seen.value;
  const blocks = conversation.matching.value.filter((one) => one.seq > seq).length;
  const { count, skips } = conversation.lines.value;
  const lines = count - before.count;
  const parts = [
    blocks > 0 && `${number(blocks)} new ${blocks === 1 ? "block" : "blocks"}`,
    lines > 0 && `${skips > before.skips ? "at least " : ""}${number(lines)} new ${lines === 1 ? "line" : "lines"}`,
  ].filter(Boolean);
  if (parts.length === 0 && !isAway) return null;
  return (
    <button class="button pill" onClick={go}>
      {parts.join(", ") || "To the newest block"}
    </button>
  );
}

function Nothing({ conversation }: { conversation: Conversation }) {
  const { list, whole } = conversation.outline;
  const all = list.value.length;
  return (
    <p class="nothing">
      {all === 0 ? "No command has run here yet." : `The filter hides all ${number(all)}${whole.value ? "" : "+"} blocks. `}
      {all > 0 && <button onClick={() => void conversation.choose("all", "")}>Show all blocks</button>}
    </p>
  );
}
