/** The blocks of a conversation, from its events: dropped, doubled and late ones change nothing that is known better. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Block, JournalEvent } from "../../../../blockpty/surfaces/web/src/api/types.ts";
import { type Blocks, cut, ending, merged, put, reduce, sign } from "../../../../blockpty/surfaces/web/src/store/blocks.ts";
import { random } from "./random.mts";

const EMPTY: Blocks = { list: [], from: 0, to: Infinity };
const event = (fields: object) => fields as unknown as JournalEvent;
const begin = (seq: number) =>
  event({ type: "agent_block_begin", block_id: `b${seq}`, block_seq: seq, kind: "command", cmd: `c${seq}`, ts: 5, cursor: 100 * seq, author: "agent" });
const delta = (seq: number, length: number) =>
  event({ type: "agent_block_delta", block_id: `b${seq}`, span: [100 * seq, 100 * seq + length] });
const end = (seq: number, status = 0) => event({ type: "agent_block_end", block: ended(seq, status) });
const ended = (seq: number, status = 0) =>
  ({ block_id: `b${seq}`, seq, state: "ended", exit_status: status, signal: null, span: [100 * seq, 100 * seq + 30], out_bytes: 30 }) as unknown as Block;
const after = (events: JournalEvent[], state = EMPTY) => events.reduce((now, one) => reduce(now, one), state);
const numbers = ({ list }: Blocks) => list.map((one) => one.seq);

const ALL = [1, 2, 3].flatMap((seq) => [begin(seq), delta(seq, 10), delta(seq, 30), end(seq, seq === 2 ? 1 : 0)]);

test("a block begins, grows and ends", () => {
  const running = after([begin(1), delta(1, 10), delta(1, 25)]);
  assert.deepEqual([running.list[0].state, running.list[0].out_bytes, running.list[0].span], ["running", 25, [100, null]]);
  assert.deepEqual(after(ALL).list, [ended(1), ended(2, 1), ended(3)]);
});

test("events that come twice, or only in part, change nothing in the end", () => {
  const whole = after(ALL);
  assert.deepEqual(after(ALL.flatMap((one) => [one, one])), whole);
  assert.deepEqual(after([...ALL, ...ALL]), whole);
  const next = random(3);
  for (let round = 0; round < 500; round++) {
    // Of each block its end arrives; what else does, and how often and when, is chosen by chance.
    const order = ALL.filter((one) => one.type === "agent_block_end" || next() % 3)
      .flatMap((one) => Array.from({ length: 1 + (next() % 2) }, () => one))
      .map((one) => [next(), one] as const)
      .sort(([one], [other]) => one - other)
      .map(([, one]) => one);
    assert.deepEqual(after(order), whole, JSON.stringify(order.map(({ type, block_id }) => [type, block_id])));
  }
});

test("what changes nothing is the same object, so that nothing is drawn anew", () => {
  const state = after([begin(1), delta(1, 20)]);
  for (const one of [delta(1, 20), delta(1, 5), delta(9, 5), event({ type: "prompt" })]) assert.equal(reduce(state, one), state);
});

test("only wanted blocks of a part are taken", () => {
  const failed = (one: Block) => sign(one) === "fail";
  const some = ALL.reduce((now, one) => reduce(now, one, failed), EMPTY);
  assert.deepEqual(numbers(some), [2]);
  assert.deepEqual(numbers(after(ALL, { ...EMPTY, from: 2 })), [2, 3]);
  assert.deepEqual(numbers(after(ALL, { ...EMPTY, to: 1 })), [1]);
});

test("lists are merged, cut, and kept in their order", () => {
  const list = [1, 3, 5].map((seq) => ended(seq));
  assert.deepEqual(put(list, ended(4)).map(({ seq }) => seq), [1, 3, 4, 5]);
  assert.deepEqual(put(list, ended(3, 1)).map(({ exit_status }) => exit_status), [0, 1, 0]);
  assert.deepEqual(merged(list, [ended(2), ended(5, 1)]).map(({ seq, exit_status }) => [seq, exit_status]), [[1, 0], [2, 0], [3, 0], [5, 1]]);
  const state = { ...EMPTY, list };
  assert.deepEqual([numbers(cut(state, 2, "beginning")), cut(state, 2, "beginning").from], [[3, 5], 3]);
  assert.deepEqual([numbers(cut(state, 2, "end")), cut(state, 2, "end").to], [[1, 3], 3]);
  assert.equal(cut(state, 3, "end"), state);
});

test("an end is shown as it was: never as well when that is not known", () => {
  const words = (state: string, exit_status: number | null, signal: string | null = null) => {
    const block = { state, exit_status, signal } as Block;
    return [sign(block), ending(block)];
  };
  assert.deepEqual(words("ended", 0), ["ok", ""]);
  assert.deepEqual(words("ended", 2), ["fail", "exit 2"]);
  assert.deepEqual(words("ended", null), ["unknown", "unknown"]);
  assert.deepEqual(words("ended", 137, "SIGKILL"), ["fail", "killed (SIGKILL)"]);
  assert.deepEqual(words("interrupted", 130, "SIGINT"), ["stop", "interrupted"]);
  assert.deepEqual(words("stopped", 148, "SIGTSTP"), ["stop", "stopped"]);
});
