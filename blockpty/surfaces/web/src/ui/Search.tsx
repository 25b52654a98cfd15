import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { call, of } from "../api/http.ts";
import type { Block, SearchHit, SearchResult } from "../api/types.ts";
import { useKeys } from "../keys.ts";
import { follow, go, toBlock, toSearch } from "../router.ts";
import { ending, sign } from "../store/blocks.ts";
import { now } from "../store/clock.ts";
import { attempt } from "../store/notice.ts";
import { age, duration, number, time, visible } from "../words.ts";
import { ask, chosenFilters, SearchFilters } from "./SearchFilters.tsx";
import { Author, StateSign } from "./Sign.tsx";

const MODES = [
  ["substring", "Text"],
  ["words", "Words"],
  ["phrase", "Phrase"],
  ["regex", "Regex"],
] as const;
const PAGE = 30;
const BEFORE = 2;

/** Where a text was printed or typed, over all conversations, as it is typed. Everything asked for is in the address. */
export function Search({ params }: { params: URLSearchParams }) {
  const query = params.get("q") ?? "";
  const mode = params.get("mode") ?? "substring";
  const failed = ["1", "true"].includes(params.get("failed") ?? "");
  const perBlock = params.get("blocks") !== "0";
  const [answered, setAnswered] = useState<{ address: string; result: SearchResult | null } | null>(null);
  const [at, setAt] = useState(0);
  const chosen = useRef<HTMLAnchorElement>(null);
  const asked = new URLSearchParams({ query, mode, per_block: `${perBlock}`, page_size: `${PAGE}` });
  if (failed) asked.set("failed", "true");
  ask(asked, params);
  const address = asked.toString();
  // A layout effect is not a frame late.
  useLayoutEffect(() => {
    // What was asked for before is given up, also by the server.
    const wanted = new AbortController();
    const show = (result: SearchResult | null) => {
      if (wanted.signal.aborted) return;
      setAnswered({ address, result });
      setAt(0);
    };
    if (!query) setAnswered(null);
    else
      void call<SearchResult>(`/search?${address}`, undefined, wanted.signal).then(show, (problem) => {
        if (wanted.signal.aborted) return;
        show(null);
        void attempt(() => Promise.reject(problem));
      });
    return () => wanted.abort();
  }, [address]);
  const found = answered?.result;
  // The answer before stays while the next one is on its way, but nothing is opened or counted from it.
  const busy = query !== "" && answered?.address !== address;
  const more = () =>
    attempt(async () => {
      const next = await call<SearchResult>(`/search?${address}&page=${encodeURIComponent(found!.next!)}`);
      const both = { ...next, hits: [...found!.hits, ...next.hits] };
      setAnswered((now) => (now?.address === address ? { address, result: both } : now));
    });
  const hits = found?.hits ?? [];
  const hit = hits[Math.min(at, hits.length - 1)];
  const [unit, units] = perBlock ? ["block", "blocks"] : ["match", "matches"];
  const step = (by: number) => setAt(Math.max(0, Math.min(hits.length - 1, at + by)));
  useKeys({ next: () => step(1), previous: () => step(-1), open: () => !busy && hit && go(toHit(hit)) });
  useEffect(() => chosen.current?.scrollIntoView({ block: "nearest" }), [at]);
  const change = (name: string, value: string) => {
    const changed = new URLSearchParams(params);
    if (value) changed.set(name, value);
    else changed.delete(name);
    go(toSearch(changed), true);
  };
  return (
    <main class="home found" tabIndex={-1} aria-busy={busy}>
      <div class="found-head">
        <h1>{query ? `“${visible(query)}”` : "Search every conversation"}</h1>
        <div class="tabs" role="group" aria-label="What is looked for">
          {MODES.map(([name, words]) => (
            <button key={name} aria-pressed={mode === name} onClick={() => change("mode", name)}>
              {words}
            </button>
          ))}
          <span class="space" />
          <button aria-pressed={failed} onClick={() => change("failed", failed ? "0" : "1")}>
            Failed only
          </button>
          <button aria-pressed={perBlock} onClick={() => change("blocks", perBlock ? "0" : "1")}>
            One a block
          </button>
        </div>
        <details open={chosenFilters(params) > 0}>
          <summary>More filters{chosenFilters(params) > 0 && ` (${chosenFilters(params)})`}</summary>
          <SearchFilters params={params} change={change} />
        </details>
        {busy && (
          <p class="muted" role="status">
            Searching…
          </p>
        )}
        {!busy && found && (
          <p class="muted" role="status">
            {hits.length === 0 ? "Nothing was found" : `${found.next ? "at least " : ""}${number(hits.length)} ${hits.length === 1 ? unit : units}`}
            {found.partial
              ? `; not everything was looked at${found.missing.length ? `: ${found.missing.map(visible).join(", ")}` : " in time"}.`
              : ". Complete and exact."}
          </p>
        )}
      </div>
      <div class="found-body">
        <div class="hits">
          {hits.map((one, index) => (
            <a
              key={`${one.conversation_id}/${one.block_id}/${one.span[0]}`}
              ref={index === at ? chosen : undefined}
              class={index === at ? "chosen" : ""}
              aria-current={index === at}
              href={toHit(one)}
              onClick={follow}
              onMouseEnter={() => setAt(index)}
              onFocus={() => setAt(index)}
            >
              <header>
                <StateSign sign={sign(one)} />
                <b>{one.conversation_id}</b>
                <code>{visible(one.cmd).split("\n")[0]}</code>
                <span class="age">{[age(now.value - one.ts_begin), duration(one.duration_ms)].filter(Boolean).join(" · ")}</span>
              </header>
              <Snippet hit={one} />
            </a>
          ))}
          {!busy && found?.next && (
            <button class="button small" onClick={more}>
              Go on
            </button>
          )}
        </div>
        {hit && <Around hit={hit} />}
      </div>
    </main>
  );
}

