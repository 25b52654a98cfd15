import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { isPerson, mayType } from "../api/auth.ts";
import { call, of } from "../api/http.ts";
import { readText } from "../api/output.ts";
import type { Block } from "../api/types.ts";
import { download } from "../download.ts";
import { perform } from "../keys.ts";
import { shown } from "../output/lines.ts";
import { inTurn } from "../output/reading.ts";
import { AllRows, pixelsAbove, Rows } from "../output/rows.tsx";
import { hasOutput, noteSelection } from "../output/selection.ts";
import { LastLines, OutputStore } from "../output/store.ts";
import { follow, toBlock, toMoment, toReplay } from "../router.ts";
import { askPerson } from "../store/asking.ts";
import { ending, sign } from "../store/blocks.ts";
import { now } from "../store/clock.ts";
import { ofTab } from "../store/kept.ts";
import { attempt, copy, say } from "../store/notice.ts";
import { numbers, switchNumbers, switchWrap, wraps } from "../store/settings.ts";
import { bytes, duration, elapsed, lines as inLines, number, spoken, time, visible } from "../words.ts";
import type { Anchor } from "./anchor.ts";
import { Icon, type IconName } from "./icons.tsx";
import { memo } from "../memo.ts";
import { Author, authorOf, StateSign, WORDS } from "./Sign.tsx";

/** Up to this size an output is fetched whole; of a longer one its end, until all is asked for. */
const WHOLE = 64 * 1024;
const TAIL = 16 * 1024;
/** So many lines are put into the document to be read as text. */
const READ = 2000;
const foldKey = (conversation: string, block: Block): string => `blockpty.fold.${conversation}.${block.block_id}`;

interface BlockProps {
  conversation: string;
  block: Block;
  selected: boolean;
  /** The one above it ran in another directory. */
  moved: boolean;
  /** It is among the last: most likely it is looked at, so it is read before the browser says so. */
  last: boolean;
  anchor: Anchor;
}

