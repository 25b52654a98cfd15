import { batch, computed, signal } from "@preact/signals";
import { grant } from "../api/auth.ts";
import { call, of, type Problem } from "../api/http.ts";
import { Socket, type SocketState } from "../api/socket.ts";
import type { Block, BlocksPage, JournalEvent, Status } from "../api/types.ts";
import { go, toBlock } from "../router.ts";
import { type Blocks, cut, merged, reduce, taken, type Wanted } from "./blocks.ts";
import { Find } from "./find.ts";
import { attempt, say } from "./notice.ts";
import { Outline } from "./outline.ts";
import { slowMs } from "./settings.ts";

const PAGE = 100;
/** How many blocks are kept around the view: a conversation may have any number, and a page may stay open for days. */
const KEPT = 400;
/** As many at once as the server gives. */
const LARGE_PAGE = 1000;
const LINE_END = 10;
const NONE: Blocks = { list: [], from: 0, to: 0 };
/** A block that began later may be listed earlier, beside background output: pages overlap by more than that. */
const OVERLAP = 8;
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
  "agent_block_begin,agent_block_delta,agent_block_end,control,approval_decided,user_input_requested,user_input_done,resize,prompt," +
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

/** Blocks of one page in their order, and the number up to which they are all there; beyond it are more. */
interface Page {
  list: Block[];
  reached: number | null;
}