const toHit = (hit: SearchHit): string =>
  toBlock(hit.conversation_id, hit.block_id, hit.part === "output" ? hit.span[0] : null);

function Snippet({ hit }: { hit: SearchHit }) {
  const [begin, end] = hit.snippet_span;
  // Cut by characters, as the server counts them.
  const characters = [...hit.snippet];
  const part = (from: number, to?: number) => visible(characters.slice(from, to).join(""));
  return (
    <code class="snippet">
      {hit.line && <b title="line of the output">{number(hit.line)}</b>}
      {part(0, begin)}
      <mark>{part(begin, end)}</mark>
      {part(end)}
    </code>
  );
}

/** The block of a hit with those around it. */
function Around({ hit }: { hit: SearchHit }) {
  const [blocks, setBlocks] = useState<Block[]>([]);
  useEffect(() => {
    let gone = false;
    const between = `after_seq=${Math.max(0, hit.seq - BEFORE - 1)}&before_seq=${hit.seq + 2}`;
    void call<{ blocks: Block[] }>(of(hit.conversation_id, `blocks?running=true&${between}`))
      // Of a conversation that has gone nothing is shown, and not what is around the hit before.
      .catch(() => ({ blocks: [] }))
      .then((found) => {
        if (!gone) setBlocks(found.blocks);
      });
    return () => {
      gone = true;
    };
  }, [hit.conversation_id, hit.seq]);
  return (
    <aside class="around" aria-label="Around it">
      <h2>{hit.conversation_id}</h2>
      {blocks.map((block) => (
        <a
          key={block.block_id}
          class={block.seq === hit.seq ? "chosen" : ""}
          href={toBlock(hit.conversation_id, block.block_id)}
          onClick={follow}
        >
          <header>
            <StateSign sign={sign(block)} />
            <code>{visible(block.cmd).split("\n")[0] || block.kind}</code>
            {ending(block) && <span class={`ending ${sign(block)}`}>{ending(block)}</span>}
            <Author author={block.author} />
          </header>
          <span class="muted">{[time(block.ts_begin), duration(block.duration_ms)].filter(Boolean).join(" · ")}</span>
          {block.seq === hit.seq && <Snippet hit={hit} />}
        </a>
      ))}
    </aside>
  );
}
