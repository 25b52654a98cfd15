import { useEffect, useRef, useState } from "preact/hooks";
import { call, of } from "../api/http.ts";
import type { Block } from "../api/types.ts";
import { type Line, movesCursor, shown, split, usesWholeScreen } from "../output/lines.ts";
import { Rows } from "../output/rows.tsx";
import { ending, sign } from "../store/blocks.ts";
import { attempt, copy } from "../store/notice.ts";
import { bytes, duration, lines as inLines, number, time, visible } from "../words.ts";
import { Icon } from "./icons.tsx";
import { Author, StateSign, WORDS } from "./Sign.tsx";

/** Up to this size an output is fetched whole; of a longer one its end, until all is asked for. */
const WHOLE = 64 * 1024;
const TAIL = 16 * 1024;
const PIECE = 1024 * 1024;
const MOST = 16 * 1024 * 1024;
const RUNNING_MS = 300;

interface Read {
  data: string;
  cursor: number;
}

interface Output {
  text: string;
  lines: Line[];
  /** Whether there is more before these lines. */
  partial: boolean;
  whole: boolean;
  wholeScreen: boolean;
}

export async function readOutput(conversation: string, block: Block, all: boolean): Promise<Output> {
  const [begin, ended] = block.span;
  const end = ended ?? begin + block.out_bytes;
  const limit = all ? MOST : WHOLE;
  const partial = end - begin > limit;
  const from = partial ? (all ? begin : end - TAIL) : begin;
  let text = await pieces(conversation, block.block_id, "ansi", from, end, limit);
  const wholeScreen = usesWholeScreen(text);
  if (!wholeScreen && movesCursor(text))
    text = await pieces(conversation, block.block_id, "rendered", from, end, limit);
  // What begins inside a line is left out.
  if (partial && !all) text = text.slice(text.indexOf("\n") + 1);
  return { text, lines: split(text), partial: partial && !all, whole: all || !partial, wholeScreen };
}

async function pieces(
  conversation: string, id: string, view: string, from: number, end: number, limit: number,
): Promise<string> {
  let text = "";
  for (let cursor = from; cursor < end && text.length < limit; ) {
    const size = Math.min(PIECE, limit);
    const query = new URLSearchParams({ block_id: id, view, from_cursor: `${cursor}`, max_bytes: `${size}` });
    const piece = await call<Read>(of(conversation, `read?${query}`));
    if (piece.cursor <= cursor) break;
    text += piece.data;
    cursor = piece.cursor;
  }
  return text;
}

const foldKey = (conversation: string, block: Block): string => `blockpty.fold.${conversation}.${block.block_id}`;

export function BlockView(props: { conversation: string; block: Block; selected: boolean; above: Block | undefined }) {
  const { conversation, block, selected, above } = props;
  const root = useRef<HTMLElement>(null);
  const [output, setOutput] = useState<Output | null>(null);
  const [mode, setMode] = useState(() => sessionStorage.getItem(foldKey(conversation, block)) ?? "");
  const [seen, setSeen] = useState(false);
  const state = sign(block);

  useEffect(() => {
    const watch = new IntersectionObserver(([entry]) => entry.isIntersecting && setSeen(true), { rootMargin: "600px" });
    watch.observe(root.current!);
    return () => watch.disconnect();
  }, []);

  useEffect(() => {
    if (!seen || (block.out_bytes === 0 && state === "run")) return;
    if (block.out_bytes === 0 && block.span[1] === block.span[0]) return;
    let gone = false;
    const read = async () => {
      try {
        const found = await readOutput(conversation, block, mode === "all");
        if (!gone) setOutput(found);
      } catch {
        // The connection is gone: the banner says so, and the next change of the block reads again.
      }
    };
    // A running block is read again as it grows, not more often than a person can look.
    const timer = setTimeout(read, state === "run" && output ? RUNNING_MS : 0);
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, [seen, block.state, block.span[1], state === "run" ? Math.floor(block.out_bytes) : 0, mode]);

  const change = (wanted: string) => {
    setMode(wanted);
    sessionStorage.setItem(foldKey(conversation, block), wanted);
  };
  const copyOutput = () =>
    attempt(async () => {
      const { text } = await readOutput(conversation, block, true);
      await copy(split(text).map(plain).join("\n"), "Output copied");
    });
  const copyCommand = () => copy(block.cmd, "Command copied");
  const act: Record<string, () => void> = {
    open: () => change(mode === "all" ? "" : "all"),
    fold: () => change(mode === "none" ? "" : "none"),
    copyOutput,
    copyCommand,
  };
  useEffect(() => {
    const take = (event: Event) => act[(event as CustomEvent<string>).detail]?.();
    root.current!.addEventListener("block-action", take);
    const node = root.current!;
    return () => node.removeEventListener("block-action", take);
  });

  const count = output?.lines.length ?? 0;
  const wanted = mode === "none" ? 0 : mode === "all" ? count : shown(count, state === "run" ? "run" : state === "ok" ? "ok" : "fail");
  const folded = count - wanted;
  const label = ending(block);
  const [first, ...rest] = visible(block.cmd).split(" ");
  const size = block.out_bytes === 0 ? "" : output?.whole ? inLines(count) : bytes(block.out_bytes);
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
        </span>
        {label && <span class={`ending ${state}`}>{label}</span>}
        <span class="meta" title={when}>
          {[time(block.ts_begin), duration(block.duration_ms), size].filter(Boolean).join(" · ")}
        </span>
        <Author author={block.author} />
      </header>
      {block.cwd && above && block.cwd !== above.cwd && <div class="directory">{visible(block.cwd)}</div>}
      {output?.wholeScreen ? (
        <div class="fold">Draws on the whole screen</div>
      ) : (
        output && (
          <>
            {(folded > 0 || output.partial) && state !== "ok" && <Fold {...{ folded, output, change, block }} />}
            {wanted > 0 && <Rows lines={wanted === count ? output.lines : output.lines.slice(-wanted)} />}
            {(folded > 0 || output.partial) && state === "ok" && <Fold {...{ folded, output, change, block }} />}
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
}

function Fold(props: { folded: number; output: Output; block: Block; change: (mode: string) => void }) {
  const { folded, output, block, change } = props;
  const words = output.partial
    ? `${bytes(block.out_bytes)} in all, folded`
    : `${number(folded)} ${folded === 1 ? "line" : "lines"} folded`;
  return (
    <div class="fold">
      {words} <button onClick={() => change("all")}>Show all</button>
    </div>
  );
}

const plain = (line: Line): string =>
  line.raw.replace(/\x1b\[[0-9:;<=>?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]|[\x00-\x08\x0b-\x1f\x7f]/g, "");
