import type { Sign } from "../store/blocks.ts";
import { now } from "../store/clock.ts";
import { Icon } from "./icons.tsx";

const ICONS = { ok: "tick", fail: "cross", stop: "square", unknown: "question" } as const;
export const WORDS = { ok: "ended well", fail: "failed", run: "running", stop: "stopped", unknown: "status unknown" };

/** Turns one step a second, like a clock hand. A CSS animation would draw sixty frames a second for days. */
const Turning = () => <span class="spinner" style={{ transform: `rotate(${(Math.floor(now.value / 1000) % 12) * 30}deg)` }} />;

/** The sign of a state: never a colour alone. */
export function StateSign({ sign }: { sign: Sign }) {
  return (
    <span class={`sign ${sign}`} title={WORDS[sign]}>
      {sign === "run" ? <Turning /> : <Icon name={ICONS[sign]} />}
    </span>
  );
}

const LETTERS: Record<string, [string, string]> = {
  agent: ["A", "by the agent"],
  user: ["Y", "by you"],
  engine: ["E", "by blockpty"],
};

/** Whose a block is: a letter and words. */
export const authorOf = (author: string): [string, string] =>
  LETTERS[author] ?? [author.slice(0, 1).toUpperCase(), `by ${author}`];

export function Author({ author }: { author: string }) {
  const [letter, words] = authorOf(author);
  return (
    <span class={`author ${author === "agent" ? "agent" : "user"}`} title={words}>
      {letter}
    </span>
  );
}
