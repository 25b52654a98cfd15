import { computed, signal } from "@preact/signals";
import { call, of } from "../api/http.ts";
import { Socket, type SocketState } from "../api/socket.ts";
import type { BlocksPage, Timeline } from "../api/types.ts";
import type { Glass } from "./conversation.ts";
import { Strip } from "./strip.ts";

const BUCKETS = 600;
export const IDLE_LIMIT_SECONDS = 1;
export const SPEEDS = [0.5, 1, 2, 4, 8, 16, 32];
const SEEK_MS = 80;
/** Of so many blocks it is asked whether they used the screen. */
const MEASURED = 1000;

/** A replay of one conversation: where it is, and what a player does. Nothing here is live, and nothing can be typed. */
export class Replaying {
  readonly id: string;
  readonly timeline = signal<Timeline | null>(null);
  readonly blocks = computed(() => this.timeline.value?.blocks ?? []);
  readonly state = signal<SocketState>("connecting");
  readonly durationMs = signal(0);
  readonly atMs = signal(0);
  readonly cursor = signal(0);
  readonly playing = signal(false);
  readonly ended = signal(false);
  readonly speed = signal(1);
  readonly skips = signal(true);
  readonly size = signal<[number, number]>([80, 24]);
  readonly current = computed(() => {
    const at = this.cursor.value;
    return this.blocks.value.findLast((block) => block.cursor <= at) ?? null;
  });
  readonly problem = signal("");
  /** Names of the blocks that used the screen, as far as it is known. */
  readonly screens = signal<ReadonlySet<string>>(new Set());
  readonly strip = computed(
    () => new Strip(this.durationMs.value, this.timeline.value?.silences ?? [], this.skips.value ? IDLE_LIMIT_SECONDS * 1000 : null),
  );
  #socket: Socket | null = null;
  #glass: Glass | null = null;
  #tag = 0;
  #turned = 0;
  #seekTimer = 0;
  #seekTo: object | null = null;
  #closed = false;

  constructor(id: string) {
    this.id = id;
  }

  /** Begin at a cursor, paused or playing. */
  enter(glass: Glass, cursor: number, plays: boolean): void {
    this.playing.value = plays;
    this.#glass = glass;
    void this.#load();
    this.#socket = new Socket(of(this.id, "replay"), {
      // After a broken connection it goes on where it was.
      query: () => Promise.resolve(`speed=${this.speed.peek()}${this.skips.peek() ? `&idle_limit=${IDLE_LIMIT_SECONDS}` : ""}`),
      bytes: () => undefined,
      message: (content) => this.#take(content, cursor),
      state: (state) => (this.state.value = state),
    });
  }

  leave(): void {
    this.#closed = true;
    clearTimeout(this.#seekTimer);
    this.#socket?.close();
  }

  play(on: boolean): void {
    if (on && this.ended.value) this.#seek({ seconds: 0 });
    this.playing.value = on;
    this.#socket?.send({ type: on ? "resume" : "pause" });
  }

  setSpeed(by: number): void {
    const at = SPEEDS.indexOf(this.speed.value) + by;
    if (!SPEEDS[at]) return;
    this.speed.value = SPEEDS[at];
    this.#socket?.send({ type: "speed", speed: SPEEDS[at] });
  }

  skipSilence(on: boolean): void {
    this.skips.value = on;
    this.#socket?.send({ type: "idle_limit", seconds: on ? IDLE_LIMIT_SECONDS : null });
  }

  /** Go to a time; many in a row are sent every 80 ms, and the newest is shown. */
  toTime(ms: number): void {
    const wanted = Math.max(0, Math.min(this.durationMs.value, ms));
    this.atMs.value = wanted;
    this.#seek({ seconds: wanted / 1000 });
  }

  toCursor(cursor: number): void {
    this.#seek({ cursor });
  }

  step(blocks: number): void {
    this.ended.value = false;
    this.#socket?.send({ type: "step", blocks, tag: ++this.#tag });
  }

  /** Go so many changes of the screen on, or back, and stay there. */
  change(changes: number): void {
    this.play(false);
    this.ended.value = false;
    this.#socket?.send({ type: "step", changes, tag: ++this.#tag });
  }

  #seek(to: object): void {
    this.ended.value = false;
    this.#seekTo = to;
    if (this.#seekTimer) return;
    const send = () => {
      this.#seekTimer = 0;
      if (!this.#seekTo) return;
      this.#socket?.send({ type: "seek", ...this.#seekTo, tag: ++this.#tag });
      this.#seekTo = null;
      this.#seekTimer = window.setTimeout(send, SEEK_MS);
    };
    send();
  }

  async #load(): Promise<void> {
    try {
      const found = await call<Timeline>(of(this.id, `timeline?buckets=${BUCKETS}`));
      if (this.#closed) return;
      this.timeline.value = found;
      const asked = `blocks?order=newest&page_size=${MEASURED}&measure=true`;
      const { blocks } = await call<BlocksPage>(of(this.id, asked));
      this.screens.value = new Set(blocks.filter((one) => one.screen).map((one) => one.block_id));
    } catch (problem) {
      this.problem.value = (problem as Error).message;
    }
  }

  #take(content: Record<string, any>, first: number): void {
    const { type } = content;
    if (type === "hello") {
      this.durationMs.value = content.duration_seconds * 1000;
      // What an earlier connection was asked for never comes on this one.
      this.#turned = this.#tag;
      if (!this.playing.value) this.#socket?.send({ type: "pause" });
      const to = this.cursor.value || first;
      if (to) this.#seek({ cursor: to });
    } else if (type === "turned") this.#turned = content.tag;
    else if (type === "end") {
      // An end from before the last seek says nothing: the player has yet to go there.
      if (this.#seekTo || this.#turned < this.#tag) return;
      this.ended.value = true;
      this.playing.value = false;
      // A player at the end goes on after the next seek.
      this.#socket?.send({ type: "pause" });
    } else if (type === "error") this.problem.value = content.error?.message ?? "";
    else if (this.#turned >= this.#tag) this.#moment(content);
  }

  #moment(moment: Record<string, any>): void {
    const glass = this.#glass!;
    this.atMs.value = moment.at_ms;
    this.cursor.value = moment.cursor;
    if (moment.type === "screen") {
      this.size.value = [moment.cols, moment.rows];
      glass.begin(moment.cols, moment.rows, text(moment), moment.cursor);
    } else if (moment.type === "output") {
      if (typeof moment.data === "string") glass.restart(moment.data);
      else glass.bytes(Uint8Array.from(atob(moment.data_b64), (one) => one.charCodeAt(0)));
    } else if (moment.type === "resize") {
      this.size.value = [moment.cols, moment.rows];
      glass.resize(moment.cols, moment.rows);
    }
  }
}

function text(moment: Record<string, any>): string {
  if (typeof moment.data === "string") return moment.data;
  return new TextDecoder().decode(Uint8Array.from(atob(moment.data_b64), (one) => one.charCodeAt(0)));
}
