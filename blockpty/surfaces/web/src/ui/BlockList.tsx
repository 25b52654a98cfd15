import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { useKeys } from "../keys.ts";
import { outputsPainted } from "../output/reading.ts";
import { sign } from "../store/blocks.ts";
import type { Conversation } from "../store/conversation.ts";
import { number } from "../words.ts";
import { BlockView } from "./Block.tsx";
import { BlockMap } from "./BlockMap.tsx";

const NEAR = 24;
const LAST = 4;
/** So many of the last blocks are drawn first, about a screenful; the others come behind the outputs of these. */
const FIRST = 14;

/** The blocks as one document. It follows the end only while it is at the end. */
export function BlockList(props: { conversation: Conversation; target: string; at: number | null }) {
  const { conversation, target, at } = props;
  const list = conversation.visible.value;
  const box = useRef<HTMLDivElement>(null);
  const inner = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  const top = useRef(0);
  const height = useRef(0);
  const [behind, setBehind] = useState(0);
  const last = list.at(-1)?.seq ?? 0;
  const lastSeen = useRef(0);

  const toEnd = () => {
    if (!box.current) return;
    box.current.scrollTop = box.current.scrollHeight;
    atEnd.current = true;
    setBehind(0);
  };
  useLayoutEffect(() => {
    if (atEnd.current) {
      lastSeen.current = last;
      conversation.forgetEarliest();
    }
    setBehind(atEnd.current ? 0 : last - lastSeen.current);
  }, [last]);
  useEffect(() => {
    const grow = new ResizeObserver(() => atEnd.current && toEnd());
    grow.observe(inner.current!);
    grow.observe(box.current!);
    return () => grow.disconnect();
  }, []);
  useEffect(() => {
    if (target && conversation.loaded.value) void conversation.reveal(target, at);
  }, [target, at, conversation.loaded.value]);
  const wanted = conversation.shown.value;
  useEffect(() => {
    if (!wanted) return;
    atEnd.current = false;
    requestAnimationFrame(() => {
      show(wanted.block, "center");
      if (wanted.at !== null) tell(wanted.block, "reveal", wanted.at);
    });
  }, [wanted]);

  // All at once take longer to draw than to fetch.
  const [isWhole, setWhole] = useState(false);
  useEffect(() => {
    if (conversation.loaded.value) void outputsPainted().then(() => setWhole(true));
  }, [conversation.loaded.value]);
  const undrawn = list.slice(0, -FIRST);
  const isWanted = target || wanted || undrawn.some((one) => one.block_id === conversation.selected.value);
  const first = isWhole || isWanted ? 0 : undrawn.length;

  const show = (id: string, where: ScrollLogicalPosition) => {
    const found = box.current?.querySelector<HTMLElement>(`[data-block="${CSS.escape(id)}"]`);
    found?.scrollIntoView({ block: where });
    // Who goes through matches types on in the bar.
    if (!document.activeElement?.closest(".findbar")) found?.focus({ preventScroll: true });
  };
  const step = (by: number, where: ScrollLogicalPosition = "nearest") => {
    const at = list.findIndex((one) => one.block_id === conversation.selected.value);
    const next = list[at === -1 ? Math.max(0, list.length - 1) : Math.min(list.length - 1, Math.max(0, at + by))];
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
    const from = list.findIndex((one) => one.block_id === conversation.selected.value);
    let next = from === -1 ? (by > 0 ? 0 : list.length - 1) : from + by;
    while (list[next] && sign(list[next]) !== "fail") next += by;
    if (list[next]) step(next - from, "start");
  };
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
    previousFailed: () => stepFailed(-1),
    nextFailed: () => stepFailed(1),
    foldAll,
    toEnd,
  });

  const scrolled = () => {
    if (!box.current) return;
    const { scrollTop, scrollHeight, clientHeight } = box.current;
    // Only a reader goes up; where outputs grow, the browser moves the view down, and where the earliest blocks are let
    // go of, up: neither leaves the end.
    const isNear = scrollHeight - scrollTop - clientHeight < NEAR;
    if (isNear || (scrollTop < top.current && scrollHeight >= height.current)) atEnd.current = isNear;
    [top.current, height.current] = [scrollTop, scrollHeight];
    if (atEnd.current) {
      lastSeen.current = last;
      setBehind(0);
    }
  };
  const select = (event: MouseEvent) => {
    const found = (event.target as HTMLElement).closest<HTMLElement>("[data-block]");
    if (found) conversation.selected.value = found.dataset.block!;
  };
  return (
    <div class="document">
      <div class="blocks" ref={box} onScroll={scrolled} onClick={select} role="feed" aria-label="Blocks">
        <div ref={inner}>
          {conversation.more.value && (
            <div class="earlier">
              <button class="button small" onClick={() => conversation.earlier()}>
                Show earlier blocks
              </button>
            </div>
          )}
          {list.slice(first).map((block, at) => (
            <BlockView
              key={block.block_id}
              conversation={conversation.id}
              block={block}
              moved={first + at > 0 && block.cwd !== list[first + at - 1].cwd}
              selected={conversation.selected.value === block.block_id}
              last={first + at >= list.length - LAST}
            />
          ))}
          {conversation.loaded.value && list.length === 0 && <Nothing conversation={conversation} />}
        </div>
      </div>
      <BlockMap blocks={list} selected={conversation.selected.value} scroller={box} go={(id) => void conversation.reveal(id, null)} />
      {behind > 0 && (
        <button class="button pill" onClick={toEnd}>
          {number(behind)} new {behind === 1 ? "block" : "blocks"}
        </button>
      )}
    </div>
  );
}

function Nothing({ conversation }: { conversation: Conversation }) {
  const all = conversation.blocks.value.list.length;
  return (
    <p class="nothing">
      {all === 0 ? "No command has run here yet." : `The filter hides all ${number(all)} blocks. `}
      {all > 0 && <button onClick={() => (conversation.filter.value = "all")}>Show all blocks</button>}
    </p>
  );
}
