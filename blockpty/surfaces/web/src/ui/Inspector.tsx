import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { call, of } from "../api/http.ts";
import type { Block } from "../api/types.ts";
import { useKeys } from "../keys.ts";
import { toBlock } from "../router.ts";
import { ending, sign } from "../store/blocks.ts";
import type { Conversation } from "../store/conversation.ts";
import { ofBrowser } from "../store/kept.ts";
import { bytes, duration, number, time, visible } from "../words.ts";
import { StateSign } from "./Sign.tsx";

const RUNS = 24;
const DIFF_BYTES = 16_384;
const DIFF_LINES = 200;
const shown = signal(ofBrowser.get("blockpty.inspector") !== "no");

function toggle(): void {
  shown.value = !shown.value;
  ofBrowser.set("blockpty.inspector", shown.value ? "yes" : "no");
}

/** All that is known of the selected block: exact times, bytes, the runs of its command, what changed since the last. */
export function Inspector({ conversation }: { conversation: Conversation }) {
  const [wants, setWants] = useState("");
  const block = conversation.chosen.value;
  useKeys({
    inspect: toggle,
    diff: () => {
      shown.value = true;
      setWants(conversation.selected.value);
    },
  });
  if (!block || !shown.value) return null;
  const all = block.cmd ? conversation.outline.list.value.filter((one) => one.cmd === block.cmd) : [];
  const until = all.slice(-RUNS)[0]?.seq > block.seq ? all.findLastIndex((one) => one.seq <= block.seq) + 1 : all.length;
  const runs = all.slice(Math.max(0, until - RUNS), until);
  const [begin, end] = block.span;
  return (
    <section class="inspector" aria-label="Inspector">
      <header>
        <StateSign sign={sign(block)} />
        <b>{block.block_id}</b>
        <code>{visible(block.cmd).split("\n")[0] || block.kind}</code>
        {ending(block) && <span class={`ending ${sign(block)}`}>{ending(block)}</span>}
      </header>
      <dl>
        <Fact name="Began" value={`${time(block.ts_begin)}.${String(block.ts_begin % 1000).padStart(3, "0")}`} />
        <Fact name="Directory" value={visible(block.cwd ?? "not known")} />
        <Fact name="Took" value={duration(block.duration_ms) || "runs"} />
        <Fact name="Output" value={`${bytes(block.out_bytes)} · [${number(begin)}, ${end === null ? "…" : number(end)})`} />
        {block.degraded && <Fact name="Borders" value={visible(block.degraded)} />}
      </dl>
      {all.length > 1 && <Runs {...{ runs, block, conversation }} isLast={until === all.length} />}
      {all.length > 1 && all[0].seq !== block.seq && (
        <Difference conversation={conversation.id} block={block} wanted={wants === block.block_id} want={() => setWants(block.block_id)} />
      )}
    </section>
  );
}

const Fact = ({ name, value }: { name: string; value: string }) => (
  <div>
    <dt>{name}</dt>
    <dd>{value}</dd>
  </div>
);

interface RunsProps {
  runs: Block[];
  isLast: boolean;
  block: Block;
  conversation: Conversation;
}

function Runs({ runs, isLast, block, conversation }: RunsProps) {
  const longest = Math.max(1, ...runs.map((one) => one.duration_ms ?? 0));
  return (
    <>
      <div class="runs">
        {runs.map((one) => (
          <a
            key={one.block_id}
            class={`${sign(one)} ${one.seq === block.seq ? "selected" : ""}`}
            href={toBlock(conversation.id, one.block_id)}
            onClick={(event) => {
              // Beside the list one stays in it; a modifier opens the run alone, elsewhere.
              if (event.ctrlKey || event.metaKey || event.shiftKey) return;
              event.preventDefault();
              void conversation.reveal(one.block_id, null);
            }}
            title={`${one.block_id}: ${duration(one.duration_ms)} ${ending(one)}`}
            aria-label={`${one.block_id}, ${duration(one.duration_ms)}`}
            style={{ height: `${Math.max(8, ((one.duration_ms ?? 0) / longest) * 100)}%` }}
          />
        ))}
      </div>
      <p class="muted">
        {isLast ? `The last ${runs.length} runs of this command` : `${runs.length} runs of this command, up to this one`}, by time
        taken
      </p>
    </>
  );
}

interface Diff {
  same: boolean;
  diff: string;
  against: Block;
  truncated: boolean;
}

function Difference(props: { conversation: string; block: Block; wanted: boolean; want: () => void }) {
  const { conversation, block, wanted, want } = props;
  const [found, setFound] = useState<Diff | null>(null);
  useEffect(() => {
    let gone = false;
    setFound(null);
    if (wanted && block.state !== "running")
      void call<Diff>(of(conversation, `blocks/${block.block_id}/diff?context=1&max_bytes=${DIFF_BYTES}`))
        .then((diff) => !gone && setFound(diff))
        .catch(() => undefined);
    return () => {
      gone = true;
    };
  }, [conversation, block.block_id, block.state, wanted]);
  if (!wanted)
    return (
      <button class="button small" onClick={want}>
        Difference to the previous run <kbd>d</kbd>
      </button>
    );
  if (!found) return null;
  if (found.same) return <p class="muted">The output is the same as that of {found.against.block_id}.</p>;
  const lines = found.diff.split("\n").slice(0, DIFF_LINES);
  return (
    <pre class="diff" aria-label={`Difference to ${found.against.block_id}`}>
      {lines.map((line, at) => (
        <div key={at} class={line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : line.startsWith("@") ? "place" : ""}>
          {visible(line) || " "}
        </div>
      ))}
      {found.truncated && <div class="place">and more</div>}
    </pre>
  );
}