/** One conversation: its blocks, its state and its socket. Made when the place is entered, closed when it is left. */
export class Conversation {
  readonly id: string;
  /** The blocks around the view that match the filter. */
  readonly blocks = signal<Blocks>({ list: [], from: 0, to: Infinity });
  /** The block that is shown alone, or none. */
  readonly alone = signal<Blocks>(NONE);
  readonly outline: Outline;
  readonly status = signal<Status | null>(null);
  readonly state = signal<SocketState>("connecting");
  readonly missing = signal("");
  readonly loaded = signal(false);
  /** The block that was asked for and is not there. */
  readonly unknown = signal("");
  readonly cursor = signal(0);
  /** Whether output came faster than the screen could draw it, so that it was redrawn a moment ago. */
  readonly fellBehind = signal(false);
  /** Whose sockets are open on this conversation, ours too, and who asks for control, the first to ask first. */
  readonly watchers = signal<{ count: number; names: string[]; asking: string[] }>({ count: 0, names: [], asking: [] });
  /** What became of asking for control here, while it is of interest. */
  readonly asking = signal<{ state: "waits" | "kept"; who: string | null } | null>(null);
  readonly selected = signal("");
  readonly filter = signal<Filter>("all");
  /** What the commands hold that are shown. */
  readonly text = signal("");
  /** Lines that the terminal was sent while commands ran, since the page is here. */
  readonly lines = signal({ count: 0, skips: 0 });
  /** A block, and a byte of its output, that the list is to show, or its end; a new object each time. */
  readonly shown = signal<{ block: string; at: number | null } | null>(null);
  readonly find: Find;
  /** The last answer of a person to an agent's question. */
  readonly verdict = signal<JournalEvent | null>(null);
  /** What the program calls its window. */
  readonly title = signal("");
  /** What the agent has asked a person to do, while that is open. */
  readonly message = signal("");
  /** The blocks alone: most events change none. */
  readonly list = computed(() => this.blocks.value.list);
  /** The block that is selected, if it is here. */
  readonly chosen = computed(() => [...this.list.value, ...this.alone.value.list].find((one) => one.block_id === this.selected.value));
  readonly counts = computed(() => {
    const list = this.outline.list.value;
    return Object.fromEntries(FILTERS.map((one) => [one, list.filter(passes(one, this.text.value)).length])) as Record<Filter, number>;
  });
  /** All blocks known to match the filter, in view or not. */
  readonly matching = computed(() =>
    this.filter.value === "screen" ? this.list.value : this.outline.list.value.filter(passes(this.filter.value, this.text.value)),
  );
  readonly mine = computed(() => this.status.value?.control !== "agent" && this.#leased.value);
  /** Another person has control, who has to be asked for it. */
  readonly others = computed(() => {
    const by = this.status.value?.control_by ?? null;
    return !this.mine.value && by !== null && by !== grant.value?.name;
  });
  /** Who asks for control that is ours. */
  readonly askers = computed(() => {
    // One who has just got it may still be named.
    const { control_by: by = null } = this.status.value ?? {};
    return this.mine.value ? this.watchers.value.asking.filter((one) => one !== by) : [];
  });
  #leased = signal(false);
  #wantsControl = false;
  #socket: Socket | null = null;
  #glass: Glass | null = null;
  #loading: Promise<void> | null = null;
  /** The next event: what the socket is asked to begin with. */
  #next = 0;
  /** Counts what is asked for instead of what is there. */
  #asked = 0;
  /** The same of a block alone. */
  #isolated = 0;
  #paging: Promise<void> | null = null;
  /** Events that arrive while blocks are being fetched: one list for each request. */
  readonly #pendingEvents = new Set<JournalEvent[]>();
  #printed = { count: 0, skips: 0 };
  #countTimer = 0;
  /** What a hidden page has yet to draw. */
  #undrawn: (() => void)[] = [];
  #shown = () => {
    if (!document.hidden) for (const draw of this.#undrawn.splice(0)) draw();
  };
  #behindTimer = 0;
  /** The block that grew last, when it was updated, and its delayed growth. */
  #growing = "";
  #grownAt = 0;
  #grown: JournalEvent | null = null;
  #growthTimer = 0;
  /** Changes that arrive while a status is being fetched: one record for each request. */
  readonly #looks = new Set<Partial<Status>>();
  /** The event up to which it is known who is in control. Answers about it and events come in any order. */
  #controlSeq = 0;

  constructor(id: string) {
    this.id = id;
    this.find = new Find(id);
    this.outline = new Outline(id);
  }

  /** Have a block shown among the others; `at`: a byte of its output. */
  async reveal(block: string, at: number | null): Promise<void> {
    if (this.alone.value.list.some((one) => one.block_id !== block)) return go(toBlock(this.id, block, at));
    const isHere = () => this.list.value.some((one) => one.block_id === block);
    const isAlone = this.alone.value.list.length > 0;
    if (!isAlone && !isHere() && !(await attempt(() => this.load().then(() => this.#goTo(block))))) return;
    if (!isAlone && !isHere()) return;
    this.selected.value = block;
    this.shown.value = { block, at };
  }

  /** Have a block shown alone, unless another one is asked for meanwhile, or all of them are. */
  async isolate(block: string, at: number | null): Promise<void> {
    const isolated = ++this.#isolated;
    if (this.alone.value.list[0]?.block_id !== block) this.alone.value = NONE;
    this.unknown.value = "";
    const asked = call<{ block: Block }>(of(this.id, `blocks/${encodeURIComponent(block)}`));
    const events: JournalEvent[] = [];
    this.#pendingEvents.add(events);
    const found = await asked.catch(() => null);
    this.#pendingEvents.delete(events);
    if (isolated !== this.#isolated) return;
    batch(() => {
      if (!found) this.unknown.value = block;
      else {
        const { seq, block_id, span } = found.block;
        this.alone.value = events.reduce((state, event) => reduce(state, event), { list: [found.block], from: seq, to: seq });
        this.selected.value = block_id;
        this.shown.value = { block, at: at ?? span[0] };
      }
    });
  }

  /** Show the others again, and where it is among them. */
  rejoin(block: string): void {
    this.#isolated++;
    this.alone.value = NONE;
    this.unknown.value = "";
    void this.reveal(block, null);
  }

  /** Show only some of the blocks: from the newest on, or around one that is selected and stays. */
  async choose(filter: Filter, text = this.text.value): Promise<void> {
    batch(() => {
      this.filter.value = filter;
      this.text.value = text;
    });
    const { selected } = this;
    const isKept = this.list.value.some((one) => one.block_id === selected.value && passes(filter, text)(one));
    const isFar = isKept && numberOf(selected.value) < this.outline.last - PAGE;
    const well = await attempt(() => (isFar ? this.#goTo(selected.value) : this.newest()));
    this.shown.value = { block: isKept ? selected.value : "", at: null };
    // What could not be asked for is not shown as if it passed.
    if (!well) {
      const { list, from, to } = this.blocks.value;
      this.blocks.value = { list: list.filter(passes(this.filter.value, this.text.value)), from: list[0]?.seq ?? from, to };
    }
  }

  /** Show the newest blocks. */
  async newest(): Promise<void> {
    const asked = ++this.#asked;
    await this.#read(this.#page({ size: PAGE }), asked, (_, { list, reached }) => ({ list, from: reached ?? 0, to: Infinity }));
  }

  /** Read what is around a block; of one that is not there nothing. Where the filter hides it, all are shown. */
  async #goTo(block: string): Promise<void> {
    const seq = numberOf(block);
    if (!seq) return;
    const asked = ++this.#asked;
    const place = { before: seq + 1, size: PAGE };
    const holds = ({ list }: Page) => list.at(-1)?.block_id === block;
    let isHidden = false;
    const found = this.#page(place).then((page) => {
      isHidden = !holds(page) && (this.filter.value !== "all" || this.text.value !== "");
      return isHidden ? this.#page(place, "") : page;
    });
    await this.#read(found, asked, (state, page) => {
      if (!holds(page)) return state;
      if (isHidden) [this.filter.value, this.text.value] = ["all", ""];
      return { list: page.list, from: page.reached ?? 0, to: seq };
    });
    if (asked === this.#asked && this.blocks.value.to === seq) await this.later();
  }

  /** Read what is there, once. Where no answer came, the next call tries again. */
  load(): Promise<void> {
    return (this.#loading ??= this.#load().catch((problem) => {
      if (["not_found", "forbidden", "bad_request"].includes((problem as Problem).code))
        this.missing.value = "There is no such conversation, or this page may not show it.";
      else this.#loading = null;
      throw problem;
    }));
  }

  async #load(): Promise<void> {
    const [status, page] = await Promise.all([call<Status>(of(this.id, "status")), this.#page({ size: PAGE })]);
    batch(() => {
      this.status.value = status;
      this.blocks.value = { list: page.list, from: page.reached ?? 0, to: Infinity };
      this.#next = page.next;
      this.outline.begin(this.blocks.value);
      this.loaded.value = true;
    });
  }

  /** Follow from what is read, as soon as the server answers; `glass` draws the terminal. */
  enter(glass: Glass): void {
    this.#glass = glass;
    glass.ready((cursor) => {
      this.cursor.value = cursor;
      this.#socket?.send({ type: "ack", cursor });
    });
    document.addEventListener("visibilitychange", this.#shown);
    this.#socket = new Socket(of(this.id, "ws"), {
      query: () => this.load().then(() => `from_seq=${this.#next}&${JOIN}&types=${TYPES}`),
      bytes: (data) => this.#bytes(data),
      message: (content) => this.#take(content),
      state: (state) => this.#connection(state),
    });
  }

  leave(): void {
    clearTimeout(this.#growthTimer);
    clearTimeout(this.#countTimer);
    document.removeEventListener("visibilitychange", this.#shown);
    this.outline.leave();
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

  /** Take control, or ask its holder for it; before the first connection is open, as soon as it is. */
  takeOver(): void {
    this.#wantsControl = this.state.value === "connecting";
    if (this.state.value === "reconnecting") say("Control cannot be taken while the connection is gone.", true);
    else if (!this.#wantsControl) this.#socket!.send({ type: this.others.value ? "ask_control" : "take_control" });
  }

  stopAsking(): void {
    this.#socket?.send({ type: "stop_asking" });
  }

  /** Refuse control to all who ask for it. */
  keepControl(): void {
    this.#socket?.send({ type: "keep_control" });
  }

  handBack(): void {
    this.#socket?.send({ type: "release_control" });
  }

  earlier(): Promise<void> {
    return this.#more(this.blocks.value.from > 0, () => {
      const { from } = this.blocks.value;
      const page = this.#page({ before: from + OVERLAP, size: PAGE });
      return this.#read(page, this.#asked, (state, { list, reached }) =>
        state.from === from ? cut({ ...state, list: merged(state.list, list), from: reached ?? 0 }, KEPT, "end") : state,
      );
    });
  }

  later(): Promise<void> {
    return this.#more(this.blocks.value.to < Infinity, () => {
      const { to } = this.blocks.value;
      const page = this.#page({ after: Math.max(0, to - OVERLAP), size: PAGE });
      return this.#read(page, this.#asked, (state, { list, reached }) =>
        state.to === to ? cut({ ...state, list: merged(state.list, list), to: reached ?? Infinity }, KEPT, "beginning") : state,
      );
    });
  }

  /** Keep no more blocks than are needed; they can be loaded again. */
  tidy(isAtEnd: boolean): void {
    const state = this.blocks.value;
    if (state.list.length >= KEPT) this.blocks.value = isAtEnd ? cut(state, KEPT - PAGE, "beginning") : cut(state, KEPT, "end");
  }

  /** One page at a time. */
  #more(isWanted: boolean, read: () => Promise<void>): Promise<void> {
    if (!isWanted) return Promise.resolve();
    return (this.#paging ??= attempt(read).then(() => undefined).finally(() => (this.#paging = null)));
  }

  /** Use a page of blocks and the events that arrived while it was fetched, unless a later request has replaced it. */
  async #read(page: Promise<Page>, asked: number, take: (state: Blocks, page: Page) => Blocks): Promise<void> {
    const events: JournalEvent[] = [];
    this.#pendingEvents.add(events);
    try {
      const found = await page;
      if (asked !== this.#asked) return;
      batch(() => {
        const state = take(this.blocks.value, found);
        const wanted = passes(this.filter.value, this.text.value);
        this.blocks.value = events.reduce((all, event) => reduce(all, event, wanted), state);
      });
    } finally {
      this.#pendingEvents.delete(events);
    }
  }

  /** Fetch blocks that match the filter: the newest, those before a number, or those after one. */
  async #page(
    { before, after, size }: { before?: number; after?: number; size: number },
    filter = queryOf(this.filter.value, this.text.value),
  ): Promise<Page & { next: number }> {
    // Which used the screen the server says, and it is sifted here.
    const isSifted = filter.includes("measure=true");
    const isBack = after === undefined;
    let query = `order=${isBack ? "newest" : "oldest"}&page_size=${isSifted ? LARGE_PAGE : size}&running=true${filter}`;
    if (before !== undefined) query += `&before_seq=${before}`;
    if (!isBack) query += `&after_seq=${after}`;
    const { blocks, next_page, next_seq } = await call<BlocksPage>(of(this.id, `blocks?${query}`));
    if (isBack) blocks.reverse();
    const edge = isBack ? blocks[0] : blocks.at(-1);
    const list = isSifted ? blocks.filter(passes("screen", this.text.value)) : blocks;
    return { list: merged([], list), reached: next_page === null ? null : edge!.seq, next: next_seq };
  }

