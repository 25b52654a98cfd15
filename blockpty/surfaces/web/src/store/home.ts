import { effect, signal } from "@preact/signals";
import { grant } from "../api/auth.ts";
import { call, of, Problem } from "../api/http.ts";
import type { ApprovalRequest, Block, ConversationInfo, Status } from "../api/types.ts";

/** All conversations, what waits for a person in them, and the last block of each. */
export const conversations = signal<ConversationInfo[]>([]);
export const approvals = signal<ApprovalRequest[]>([]);
export const lastBlocks = signal<Record<string, Block>>({});
/** Command that runs in a conversation. */
export const running = signal<Record<string, string>>({});
export const reachable = signal(true);
export const loaded = signal(false);
export const now = signal(Date.now());

// Until the server has one feed for all conversations, the list is asked for.
const PERIOD = 1500;
const seen = new Map<string, string>();
const runs = new Map<string, { blocks: number; cmd: string }>();
let timer = 0;
let asking = false;

export async function refresh(): Promise<void> {
  if (asking || !grant.value) return;
  asking = true;
  try {
    const [list, waiting] = await Promise.all([
      call<{ conversations: ConversationInfo[] }>("/conversations"),
      call<{ approvals: ApprovalRequest[] }>("/approvals"),
    ]);
    assign(conversations, list.conversations);
    assign(approvals, waiting.approvals);
    reachable.value = loaded.value = true;
    now.value = Date.now();
    await Promise.all([lookAtLast(list.conversations), lookAtRunning(list.conversations)]);
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    reachable.value = problem.code !== "unreachable";
  } finally {
    asking = false;
  }
}

/** Nothing is drawn again that has not changed. */
function assign<Value>(target: { value: Value; peek(): Value }, value: Value): void {
  if (JSON.stringify(target.peek()) !== JSON.stringify(value)) target.value = value;
}

async function lookAtRunning(list: ConversationInfo[]): Promise<void> {
  const busy = list.filter((one) => one.live && one.mode !== "idle").slice(0, 30);
  const found = await Promise.all(
    busy.map(async ({ conversation_id: id, blocks }) => {
      const known = runs.get(id);
      if (known?.blocks === blocks) return [id, known.cmd];
      const { active_block_id } = await call<Status>(of(id, "status"));
      if (!active_block_id) return [id, ""];
      const { block } = await call<{ block: Block }>(of(id, `blocks/${active_block_id}`));
      runs.set(id, { blocks, cmd: block.cmd });
      return [id, block.cmd];
    }),
  ).catch(() => null);
  if (found) assign(running, Object.fromEntries(found));
}

async function lookAtLast(list: ConversationInfo[]): Promise<void> {
  const wanted = list.filter((one) => one.blocks && seen.get(one.conversation_id) !== `${one.blocks}`).slice(0, 30);
  const found = { ...lastBlocks.peek() };
  for (const one of wanted) {
    const path = of(one.conversation_id, `blocks?page_size=1&page=${one.blocks - 1}`);
    const { blocks } = await call<{ blocks: Block[] }>(path).catch(() => ({ blocks: [] as Block[] }));
    seen.set(one.conversation_id, `${one.blocks}`);
    if (blocks[0]) found[one.conversation_id] = blocks[0];
  }
  if (wanted.length) lastBlocks.value = found;
}

effect(() => {
  clearInterval(timer);
  if (!grant.value) return;
  void refresh();
  timer = window.setInterval(() => {
    if (!document.hidden) void refresh();
  }, PERIOD);
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) void refresh();
});

export type Group = "Needs you" | "Running" | "Idle" | "Ended";

export function groupOf(one: ConversationInfo): Group {
  if (approvals.value.some((waiting) => waiting.conversation_id === one.conversation_id)) return "Needs you";
  if (!one.live) return "Ended";
  return one.mode === "idle" ? "Idle" : "Running";
}
