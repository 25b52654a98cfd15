import { effect, signal } from "@preact/signals";
import { visible } from "../words.ts";
import { ending } from "./blocks.ts";
import type { Conversation } from "./conversation.ts";
import { approvals } from "./home.ts";

/**
 * What screen readers announce: what has begun and ended, what waits for an answer, who has control, and
 * whether the connection is there. Output is read where a person goes to it.
 */
export const polite = signal<Said[]>([]);
/** What interrupts a reader: something waits for an answer. */
export const urgent = signal<Said[]>([]);

interface Said {
  number: number;
  words: string;
}

const COMMAND = 80;
/** What is added to a region is read, and what was there before is not read again. */
const KEPT = 4;
let count = 0;

function announce(words: string, where = polite): void {
  where.value = [...where.peek(), { number: ++count, words }].slice(-KEPT);
}

let waited = new Set<string>();
effect(() => {
  const waits = new Set(approvals.value.map((one) => `${one.conversation_id}/${one.approval_id}`));
  const [added] = approvals.value.filter((one) => !waited.has(`${one.conversation_id}/${one.approval_id}`));
  waited = waits;
  if (added) announce(`Approval wanted in ${added.conversation_id}: ${visible(added.sentence)}`, urgent);
});

/** Announce what happens in a conversation, from now until what is returned is called. */
export function announceFrom(conversation: Conversation): () => void {
  const running = new Set<number>();
  let last: number | null = null;
  const blocks = effect(() => {
    if (!conversation.loaded.value) return;
    const list = conversation.list.value;
    for (const block of list) {
      const command = visible(block.cmd).split("\n")[0].slice(0, COMMAND) || block.kind;
      const isNew = last !== null && block.seq > last;
      if (block.state === "running") {
        if (isNew) announce(`${command} has begun`);
        running.add(block.seq);
      } else if (running.delete(block.seq) || isNew) announce(`${command}: ${ending(block) || "ended well"}`);
    }
    last = Math.max(last ?? 0, ...list.map((block) => block.seq));
  });
  let mine = false;
  const control = effect(() => {
    if (mine !== conversation.mine.value) announce(mine ? "You have no control any more" : "You have control. Control ] hands back.");
    mine = conversation.mine.value;
  });
  let first = "";
  const asked = effect(() => {
    const [name = ""] = conversation.askers.value;
    if (name && name !== first) announce(`${visible(name)} asks for control`, urgent);
    first = name;
  });
  const answered = effect(() => {
    const answer = conversation.asking.value;
    if (answer?.state === "kept") announce(`${visible(answer.who ?? "")} keeps control`);
  });
  let lost = false;
  const connection = effect(() => {
    const state = conversation.state.value;
    if (state === "reconnecting" && !lost) announce("The connection is gone");
    if (state === "live" && lost) announce("Connected again");
    lost = state === "reconnecting" || (lost && state !== "live");
  });
  return () => {
    blocks();
    control();
    asked();
    answered();
    connection();
  };
}