  /** Look whether a block that has ended used the screen: its output is read for that, so only when it matters. */
  async #measure(seq: number): Promise<void> {
    const { list } = await this.#page({ before: seq + 1, after: seq - 1, size: 1 });
    if (this.filter.value === "screen")
      for (const block of list) this.blocks.value = taken(this.blocks.value, block, passes("screen", this.text.value));
  }

  #connection(state: SocketState): void {
    this.state.value = state;
    if (state === "live") return;
    if (state === "reconnecting") this.#wantsControl = false;
    if (this.asking.value?.state === "waits") say("The connection was lost: you ask for control no more.", true);
    [this.#leased.value, this.asking.value] = [false, null];
  }

  /** Ask for the status. What events say meanwhile is newer than the answer, and so is the answer to a later request. */
  async #look(): Promise<void> {
    const changes: Partial<Status> = {};
    this.#looks.add(changes);
    try {
      const status = await call<Status>(of(this.id, "status"));
      if (!this.#looks.has(changes)) return;
      for (const earlier of this.#looks) {
        if (earlier === changes) break;
        this.#looks.delete(earlier);
      }
      this.status.value = { ...status, ...changes };
    } catch {
      // The next change asks again.
    } finally {
      this.#looks.delete(changes);
    }
  }

  /** Take who is in control. A status that is on its way may be from before. */
  #controlled(change: Pick<Status, "control" | "control_by" | "control_since" | "halted">, seq: number, leased = this.#leased.value): void {
    if (seq < this.#controlSeq) return;
    this.#controlSeq = seq;
    this.#leased.value = leased && change.control !== "agent";
    if (this.asking.value?.state === "kept") this.asking.value = null;
    this.#merge(change);
  }

  #take(content: Record<string, any>): void {
    const { type } = content;
    if (type === "hello") {
      this.#looks.clear();
      this.status.value = content.status as Status;
      if (this.#wantsControl) this.takeOver();
    } else if (type === "screen") {
      this.#undrawn = [];
      this.#draw((glass) => glass.begin(content.cols, content.rows, content.data, content.cursor));
      if (content.skipped_bytes) this.#showBehind();
    } else if (type === "resize") this.#draw((glass) => glass.resize(content.cols, content.rows));
    else if (type === "restart") this.#draw((glass) => glass.restart(content.data));
    else if (type === "control") {
      batch(() => {
        this.asking.value = null;
        const { control, who, since, halted, seq } = content;
        this.#controlled({ control, control_by: who, control_since: since, halted }, seq - 1, true);
      });
    } else if (type === "watchers") this.watchers.value = { count: content.count, names: content.names, asking: content.asking };
    else if (type === "asking") this.asking.value = content.state === "ended" ? null : { state: content.state, who: content.who };
    else if (type === "error") say(String(content.error?.message), true);
    else if (type === "event") this.#received(content.event as JournalEvent);
  }

  #bytes(data: Uint8Array): void {
    // Between commands there are only the shell's own lines.
    if (this.outline.list.peek().at(-1)?.state === "running")
      for (let at = data.indexOf(LINE_END); at !== -1; at = data.indexOf(LINE_END, at + 1)) this.#count();
    this.#draw((glass) => glass.bytes(data));
  }

  /**
   * Draw, once the page is shown. What is not drawn is not acknowledged, so a hidden page is sent a window of bytes and
   * no more, and then the screen as it has become.
   */
  #draw(what: (glass: Glass) => void): void {
    if (document.hidden) this.#undrawn.push(() => what(this.#glass!));
    else what(this.#glass!);
  }

  /** Count a line. It is shown a little later, with those that come until then. */
  #count(): void {
    this.#printed.count++;
    this.#countTimer ||= window.setTimeout(() => {
      this.#countTimer = 0;
      this.lines.value = { ...this.#printed };
    }, GROWTH_MS);
  }

  #showBehind(): void {
    this.#printed.skips++;
    this.fellBehind.value = true;
    clearTimeout(this.#behindTimer);
    this.#behindTimer = window.setTimeout(() => (this.fellBehind.value = false), BEHIND_MS);
  }

  /** Handle an event. Growth of an output that was updated a moment ago is delayed. */
  #received(event: JournalEvent): void {
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
    if (event.seq < this.#next) return;
    this.#next = event.seq + 1;
    for (const events of this.#pendingEvents) events.push(event);
    batch(() => {
      this.blocks.value = reduce(this.blocks.value, event, passes(this.filter.value, this.text.value));
      this.alone.value = reduce(this.alone.value, event);
      this.outline.take(event);
    });
    if (event.type === "agent_block_end" && this.filter.value === "screen")
      void attempt(() => this.#measure(Number((event.block as Block).seq)));
    if (event.type === "control") {
      const control = event.state as Status["control"];
      const halted = event.halted as string | null;
      this.#controlled({ control, control_by: event.who as string | null, control_since: event.ts, halted }, event.seq);
    } else if (event.type === "approval_decided") this.verdict.value = event;
    else if (event.type === "user_input_requested") this.message.value = String(event.message ?? "");
    else if (event.type === "user_input_done") this.message.value = "";
    else if (event.type === "resize") {
      this.#merge({ cols: Number(event.cols), rows: Number(event.rows) });
    } else if (event.type === "prompt") this.#merge({ mode: "idle", cwd: (event.cwd as string | null) ?? null });
    else if (event.type === "agent_block_begin") this.#merge({ mode: "block_running" });
    else if (["agent_block_end", "shell_exit", "reset", "alt_screen"].includes(event.type)) void this.#look();
  }

  #merge(change: Partial<Status>): void {
    for (const changes of this.#looks) Object.assign(changes, change);
    if (this.status.value) this.status.value = { ...this.status.value, ...change };
  }
}

/** The conversation that a person wants to type in, once it is shown. Not in the address: no link may take control. */
export const wanted = { id: "" };

/** Return a conversation that is being read. What goes wrong then is said when it is entered. */
export function opened(id: string): Conversation {
  const conversation = new Conversation(id);
  conversation.load().catch(() => undefined);
  return conversation;
}

/** The number of a block by its name; 0 for what is no name of a block. */
export const numberOf = (block: string): number => Number(/^b(\d{1,15})$/.exec(block)?.[1] ?? 0);

function queryOf(filter: Filter, text: string): string {
  const params = new URLSearchParams();
  if (filter === "failed") params.set("failed", "true");
  if (filter === "slow") params.set("min_duration_ms", `${slowMs.value}`);
  if (filter === "agent" || filter === "you") params.set("author", filter === "you" ? "user" : "agent");
  if (filter === "screen") params.set("measure", "true");
  if (text) params.set("filter", text);
  return params.size ? `&${params}` : "";
}

/** The same as `queryOf`, of a block that is here. */
function passes(filter: Filter, text: string): Wanted {
  if (text) return (block) => block.cmd.includes(text) && passes(filter, "")(block);
  if (filter === "failed") return (block) => (block.exit_status ?? 0) !== 0;
  if (filter === "slow") return (block) => (block.duration_ms ?? 0) >= slowMs.value;
  if (filter === "agent") return (block) => block.author === "agent";
  if (filter === "screen") return (block) => block.kind === "session" || block.screen === true;
  if (filter === "you") return (block) => block.author === "user";
  return () => true;
}
