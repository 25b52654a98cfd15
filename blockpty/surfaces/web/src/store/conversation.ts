import { batch, computed, effect, signal } from "@preact/signals";
import { call, of } from "../api/http.ts";
import { Socket, type SocketState } from "../api/socket.ts";
import type { Block, BlocksPage, JournalEvent, Status } from "../api/types.ts";
import { type Blocks, reduce, sign } from "./blocks.ts";
import { Find } from "./find.ts";
import { attempt, say } from "./notice.ts";

const PAGE = 100;
/** So many blocks are kept while the end is looked at: a page may stay open for days. */
const KEPT = 300;
/** As many at once as the server gives. */
const LARGE_PAGE = 1000;
/** Growing output is updated no more often than this: each update costs two frames and a request. */
const GROWTH_MS = 500;
const BEHIND_MS = 4000;
/**
 * The screen first, then no more than a window of bytes that the screen has not drawn yet. The screen is sent again
 * after each resize: xterm.js reflows lines in its own way, which can leave it a row apart from the engine.
 */
const JOIN = "join=screen&scrollback=1000&window=32768&max_lag=65536&redraw=true&data=false&watchers=true";
/** The events this page uses. Input events, one for each key, would arrive before the echo and delay it by a frame. */
const TYPES =
  "agent_block_begin,agent_block_delta,agent_block_end,control,user_input_requested,user_input_done,resize,prompt," +
  "shell_exit,reset,alt_screen";

/** What draws the terminal: bytes and sizes in their order, and a new beginning where one is sent. */
export interface Glass {
  begin(cols: number, rows: number, data: string, cursor: number): void;
  bytes(data: Uint8Array): void;
  resize(cols: number, rows: number): void;
  restart(data: string): void;
  ready(parsed: (cursor: number) => void): void;
  /** The text of the row of the cursor. */
  lastWords(): string;
}

export const FILTERS = ["all", "failed", "slow", "agent", "you", "screen"] as const;
export type Filter = (typeof FILTERS)[number];
export const SLOW_MS = 10_000;

