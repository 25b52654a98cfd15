import { useEffect, useState } from "preact/hooks";
import { call } from "../api/http.ts";
import { follow, toConversation } from "../router.ts";
import { attempt } from "../store/notice.ts";
import { visible } from "../words.ts";

interface Hit {
  conversation_id: string;
  block_id: string | null;
  cmd?: string | null;
  snippet?: string;
}

/** Where a text was printed or typed, over all conversations. */
export function Search({ query }: { query: string }) {
  const [hits, setHits] = useState<Hit[] | null>(null);
  useEffect(() => {
    let gone = false;
    setHits(null);
    if (!query) return;
    const params = new URLSearchParams({ query, limit: "50" });
    void attempt(async () => {
      const found = await call<{ hits: Hit[] }>(`/search?${params}`);
      if (!gone) setHits(found.hits);
    });
    return () => {
      gone = true;
    };
  }, [query]);
  return (
    <main class="home">
      <h1>{query ? `“${query}”` : "Search every conversation"}</h1>
      {hits?.length === 0 && <p class="muted">Nothing was found.</p>}
      {hits && hits.length > 0 && (
        <div class="table hits">
          {hits.map((one, at) => (
            <a key={at} href={`${toConversation(one.conversation_id)}/${one.block_id ?? ""}`} onClick={follow}>
              <b>{one.conversation_id}</b>
              <code>{visible(one.snippet ?? one.cmd ?? "")}</code>
            </a>
          ))}
        </div>
      )}
    </main>
  );
}
