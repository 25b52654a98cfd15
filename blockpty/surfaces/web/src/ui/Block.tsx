import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Block } from "../api/types.ts";
import { readText } from "../api/output.ts";
import { shown } from "../output/lines.ts";
import { inTurn } from "../output/reading.ts";
import { AllRows, pixelsAbove, Rows } from "../output/rows.tsx";
import { LastLines, OutputStore } from "../output/store.ts";
import { follow, toConversation, toReplay } from "../router.ts";
import { ending, sign } from "../store/blocks.ts";
import { now } from "../store/clock.ts";
import { ofTab } from "../store/kept.ts";
import { attempt, copy } from "../store/notice.ts";
import { bytes, duration, elapsed, lines as inLines, number, time, visible } from "../words.ts";
import { Icon } from "./icons.tsx";
import { memo } from "../memo.ts";
import { Author, StateSign, WORDS } from "./Sign.tsx";

/** Up to this size an output is fetched whole; of a longer one its end, until all is asked for. */
const WHOLE = 64 * 1024;
const TAIL = 16 * 1024;

const foldKey = (conversation: string, block: Block): string => `blockpty.fold.${conversation}.${block.block_id}`;

interface BlockProps {
  conversation: string;
  block: Block;
  selected: boolean;
  /** The one above it ran in another directory. */
  moved: boolean;
  /** It is among the last: most likely it is looked at, so it is read before the browser says so. */
  last: boolean;
}