/** One conversation: its blocks, its state and its socket. Made when the place is entered, closed when it is left. */
export class Conversation {
  readonly id: string;
  readonly blocks = signal<Blocks>({ list: [], next: 0 });
  readonly status = signal<Status | null>(null);
  readonly state = signal<SocketState>("connecting");
  readonly missing = signal("");
  readonly loaded = signal(false);
  /** Whether there are blocks before the oldest one that is here. */
  readonly more = signal(false);
  readonly cursor = signal(0);
  /** Whether output came faster than the screen could draw it, so that it was redrawn a moment ago. */
  readonly fellBehind = signal(false);
  /** Whose sockets are open on this conversation, ours too. */
  readonly watchers = signal<{ count: number; names: string[] }>({ count: 0, names: [] });
  readonly selected = signal("");
  readonly filter = signal<Filter>("all");
  /** A block, and a byte of its output, that the list is to show; a new object each time. */
  readonly shown = signal<{ block: string; at: number | null } | null>(null);
  readonly find: Find;
  /** What the agent has asked a person to do, while that is open. */
  readonly message = signal("");
  /** The blocks alone: most events change none. */
  readonly list = computed(() => this.blocks.value.list);
  readonly counts = computed(() => {
    const list = this.list.value;
    return Object.fromEntries(FILTERS.map((one) => [one, list.filter(passes(one)).length])) as Record<Filter, number>;
  });
  readonly visible = computed(() => this.list.value.filter(passes(this.filter.value)));
  readonly mine = computed(() => this.status.value?.control !== "agent" && this.#leased.value);
  #leased = signal(false);
  #socket: Socket | null = null;
  #glass: Glass | null = null;
  #closed = false;
  #loading: Promise<void> | null = null;
  /** Numbers of the blocks of which it was asked whether they used the screen. */
  #measured = new Set<number>();
  #measuring = () => undefined as void;
  #behindTimer = 0;
  /** The block that grew last, when it was updated, and its delayed growth. */
  #growing = "";
  #grownAt = 0;
  #grown: JournalEvent | null = null;
  #growthTimer = 0;
  /** What was heard of control while each status that was asked for is on its way. */
  readonly #looks = new Set<Partial<Status>>();

  constructor(id: string) {
    this.id = id;
    this.find = new Find(id);
  }

  /** Have a block shown, loading earlier ones until it is there; `at`: a byte of its output. */
  async reveal(block: string, at: number | null): Promise<void> {
    while (this.more.value && !this.blocks.value.list.some((one) => one.block_id === block))
      if (!(await attempt(() => this.earlier(LARGE_PAGE)))) return;
    if (!this.visible.value.some((one) => one.block_id === block)) this.filter.value = "all";
    this.selected.value = block;
    this.shown.value = { block, at };
  }

  /** Read what is there. */
  load(): Promise<void> {
    return (this.#loading ??= this.#load());
  }

  async #load(): Promise<void> {
    const [status, { blocks, next_page, next_seq }] = await Promise.all([
      call<Status>(of(this.id, "status")),
      this.#page(PAGE, "running=true"),
    ]);
    batch(() => {
      this.status.value = status;
      this.blocks.value = { list: blocks.reverse(), next: next_seq };
      this.more.value = next_page !== null;
      this.loaded.value = true;
    });
  }

  /** Follow from what was read; `glass` draws the terminal. */
  async enter(glass: Glass): Promise<void> {
    this.#glass = glass;
    glass.ready((cursor) => {
      this.cursor.value = cursor;
      this.#socket?.send({ type: "ack", cursor });
    });
    await this.load();
    if (this.#closed) return;
    this.#measuring = effect(() => {
      if (this.filter.value === "screen") void attempt(() => this.#measure(this.list.value));
    });
    this.#socket = new Socket(`/v1${of(this.id, "ws")}`, {
      query: () => Promise.resolve(`from_seq=${this.blocks.value.next}&${JOIN}&types=${TYPES}`),
      bytes: (data) => glass.bytes(data),
      message: (content) => this.#take(content),
      state: (state) => this.#connection(state),
    });
  }

  leave(): void {
    this.#closed = true;
    clearTimeout(this.#growthTimer);
    this.#measuring();
    this.#socket?.close();
  }

  now(): void {
    this.#socket?.now();
  }

  /** Send what a person typed. Without control, or without a connection, it is dropped. */
  type(data: Uint8Array<ArrayBuffer>): void {
    if (this.mine.value) this.#socket?.send(data);
  }

  /** Send a text that a person pasted, as a paste of the terminal. */
  paste(text: string): void {
    if (this.mine.value) this.#socket?.send({ type: "paste", text });
  }

  resize(cols: number, rows: number): void {
    if (this.mine.value) this.#socket?.send({ type: "resize", cols, rows });
  }

  /** What the program printed last, in the row of the cursor. */
  lastWords(): string {
    return this.#glass?.lastWords() ?? "";
  }

  takeOver(): void {
    this.#socket?.send({ type: "take_control" });
  }

  handBack(): void {
    this.#socket?.send({ type: "release_control" });
  }

  async earlier(size = PAGE): Promise<void> {
    const { blocks, next_page } = await this.#page(size, `before_seq=${this.blocks.value.list[0]?.seq ?? 1}`);
    const state = this.blocks.value;
    this.blocks.value = { ...state, list: [...blocks.reverse(), ...state.list] };
    this.more.value = next_page !== null;
  }

  /** Let go of the earliest blocks where there are many; they can be loaded again. */
  forgetEarliest(): void {
    const state = this.blocks.value;
    if (this.filter.value !== "all" || state.list.length < KEPT + PAGE) return;
    const running = state.list.findIndex((one) => one.state === "running");
    const list = state.list.slice(running === -1 ? -KEPT : Math.min(running, state.list.length - KEPT));
    if (list.length === state.list.length) return;
    batch(() => {
      this.blocks.value = { ...state, list };
      this.more.value = true;
      if (this.selected.value && !list.some((one) => one.block_id === this.selected.value)) this.selected.value = "";
    });
  }

  #page(size: number, query: string): Promise<BlocksPage> {
    return call(of(this.id, `blocks?order=newest&page_size=${size}&${query}`));
  }

  /** Ask which blocks used the screen: their outputs are read for that, so only when it matters. */
  async #measure(list: Block[]): Promise<void> {
    const unknown = list.filter(({ seq, state }) => state !== "running" && !this.#measured.has(seq)).slice(-LARGE_PAGE);
    if (unknown.length === 0) return;
    for (const { seq } of unknown) this.#measured.add(seq);
    const query = `measure=true&after_seq=${unknown[0].seq - 1}&before_seq=${unknown.at(-1)!.seq + 1}`;
    const { blocks } = await this.#page(LARGE_PAGE, query).catch((problem) => {
      // The next change of the blocks asks again.
      for (const { seq } of unknown) this.#measured.delete(seq);
      throw problem;
    });
    const screens = new Map(blocks.map(({ seq, screen }) => [seq, screen]));
    const state = this.blocks.value;
    this.blocks.value = { ...state, list: state.list.map((one) => (screens.has(one.seq) ? { ...one, screen: screens.get(one.seq) } : one)) };
  }

  #connection(state: SocketState): void {
    this.state.value = state;
    if (state !== "live") this.#leased.value = false;
  }

  async #look(): Promise<void> {
    const heard: Partial<Status> = {};
    this.#looks.add(heard);
    try {
      const status = await call<Status>(of(this.id, "status"));
      this.status.value = { ...status, ...heard };
    } catch {
      // The next change is looked at again.
    } finally {
      this.#looks.delete(heard);
    }
  }

  /** Take who is in control. A status that is on its way may be from before. */
  #controlled(change: Pick<Status, "control" | "control_by" | "control_since" | "halted">): void {
    for (const heard of this.#looks) Object.assign(heard, change);
    if (change.control === "agent") this.#leased.value = false;
    this.#merge(change);
  }

  #take(content: Record<string, any>): void {
    const { type } = content;
    if (type === "hello") this.status.value = content.status as Status;
    else if (type === "screen") {
      this.#glass!.begin(content.cols, content.rows, content.data, content.cursor);
      if (content.skipped_bytes) this.#showBehind();
    } else if (type === "resize") this.#glass!.resize(content.cols, content.rows);
    else if (type === "restart") this.#glass!.restart(content.data);
    else if (type === "control") {
      this.#leased.value = content.control !== "agent";
      this.#controlled({ control: content.control, control_by: content.who, control_since: content.since, halted: content.halted });
    } else if (type === "watchers") this.watchers.value = { count: content.count, names: content.names };
    else if (type === "error") say(String(content.error?.message), true);
    else if (type === "event") this.#heard(content.event as JournalEvent);
  }

  #showBehind(): void {
    this.fellBehind.value = true;
    clearTimeout(this.#behindTimer);
    this.#behindTimer = window.setTimeout(() => (this.fellBehind.value = false), BEHIND_MS);
  }

  /** Handle an event. Growth of an output that was updated a moment ago is delayed. */
  #heard(event: JournalEvent): void {
    const grows = event.type === "agent_block_delta";
    const wait = grows && event.block_id === this.#growing ? this.#grownAt + GROWTH_MS - performance.now() : 0;
    if (wait > 0) {
      if (!this.#grown) this.#growthTimer = window.setTimeout(() => this.#grow(), wait);
      this.#grown = event;
      return;
    }
    this.#grow();
    this.#event(event);
    if (grows) [this.#growing, this.#grownAt] = [String(event.block_id), performance.now()];
  }

  /** Apply the delayed growth, before any later event. */
  #grow(): void {
    clearTimeout(this.#growthTimer);
    if (this.#grown) {
      this.#grownAt = performance.now();
      this.#event(this.#grown);
    }
    this.#grown = null;
  }

  #event(event: JournalEvent): void {
    const before = this.blocks.value;
    if (event.seq < before.next) return;
    this.blocks.value = reduce(before, event);
    if (event.type === "control") {
      const control = event.state as Status["control"];
      const halted = event.halted as string | null;
      this.#controlled({ control, control_by: event.who as string | null, control_since: event.ts, halted });
    } else if (event.type === "user_input_requested") this.message.value = String(event.message ?? "");
    else if (event.type === "user_input_done") this.message.value = "";
    else if (event.type === "resize") {
      this.#merge({ cols: Number(event.cols), rows: Number(event.rows) });
    } else if (event.type === "prompt") this.#merge({ mode: "idle", cwd: (event.cwd as string | null) ?? null });
    else if (event.type === "agent_block_begin") this.#merge({ mode: "block_running" });
    else if (["agent_block_end", "shell_exit", "reset", "alt_screen"].includes(event.type)) void this.#look();
  }

  #merge(change: Partial<Status>): void {
    if (this.status.value) this.status.value = { ...this.status.value, ...change };
  }
}

/** Return a conversation that is being read. What goes wrong then is said when it is entered. */
export function opened(id: string): Conversation {
  const conversation = new Conversation(id);
  conversation.load().catch(() => undefined);
  return conversation;
}

function passes(filter: Filter): (block: Block) => boolean {
  if (filter === "failed") return (block) => sign(block) === "fail";
  if (filter === "slow") return (block) => (block.duration_ms ?? 0) >= SLOW_MS;
  if (filter === "agent") return (block) => block.author === "agent";
  if (filter === "screen") return (block) => block.kind === "session" || block.screen === true;
  if (filter === "you") return (block) => block.author === "user";
  return () => true;
}
