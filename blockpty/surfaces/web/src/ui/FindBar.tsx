import { useEffect, useRef } from "preact/hooks";
import type { Conversation } from "../store/conversation.ts";
import { number } from "../words.ts";
import { Icon } from "./icons.tsx";

const PAUSE_MS = 100;

const ID = "find-box";

/** Show the bar and give it the focus, before the next key. */
export function openFind(conversation: Conversation): void {
  const box = document.getElementById(ID) as HTMLInputElement | null;
  if (!box) return;
  box.closest<HTMLElement>(".findbar")!.hidden = false;
  box.select();
  box.focus();
  conversation.find.open.value = true;
}

/** Find in this conversation, or in the block that was selected: the count is the server's, of the whole record. */
export function FindBar({ conversation }: { conversation: Conversation }) {
  const { find } = conversation;
  const box = useRef<HTMLInputElement>(null);
  const timer = useRef(0);
  useEffect(() => () => clearTimeout(timer.current), []);
  const { open } = find;
  useEffect(() => {
    if (open.value) return;
    clearTimeout(timer.current);
    box.current!.value = "";
  }, [open.value]);
  const go = (by: number) => {
    const hit = find.step(by);
    if (hit) conversation.reveal(hit.block_id, hit.span[0]);
  };
  const type = () => {
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => void find.look(box.current!.value), PAUSE_MS);
  };
  const key = (event: KeyboardEvent) => {
    if (event.key === "Escape") {
      find.close();
      box.current!.blur();
    }
    else if (event.key === "Enter") go(event.shiftKey ? -1 : 1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const { within } = find;
  const selected = conversation.chosen.value;
  const one = within.value ?? selected;
  const count = find.hits.value.length;
  const all = `${find.more.value ? "at least " : ""}${number(count)}`;
  return (
    <div class="findbar" role="search" hidden={!open.value}>
      <Icon name="search" />
      <input id={ID} ref={box} placeholder="Find in this conversation" aria-label="Find" onInput={type} onKeyDown={key} />
      <span class="muted" role="status">
        {find.text.value && (count === 0 ? "no match" : find.at.value === -1 ? `${all} ${count === 1 ? "match" : "matches"}` : `${find.at.value + 1} of ${all}`)}
      </span>
      {one && (
        <button class="button small" aria-pressed={within.value !== null} onClick={() => void find.narrow(within.value ? null : one)}>
          In {one.block_id} only
        </button>
      )}
      <button class="quiet" aria-label="Previous match (Shift Enter)" onClick={() => go(-1)}>
        <Icon name="up" />
      </button>
      <button class="quiet" aria-label="Next match (Enter)" onClick={() => go(1)}>
        <Icon name="down" />
      </button>
      <button class="quiet" aria-label="Close" onClick={() => find.close()}>
        <Icon name="cross" />
      </button>
    </div>
  );
}