/** One block. */
export const BlockView = memo(({ conversation, block, selected, moved, last, anchor }: BlockProps) => {
  const root = useRef<HTMLElement>(null);
  const [output, setOutput] = useState<OutputStore | null>(null);
  const kept = useRef<OutputStore | null>(null);
  const [, setShown] = useState({});
  const [mode, setMode] = useState(() => ofTab.get(foldKey(conversation, block)) ?? "");
  const [seen, setSeen] = useState(last);
  const state = sign(block);

  // Layout effects, here and below, are not a frame late each.
  useLayoutEffect(() => {
    // The margin is one of the list: what it cuts off, the window would not see.
    const near = { root: root.current!.closest(".blocks"), rootMargin: "600px" };
    const watch = new IntersectionObserver(([entry]) => entry.isIntersecting && setSeen(true), near);
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
    noteSelection();
    setOutput(store);
    // A new one each time: the server's drawing comes in place of bytes of the same number.
    setShown({});
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
  const source = () => ({ conversation, block: block.block_id, cmd: block.cmd, span: [begin, end] as [number, number], store: kept.current });
  useLayoutEffect(() => hasOutput(root.current!, source));
  const whole = () => readText(conversation, block.block_id, output?.movesCursor ? "rendered" : "text", end);
  const copyOutput = () => attempt(async () => copy(await whole(), "Output copied"));
  const copyCommand = () => copy(block.cmd, "Command copied");
  const copyBoth = () => attempt(async () => copy(`$ ${block.cmd}\n${await whole()}`, "Command and output copied"));
  const link = toBlock(conversation, block.block_id);
  const copyLink = () => copy(location.origin + link, "Link copied");
  const exportOutput = () => attempt(async () => download(`${conversation}-${block.block_id}.txt`, `${await whole()}\n`));
  const isStarting = useRef(false);
  const runAgain = () => {
    if (!mayType() || !block.cmd) return;
    const run = async () => {
      if (isStarting.current) return;
      isStarting.current = true;
      const body = { command: block.cmd, queue: isPerson() };
      if (await attempt(() => call(of(conversation, "exec_block"), body).finally(() => (isStarting.current = false)))) say("Run again");
    };
    // A secret that was redacted is not known here: its asterisks would be run, of which a short one has only one.
    const isRedacted = block.cmd.includes("*");
    const title = isRedacted ? "Run this with its asterisks? They may be a redacted secret" : "Run this again?";
    if (isRedacted || block.cmd.includes("\n")) askPerson({ title, text: block.cmd, actions: [{ words: "Run it", act: () => void run() }] });
    else void run();
  };
  // When this block is the selected one, which the click makes it.
  const diff = () => requestAnimationFrame(() => perform("diff"));
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
        scroller.scrollTop = top + pixelsAbove(out, at, -scroller.clientHeight / 2, scroller.clientHeight)!;
        anchor.remember();
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
    exportOutput,
    runAgain,
    reveal,
  };
  // A layout effect: the list may ask for something before the browser has painted a block that is new.
  useLayoutEffect(() => {
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
  const named = visible(block.cmd) || (block.kind === "background" ? "output of no command" : "a command that was typed");
  const facts = [named, WORDS[state], label, block.duration_ms === null ? "" : spoken(block.duration_ms), size, authorOf(block.author)[1]];
  const shownAs = { label: `Output of ${block.block_id}`, link: partial ? "" : `${link}?at=` };
  const when = `${new Date(block.ts_begin).toISOString()} to ${block.ts_end ? new Date(block.ts_end).toISOString() : "now"}`;
  return (
    <article
      ref={root}
      id={block.block_id}
      data-block={block.block_id}
      class={`block ${state} ${selected ? "selected" : ""}`}
      tabIndex={selected ? 0 : -1}
      aria-label={facts.filter(Boolean).join(", ")}
      aria-posinset={block.seq}
      aria-setsize={-1}
    >
      <header>
        <StateSign sign={state} />
        <span class="command" title={visible(block.cmd)}>
          {block.cmd ? (
            <>
              {first} <i>{rest.join(" ")}</i>
            </>
          ) : (
            <i>{named}</i>
          )}
        </span>
        <span class="actions">
          <Action words="Copy output" keys="c" icon="copy" act={copyOutput} />
          <Action words="Copy command" keys="C" icon="prompt" act={copyCommand} second />
          <Action words="Copy command and output" keys="Y" icon="both" act={copyBoth} second />
          <a title="Link to this block" aria-label="Link to this block" href={link} onClick={follow}>
            <Icon name="link" />
          </a>
          <Action words="Difference to the previous run" keys="d" icon="diff" act={diff} />
          <Action words="Export output" keys="e" icon="save" act={exportOutput} second />
          {mayType() && block.cmd && <Action words="Run again" keys="R" icon="again" act={runAgain} second />}
          <a title="Replay from here (r)" aria-label="Replay from here" href={toReplay(conversation, block.span[0])} onClick={follow}>
            <Icon name="play" />
          </a>
          <button class="others" title="Every command by name (Ctrl+K)" aria-label="Every command by name" onClick={() => perform("palette")}>
            <Icon name="more" />
          </button>
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
      {mode === "text" ? (
        <PlainText read={whole} label={shownAs.label} close={() => change("all")} />
      ) : output?.wholeScreen ? (
        <div class="fold">
          Draws on the whole screen{" "}
          {state === "run" ? (
            <button onClick={() => perform("toScreen")}>Open the screen</button>
          ) : (
            <>
              <a href={toMoment(conversation, output.lastScreen)} onClick={follow}>
                Last screen
              </a>
              <a href={toReplay(conversation, begin)} onClick={follow}>
                Replay it
              </a>
            </>
          )}
        </div>
      ) : (
        output && (
          <>
            {isShort && state !== "ok" && <Fold {...{ folded, partial, change, block, link }} />}
            {all ? (
              <AllRows lines={output} looked={looked} keep={anchor.keep} {...shownAs} />
            ) : (
              wanted > 0 && <Rows lines={new LastLines(output, wanted)} {...shownAs} />
            )}
            {isShort && state === "ok" && <Fold {...{ folded, partial, change, block, link }} />}
            {mode === "all" && count > 12 && (
              <div class="fold">
                <button onClick={() => change("")}>Fold</button>
                <button onClick={() => change("text")}>Read as text</button>
                <button aria-pressed={wraps.value} title="w" onClick={switchWrap}>
                  Wrap lines
                </button>
                <button aria-pressed={numbers.value} title="#" onClick={switchNumbers}>
                  Line numbers
                </button>
              </div>
            )}
          </>
        )
      )}
    </article>
  );
});

interface ActionProps {
  words: string;
  keys: string;
  icon: IconName;
  act: () => void;
  /** Whether it is left to its key where there is little room. */
  second?: boolean;
}

/** A button of a block that a key does as well. */
function Action({ words, keys, icon, act, second = false }: ActionProps) {
  return (
    <button class={second ? "second" : ""} title={`${words} (${keys})`} aria-label={words} onClick={act}>
      <Icon name={icon} />
    </button>
  );
}

/** An output as one text, for those who have it read to them: all of it is in the document. */
function PlainText({ read, label, close }: { read: () => Promise<string>; label: string; close: () => void }) {
  const [text, setText] = useState<string | null>(null);
  useEffect(() => {
    let gone = false;
    void attempt(async () => {
      const found = await read();
      if (!gone) setText(found);
    });
    return () => {
      gone = true;
    };
  }, []);
  const lines = text?.split("\n") ?? [];
  return (
    <>
      <pre class="as-text" role="region" aria-label={label} aria-busy={text === null} tabIndex={0}>
        {lines.slice(0, READ).join("\n")}
      </pre>
      <div class="fold">
        {lines.length > READ && `The first ${number(READ)} of ${inLines(lines.length)}`}
        <button onClick={close}>Show as rows</button>
      </div>
    </>
  );
}

/** How long a block took, or has been running. */
function Took({ block }: { block: Block }) {
  const took = block.state === "running" ? elapsed(now.value - block.ts_begin) : duration(block.duration_ms);
  return <>{took && ` · ${took}`}</>;
}

function Fold(props: { folded: number; partial: boolean; block: Block; change: (mode: string) => void; link: string }) {
  const { folded, partial, block, change, link } = props;
  const words = partial
    ? `${bytes(block.out_bytes)} in all, folded`
    : `${number(folded)} ${folded === 1 ? "line" : "lines"} folded`;
  return (
    <div class="fold">
      {words} <button onClick={() => change("all")}>Show all</button>
      <a href={link} onClick={follow}>
        Open alone
      </a>
    </div>
  );
}
