import { batch, computed, effect, signal } from "@preact/signals";
import { grant } from "../api/auth.ts";
import { Socket } from "../api/socket.ts";
import type { ApprovalRequest, BlockSummary, ConversationInfo, Run } from "../api/types.ts";
import { place } from "../router.ts";
import { ring } from "./bells.ts";

/** All conversations, as the feed of the home has them: sent once, and again whenever one changes. */
const lines = signal<ReadonlyMap<string, ConversationInfo>>(new Map());
const asked = signal<ReadonlyMap<string, ApprovalRequest[]>>(new Map());
/** What became of the last questions, as the events of the record say it. */
export const decisions = signal<ReadonlyMap<string, Record<string, unknown>[]>>(new Map());
export const reachable = signal(true);
export const loaded = signal(false);

export const conversations = computed(() =>
  [...lines.value.values()].sort((one, other) => other.created_ts - one.created_ts),
);
/** What waits for a verdict, the oldest first. */
export const approvals = computed(() =>
  [...asked.value.values()].flat().sort((one, other) => one.requested_ts - other.requested_ts),
);

/** A small picture of a screen: its rows as runs of cells. */
export interface Picture {
  cols: number;
  rows: number;
  cursor: { x: number; y: number; visible: boolean };
  lines: ReadonlyMap<number, Run[]>;
}
export const pictures = signal<ReadonlyMap<string, Picture>>(new Map());

/** When the bell of each conversation rang last; 0 where that is not known. */
const bells = new Map<string, number>();

const FPS = 2;
const MOST_PICTURES = 24;
let socket: Socket | null = null;
let wanted: string[] = [];

/** Have pictures of these screens sent, until others are asked for. */
export function watchScreens(ids: string[]): void {
  const some = ids.slice(0, MOST_PICTURES);
  if (some.join("\n") === wanted.join("\n")) return;
  wanted = some;
  pictures.value = new Map([...pictures.peek()].filter(([id]) => some.includes(id)));
  socket?.send({ type: "screens", ids: some, fps: FPS });
}

// Between two messages of the list nothing is drawn: a thousand conversations are one change.
let taken: Map<string, ConversationInfo> | null = null;
let takenAsked: Map<string, ApprovalRequest[]> | null = null;

const take = (content: Record<string, any>): void => batch(() => use(content));

function use(content: Record<string, any>): void {
  if (content.type === "hello") {
    taken = new Map();
    takenAsked = new Map();
    if (wanted.length) socket?.send({ type: "screens", ids: wanted, fps: FPS });
  } else if (content.type === "conversation") {
    const info = content.conversation as ConversationInfo;
    hear(info.conversation_id, content.bell_ts);
    if (content.decided.length) decisions.value = new Map(decisions.peek()).set(info.conversation_id, content.decided);
    if (taken && takenAsked) {
      taken.set(info.conversation_id, info);
      takenAsked.set(info.conversation_id, content.approvals);
    } else {
      lines.value = new Map(lines.peek()).set(info.conversation_id, info);
      if (content.approvals.length || asked.peek().get(info.conversation_id)?.length)
        asked.value = new Map(asked.peek()).set(info.conversation_id, content.approvals);
    }
  } else if (content.type === "listed" && taken && takenAsked) {
    [lines.value, asked.value] = [taken, takenAsked];
    taken = takenAsked = null;
    loaded.value = true;
  } else if (content.type === "gone") {
    lines.value = without(lines.peek(), content.conversation_id);
    asked.value = without(asked.peek(), content.conversation_id);
    decisions.value = without(decisions.peek(), content.conversation_id);
    bells.delete(content.conversation_id);
  } else if (content.type === "picture") draw(content);
}

/** Mark a conversation whose bell has rung since it was listed first. Of the one that is seen the terminal itself tells it. */
function hear(id: string, at: number | null): void {
  const before = bells.get(id);
  const last = Math.max(at ?? 0, before ?? 0);
  bells.set(id, last);
  const { name, conversation } = place.peek();
  const isSeen = conversation === id && (name === "conversation" || name === "screen") && !document.hidden;
  if (before !== undefined && last > before && !isSeen) ring(id);
}

function draw({ conversation_id: id, cols, rows, cursor, lines: changed }: Record<string, any>): void {
  const before = pictures.peek().get(id);
  const all = new Map(before && before.cols === cols && before.rows === rows ? before.lines : []);
  for (const [row, runs] of Object.entries(changed)) all.set(Number(row), runs as Run[]);
  pictures.value = new Map(pictures.peek()).set(id, { cols, rows, cursor, lines: all });
}

function without<Value>(map: ReadonlyMap<string, Value>, key: string): ReadonlyMap<string, Value> {
  const copy = new Map(map);
  copy.delete(key);
  return copy;
}

effect(() => {
  socket?.close();
  socket = null;
  if (!grant.value) {
    // Another person may sign in, and what was true before is not shown meanwhile.
    [lines.value, asked.value, decisions.value, pictures.value] = [new Map(), new Map(), new Map(), new Map()];
    loaded.value = false;
    bells.clear();
    return;
  }
  socket = new Socket("/ws", {
    query: () => Promise.resolve(""),
    bytes: () => undefined,
    message: take,
    state: (state) => (reachable.value = state !== "reconnecting"),
  });
});

export type Group = "Needs you" | "Running" | "Idle" | "Ended";

/** What a person has to do in a conversation, in words; empty when nothing. A program that reads a line may wait. */
export function need(one: ConversationInfo): string {
  if (one.needs.includes("approval")) return "Approval wanted";
  if (one.needs.includes("user_input")) return "You are asked";
  if (one.needs.includes("password")) return "Password prompt";
  return "";
}

/** Who has halted agents, where they are halted. */
export const halted = computed(() => conversations.value.find((one) => one.live && one.halted)?.halted ?? null);

/** Whether output waits for room on the server's disk. */
export const diskIsFull = computed(() => conversations.value.some((one) => one.needs.includes("storage")));

export function groupOf(one: ConversationInfo): Group {
  if (need(one)) return "Needs you";
  if (!one.live) return "Ended";
  return one.running ? "Running" : "Idle";
}

/** The conversations in the order in which the sidebar has them. */
export const grouped = computed(() =>
  (["Needs you", "Running", "Idle", "Ended"] as Group[])
    .map((group) => ({ group, members: conversations.value.filter((one) => groupOf(one) === group) }))
    .filter(({ members }) => members.length > 0),
);

/** The same, one after the other: a number goes to the conversation of that place. */
export const inPlace = computed(() => grouped.value.flatMap(({ members }) => members));

/** When something last happened in a conversation, as its line shows it. */
export function since(one: ConversationInfo, waiting: ApprovalRequest | undefined): number {
  const last: BlockSummary | null = one.last;
  return waiting?.requested_ts ?? one.running?.ts_begin ?? last?.ts_end ?? one.created_ts;
}
