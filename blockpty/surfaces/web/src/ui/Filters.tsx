import { useEffect, useRef } from "preact/hooks";
import { useKeys } from "../keys.ts";
import { type Conversation, type Filter, FILTERS } from "../store/conversation.ts";
import { setSlow, slowMs } from "../store/settings.ts";
import { number } from "../words.ts";

const NAMES: Record<Filter, string> = { all: "All", failed: "Failed", slow: "Slow", agent: "Agent", you: "You", screen: "Screen" };
const PAUSE_MS = 150;

/** Which blocks are shown, and how many there are of each kind: a "+" where not all have been counted yet. */
export function Filters({ conversation }: { conversation: Conversation }) {
  const { filter, text, outline, counts, blocks } = conversation;
  const box = useRef<HTMLInputElement>(null);
  const timer = useRef(0);
  const switchTo = (name: Filter) => () => void conversation.choose(filter.value === name ? "all" : name);
  useKeys({
    failed: switchTo("failed"),
    slow: switchTo("slow"),
    byAgent: switchTo("agent"),
    byUser: switchTo("you"),
    onScreen: switchTo("screen"),
    all: () => void conversation.choose("all", ""),
  });
  useEffect(() => () => clearTimeout(timer.current), []);
  // A block that the filter hid was asked for.
  useEffect(() => {
    if (text.value === "") box.current!.value = "";
  }, [text.value]);
  const soon = (what: () => void) => {
    clearTimeout(timer.current);
    timer.current = window.setTimeout(what, PAUSE_MS);
  };
  const count = (name: Filter) => {
    if (name !== "screen") return `${number(counts.value[name])}${outline.whole.value ? "" : "+"}`;
    const { list, from, to } = blocks.value;
    return `${number(list.length)}${from > 0 || to < Infinity ? "+" : ""}`;
  };
  return (
    <>
      {FILTERS.map((name) => (
        <button key={name} aria-pressed={filter.value === name} onClick={() => void conversation.choose(name)}>
          {NAMES[name]}{" "}
          {/* Which used the screen is asked when that is wanted. */}
          {(name !== "screen" || filter.value === name) && <span class={name === "failed" ? "red" : ""}>{count(name)}</span>}
        </button>
      ))}
      {filter.value === "slow" && (
        <label class="muted">
          over{" "}
          <input
            type="number"
            min="0"
            step="any"
            aria-label="Seconds from which on a block is slow"
            defaultValue={`${slowMs.peek() / 1000}`}
            onInput={({ currentTarget: { valueAsNumber: seconds } }) => {
              if (seconds >= 0) soon(() => (setSlow(Math.round(seconds * 1000)), void conversation.choose("slow")));
            }}
          />{" "}
          s
        </label>
      )}
      <input
        ref={box}
        type="search"
        placeholder="Command…"
        aria-label="Only commands with this text"
        defaultValue={text.peek()}
        onInput={() => soon(() => void conversation.choose(filter.peek(), box.current!.value))}
      />
    </>
  );
}
