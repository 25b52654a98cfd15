import { signal } from "@preact/signals";
import { call, of } from "../api/http.ts";
import type { Block, BlocksPage, JournalEvent } from "../api/types.ts";
import { outputsPainted } from "../output/reading.ts";
import { type Blocks, cut, merged, reduce } from "./blocks.ts";

const PAGE = 500;
/** So many are kept; of more, the newest. */
const MOST = 10_000;
const OVERLAP = 8;

/** When the browser has nothing else to do, as far as it says so. */
const idle = (): Promise<void> =>
  new Promise((resolve) => ("requestIdleCallback" in window ? requestIdleCallback(() => resolve()) : setTimeout(resolve, 50)));

/** All blocks of a conversation, for its map and its counts: they are read from the newest back, in idle time. */
export class Outline {
  readonly list = signal<Block[]>([]);
  /** Whether the first one is here. */
  readonly whole = signal(false);
  #id: string;
  #gone = false;
  /** Whether the first ones were dropped. */
  #isCut = false;

  constructor(id: string) {
    this.#id = id;
  }

  /** The number of the newest block; 0 when there is none. */
  get last(): number {
    return this.list.peek().at(-1)?.seq ?? 0;
  }

  /** Begin with the newest blocks, which are here already. */
  begin(newest: Blocks): void {
    this.list.value = newest.list;
    this.whole.value = newest.from === 0;
    // What cannot be read now is known when the page is opened again.
    void this.#read(newest.from).catch(() => undefined);
  }

  take(event: JournalEvent): void {
    // Growth changes no count.
    if (event.type === "agent_block_delta") return;
    const { list } = reduce({ list: this.list.peek(), from: 0, to: Infinity }, event);
    if (list !== this.list.peek()) this.#show(list);
  }

  leave(): void {
    this.#gone = true;
  }

  async #read(from: number): Promise<void> {
    if (from > 0) await outputsPainted();
    while (from > 0 && this.list.peek().length < MOST) {
      await idle();
      if (this.#gone) return;
      const query = `blocks?order=newest&page_size=${PAGE}&before_seq=${from + OVERLAP}`;
      const { blocks, next_page } = await call<BlocksPage>(of(this.#id, query));
      if (this.#gone) return;
      // Events that arrived meanwhile are newer.
      this.#show(merged(blocks, this.list.peek()));
      from = next_page === null ? 0 : blocks.at(-1)!.seq;
    }
    this.whole.value = from === 0 && !this.#isCut;
  }

  #show(list: Block[]): void {
    const kept = cut({ list, from: 0, to: Infinity }, MOST, "beginning").list;
    if (kept !== list) {
      this.#isCut = true;
      this.whole.value = false;
    }
    this.list.value = kept;
  }
}