/** One block. */
export const BlockView = memo(({ conversation, block, selected, moved, last }: BlockProps) => {
  const root = useRef<HTMLElement>(null);
  const [output, setOutput] = useState<OutputStore | null>(null);
  const kept = useRef<OutputStore | null>(null);
  const [, setSize] = useState(0);
  const [mode, setMode] = useState(() => ofTab.get(foldKey(conversation, block)) ?? "");
  const [seen, setSeen] = useState(last);
  const state = sign(block);

  // Layout effects, here and below, are not a frame late each.
  useLayoutEffect(() => {
    const watch = new IntersectionObserver(([entry]) => entry.isIntersecting && setSeen(true), { rootMargin: "600px" });
    watch.observe(root.current!);
    return () => watch.disconnect();
  }, []);

  const [begin, ended] = block.span;
  const end = ended ?? begin + block.out_bytes;
  /** Return the output from where it is wanted: the one that is here, as far as that goes. */
  const wantedStore = (all: boolean): OutputStore => {
    const isTail = !all && end - begin > WHOLE;
    const known = kept.current;
    if (known && (all || !isTail ? known.begin === begin : end - known.begin < 4 * WHOLE)) return known;
    return (kept.current = new OutputStore(conversation, block.block_id, isTail ? end - TAIL : begin, end));
  };
  const show = (store: OutputStore): boolean => {
    if (store !== kept.current) return false;
    setOutput(store);
    setSize(store.size);
    return true;
  };
  const fill = (store: OutputStore, grown: (store: OutputStore) => boolean) => store.fill(end, () => grown(store));
  /** How often the output was asked for. */
  const looks = useRef(0);
  // What cannot be read now, because the connection is gone, is read with the next change of the block.
  const read = () => {
    const look = ++looks.current;
    const store = wantedStore(mode === "all");
    // What arrives is shown even if more has been printed since; a later look fetches the rest.
    const isWanted = () => look === looks.current && kept.current !== null;
    void inTurn(() => fill(store, (one) => show(one) && look === looks.current), isWanted).catch(() => undefined);
  };
  useLayoutEffect(() => {
    if (seen && end > begin) read();
  }, [seen, block.state, end, mode]);
  // What is being fetched when the block goes is not shown any more.
  useLayoutEffect(() => () => void (kept.current = null), []);

  const change = (wanted: string) => {
    setMode(wanted);
    ofTab.set(foldKey(conversation, block), wanted);
  };
  const whole = () => readText(conversation, block.block_id, output?.movesCursor ? "rendered" : "text", end);
  const copyOutput = () => attempt(async () => copy(await whole(), "Output copied"));
  const copyCommand = () => copy(block.cmd, "Command copied");
  const copyBoth = () => attempt(async () => copy(`$ ${block.cmd}\n${await whole()}`, "Command and output copied"));
  const link = `${toConversation(conversation)}/${block.block_id}`;
  const copyLink = () => copy(location.origin + link, "Link copied");
  /** Have what is looked at fetched: next, where the output is being fetched anyway. */
  const looked = (at: number) => {
    const store = kept.current!;
    store.look(at);
    if (store.isMissing && !store.isFilling) void fill(store, (one) => show(one) && one.isMissing).catch(() => undefined);
  };
  /** Show all lines, and scroll to the one that holds a byte of the stream; what is around it is fetched first. */
  const reveal = (at: number) =>
    attempt(async () => {
      setSeen(true);
      const store = wantedStore(true);
      store.look(at);
      if (store.isMissing) await fill(store, (one) => one.isMissing);
      kept.current = store;
      show(store);
      change("all");
      requestAnimationFrame(() => {
        const out = root.current?.querySelector<HTMLElement>(".out");
        const scroller = root.current?.closest<HTMLElement>(".blocks");
        if (!out || !scroller) return;
        const top = out.getBoundingClientRect().top - scroller.getBoundingClientRect().top + scroller.scrollTop;
        scroller.scrollTop = top + pixelsAbove(store, at, scroller.clientHeight);
      });
    });
  const act: Record<string, (detail: number) => void> = {
    open: () => change(mode === "all" ? "" : "all"),
    fold: () => change(mode === "none" ? "" : "none"),
    none: () => change("none"),
    some: () => change(""),
    copyOutput,
    copyCommand,
    copyBoth,
    copyLink,
    reveal,
  };
  useEffect(() => {
    const take = (event: Event) => {
      const { name, at } = (event as CustomEvent<{ name: string; at: number }>).detail;
      act[name]?.(at);
    };
    root.current!.addEventListener("block-action", take);
    const node = root.current!;
    return () => node.removeEventListener("block-action", take);
  });

  const partial = output !== null && output.begin > begin;
  const count = output ? output.length - (partial && output.length > 1 ? 1 : 0) : 0;
  const all = mode === "all" && !partial;
  const wanted = mode === "none" ? 0 : all ? count : shown(count, state === "run" ? "run" : state === "ok" ? "ok" : "fail");
  const folded = count - wanted;
  const isShort = folded > 0 || (partial && mode !== "all");
  const label = ending(block);
  const [first, ...rest] = visible(block.cmd).split(" ");
  const size = block.out_bytes === 0 ? "" : output && !partial && (!all || output.whole) ? inLines(count) : bytes(block.out_bytes);
  const when = `${new Date(block.ts_begin).toISOString()} to ${block.ts_end ? new Date(block.ts_end).toISOString() : "now"}`;
  return (
    <article
      ref={root}
      id={block.block_id}
      data-block={block.block_id}
      class={`block ${state} ${selected ? "selected" : ""}`}
      tabIndex={selected ? 0 : -1}
      aria-label={`${visible(block.cmd)}, ${WORDS[state]}${label ? `, ${label}` : ""}, ${duration(block.duration_ms)}`}
    >
      <header>
        <StateSign sign={state} />
        <span class="command" title={visible(block.cmd)}>
          {block.cmd ? (
            <>
              {first} <i>{rest.join(" ")}</i>
            </>
          ) : (
            <i>{block.kind === "background" ? "output of no command" : "a command that was typed"}</i>
          )}
        </span>
        <span class="actions">
          <button title="Copy output (c)" aria-label="Copy output" onClick={copyOutput}>
            <Icon name="copy" />
          </button>
          <button title="Copy command (C)" aria-label="Copy command" onClick={copyCommand}>
            <Icon name="prompt" />
          </button>
          <a title="Link to this block" aria-label="Link to this block" href={link} onClick={follow}>
            <Icon name="link" />
          </a>
          <a title="Replay from here (r)" aria-label="Replay from here" href={toReplay(conversation, block.span[0])} onClick={follow}>
            <Icon name="play" />
          </a>
        </span>
        {label && <span class={`ending ${state}`}>{label}</span>}
        <span class="meta" title={when}>
          {time(block.ts_begin)}
          <Took block={block} />
          {size && ` · ${size}`}
        </span>
        <Author author={block.author} />
      </header>
      {block.cwd && moved && <div class="directory">{visible(block.cwd)}</div>}
      {output?.wholeScreen ? (
        <div class="fold">
          Draws on the whole screen{" "}
          <a href={toReplay(conversation, block.span[0])} onClick={follow}>
            {state === "run" ? "" : "Replay it"}
          </a>
        </div>
      ) : (
        output && (
          <>
            {isShort && state !== "ok" && <Fold {...{ folded, partial, change, block }} />}
            {all ? <AllRows lines={output} looked={looked} /> : wanted > 0 && <Rows lines={new LastLines(output, wanted)} />}
            {isShort && state === "ok" && <Fold {...{ folded, partial, change, block }} />}
            {mode === "all" && count > 12 && (
              <div class="fold">
                <button onClick={() => change("")}>Fold</button>
              </div>
            )}
          </>
        )
      )}
    </article>
  );
});

/** How long a block took, or has been running. */
function Took({ block }: { block: Block }) {
  const took = block.state === "running" ? elapsed(now.value - block.ts_begin) : duration(block.duration_ms);
  return <>{took && ` · ${took}`}</>;
}

function Fold(props: { folded: number; partial: boolean; block: Block; change: (mode: string) => void }) {
  const { folded, partial, block, change } = props;
  const words = partial
    ? `${bytes(block.out_bytes)} in all, folded`
    : `${number(folded)} ${folded === 1 ? "line" : "lines"} folded`;
  return (
    <div class="fold">
      {words} <button onClick={() => change("all")}>Show all</button>
    </div>
  );
}
