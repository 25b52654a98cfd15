import { signal } from "@preact/signals";
import { call } from "../api/http.ts";
import type { Block, SearchHit, SearchResult } from "../api/types.ts";
import { attempt } from "./notice.ts";

const MOST = 1000;

/** Find in one conversation, or in one of its blocks: every match, in the order of the record, by the server's exact search. */
export class Find {
  readonly open = signal(false);
  readonly text = signal("");
  readonly hits = signal<SearchHit[]>([]);
  /** Whether there are more matches than these. */
  readonly more = signal(false);
  readonly at = signal(-1);
  /** The block that is looked in; null for all. */
  readonly within = signal<Block | null>(null);
  #id: string;
  #asked = 0;

  constructor(id: string) {
    this.#id = id;
  }

  async look(text: string): Promise<void> {
    this.text.value = text;
    const asked = ++this.#asked;
    if (text === "") {
      this.#show([], false);
      return;
    }
    const params = new URLSearchParams({
      query: text, conversation_id: this.#id, part: "output", ignore_case: "true", page_size: `${MOST}`,
    });
    const block = this.within.value;
    // The search knows blocks by when they began.
    if (block) for (const [name, ts] of [["since", block.ts_begin], ["until", block.ts_begin + 1]]) params.set(`${name}`, `${ts}`);
    await attempt(async () => {
      const found = await call<SearchResult>(`/search?${params}`);
      // Another text was typed meanwhile.
      if (asked !== this.#asked) return;
      const hits = found.hits.filter((one) => !block || one.block_id === block.block_id);
      this.#show(hits.sort((one, other) => one.span[0] - other.span[0]), found.next !== null || found.partial);
    });
  }

  /** Go to the next match, or the one before; after the last comes the first. */
  step(by: number): SearchHit | null {
    const { length } = this.hits.value;
    if (length === 0) return null;
    this.at.value = this.at.value === -1 ? (by > 0 ? 0 : length - 1) : (this.at.value + by + length) % length;
    return this.hits.value[this.at.value];
  }

  /** Look in one block only, or in all. */
  async narrow(block: Block | null): Promise<void> {
    this.within.value = block;
    await this.look(this.text.value);
  }

  close(): void {
    this.open.value = false;
    this.within.value = null;
    this.#asked++;
    this.text.value = "";
    this.#show([], false);
  }

  #show(hits: SearchHit[], more: boolean): void {
    this.hits.value = hits;
    this.more.value = more;
    this.at.value = -1;
  }
}
