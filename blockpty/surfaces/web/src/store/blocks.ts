import type { Block, JournalEvent } from "../api/types.ts";

/**
 * Blocks of one conversation as a pure reduction of its events: applied by `seq`, so that one that came twice changes
 * nothing.
 */
export interface Blocks {
  list: Block[];
  next: number;
}

export type Sign = "ok" | "fail" | "run" | "stop" | "unknown";

/** Put a record into the list, at its place by number. */
export function put(list: Block[], block: Block): Block[] {
  const at = list.findIndex((one) => one.seq >= block.seq);
  if (at === -1) return [...list, block];
  return [...list.slice(0, at), block, ...list.slice(list[at].seq === block.seq ? at + 1 : at)];
}

export function reduce(state: Blocks, event: JournalEvent): Blocks {
  if (event.seq < state.next) return state;
  const next = event.seq + 1;
  if (event.type === "agent_block_begin") return { list: put(state.list, begun(event)), next };
  if (event.type === "agent_block_end" && event.block) return { list: put(state.list, event.block as Block), next };
  if (event.type === "agent_block_delta") {
    const end = (event.span as [number, number])[1];
    const list = state.list.map((one) =>
      one.block_id === event.block_id ? { ...one, out_bytes: Math.max(one.out_bytes, end - one.span[0]) } : one,
    );
    return { list, next };
  }
  return { list: state.list, next };
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
