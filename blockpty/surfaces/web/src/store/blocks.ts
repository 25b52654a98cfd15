import type { Block, JournalEvent } from "../api/types.ts";

/** A part of a conversation's blocks: all that are wanted with numbers from one to another, in order. */
export interface Blocks {
  list: Block[];
  /** 0: from the first one on; Infinity: to the last one, and to those that are still to come. */
  from: number;
  to: number;
}

export type Sign = "ok" | "fail" | "run" | "stop" | "unknown";
export type Wanted = (block: Block) => boolean;

/** Put a record into the list, at its place by number. */
export function put(list: Block[], block: Block): Block[] {
  const at = list.findLastIndex((one) => one.seq <= block.seq);
  return [...list.slice(0, list[at]?.seq === block.seq ? at : at + 1), block, ...list.slice(at + 1)];
}

/** Return both lists as one; of a block that is in both, the record of the second. */
export function merged(list: Block[], others: Block[]): Block[] {
  const bySeq = new Map([...list, ...others].map((one) => [one.seq, one]));
  return [...bySeq.values()].sort((one, other) => one.seq - other.seq);
}

/** Drop the blocks at the beginning, or at the end, where there are more than so many. */
export function cut(state: Blocks, most: number, where: "beginning" | "end"): Blocks {
  if (state.list.length <= most) return state;
  const list = where === "end" ? state.list.slice(0, most) : state.list.slice(-most);
  return where === "end" ? { ...state, list, to: list[most - 1].seq } : { ...state, list, from: list[0].seq };
}

/** Return the blocks after an event. One that comes twice changes nothing. */
export function reduce(state: Blocks, event: JournalEvent, wanted: Wanted = () => true): Blocks {
  if (event.type === "agent_block_begin") {
    const block = begun(event);
    const isOver = state.list.some((one) => one.seq === block.seq && one.state !== "running");
    return isOver ? state : taken(state, block, wanted);
  }
  if (event.type === "agent_block_end" && event.block) return taken(state, event.block as Block, wanted);
  if (event.type === "agent_block_delta") {
    const end = (event.span as [number, number])[1];
    const grows = (one: Block) => one.block_id === event.block_id && one.state === "running" && one.out_bytes < end - one.span[0];
    if (!state.list.some(grows)) return state;
    return { ...state, list: state.list.map((one) => (grows(one) ? { ...one, out_bytes: end - one.span[0] } : one)) };
  }
  return state;
}

/** Put a record where it belongs, or leave it out. */
export function taken(state: Blocks, block: Block, wanted: Wanted): Blocks {
  if (block.seq < state.from || block.seq > state.to) return state;
  if (wanted(block)) return { ...state, list: put(state.list, block) };
  const list = state.list.filter((one) => one.seq !== block.seq);
  return list.length === state.list.length ? state : { ...state, list };
}

function begun(event: JournalEvent): Block {
  return {
    block_id: String(event.block_id),
    seq: Number(event.block_seq),
    kind: String(event.kind),
    cmd: String(event.cmd),
    cwd: (event.cwd as string | null) ?? null,
    ts_begin: Number(event.ts_begin ?? event.ts),
    ts_end: null,
    duration_ms: null,
    state: "running",
    exit_status: null,
    signal: null,
    span: [event.cursor, null],
    out_bytes: 0,
    author: String(event.author),
    degraded: null,
  };
}

export function sign(block: Pick<Block, "state" | "exit_status">): Sign {
  if (block.state === "running") return "run";
  if (["interrupted", "cancelled", "stopped"].includes(block.state)) return "stop";
  if (block.exit_status === null) return "unknown";
  return block.exit_status === 0 ? "ok" : "fail";
}

/** How a block ended, in words; empty when that was well, or it runs. */
export function ending(block: Pick<Block, "state" | "exit_status" | "signal">): string {
  if (block.state === "running") return "";
  if (block.state === "stopped") return "stopped";
  if (block.signal === "SIGINT" || block.state === "interrupted") return "interrupted";
  if (block.state === "cancelled") return "cancelled";
  if (block.signal) return `killed (${block.signal})`;
  if (block.exit_status === null) return "unknown";
  return block.exit_status === 0 ? "" : `exit ${block.exit_status}`;
}
