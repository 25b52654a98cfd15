import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Conversation } from "../store/conversation.ts";
import { bind } from "../keys.ts";
import { number } from "../words.ts";
import { BlockView } from "./Block.tsx";

const NEAR = 24;

/** The blocks as one document. It follows the end only while it is at the end. */
export function BlockList({ conversation, target }: { conversation: Conversation; target: string }) {
  const list = conversation.visible.value;
  const box = useRef<HTMLDivElement>(null);
  const inner = useRef<HTMLDivElement>(null);
  const atEnd = useRef(true);
  const top = useRef(0);
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
    if (atEnd.current) lastSeen.current = last;
    setBehind(atEnd.current ? 0 : last - lastSeen.current);
  }, [last]);
  useEffect(() => {
    const grow = new ResizeObserver(() => atEnd.current && toEnd());
    grow.observe(inner.current!);
    grow.observe(box.current!);
    return () => grow.disconnect();
  }, []);
  useEffect(() => {
    if (!target || !conversation.loaded.value) return;
    atEnd.current = false;
    conversation.selected.value = target;
    requestAnimationFrame(() => show(target, "center"));
  }, [target, conversation.loaded.value]);

  const show = (id: string, where: ScrollLogicalPosition) => {
    const found = box.current?.querySelector<HTMLElement>(`[data-block="${CSS.escape(id)}"]`);
    found?.scrollIntoView({ block: where });
    found?.focus({ preventScroll: true });
  };
  const step = (by: number, where: ScrollLogicalPosition = "nearest") => {
    const at = list.findIndex((one) => one.block_id === conversation.selected.value);
    const next = list[at === -1 ? list.length - 1 : Math.min(list.length - 1, Math.max(0, at + by))];
    if (!next) return;
    conversation.selected.value = next.block_id;
    requestAnimationFrame(() => show(next.block_id, where));
  };
  const act = (name: string) => () =>
    box.current
      ?.querySelector(`[data-block="${CSS.escape(conversation.selected.value)}"]`)
      ?.dispatchEvent(new CustomEvent("block-action", { detail: name }));
  useEffect(() =>
    bind({
      next: () => step(1),
      previous: () => step(-1),
      begin: () => step(0, "start"),
      following: () => step(1, "start"),
      open: act("open"),
      fold: act("fold"),
      copyOutput: act("copyOutput"),
      copyCommand: act("copyCommand"),
    }),
  );

  const scrolled = () => {
    const { scrollTop, scrollHeight, clientHeight } = box.current!;
    // Only a reader goes up; where outputs grow, the browser moves the view down, and that is no leaving of the end.
    const isNear = scrollHeight - scrollTop - clientHeight < NEAR;
    if (isNear || scrollTop < top.current) atEnd.current = isNear;
    top.current = scrollTop;
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
          {conversation.oldest.value > 0 && (
            <div class="earlier">
              <button class="button small" onClick={() => conversation.earlier()}>
                Show earlier blocks
              </button>
            </div>
          )}
          {list.map((block, at) => (
            <BlockView
              key={block.block_id}
              conversation={conversation.id}
              block={block}
              above={list[at - 1]}
              selected={conversation.selected.value === block.block_id}
            />
          ))}
          {conversation.loaded.value && list.length === 0 && <Nothing conversation={conversation} />}
        </div>
      </div>
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
