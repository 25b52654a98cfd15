import { useMemo } from "preact/hooks";
import { grant } from "../api/auth.ts";
import { opened } from "../store/conversation.ts";
import { visible } from "../words.ts";
import { Asking } from "./Asking.tsx";
import { BlockList } from "./BlockList.tsx";
import { LiveGlass } from "./Glass.tsx";

/** A conversation in a frame: its screen, or its blocks, and no way to type. */
export function Embedded({ id, show }: { id: string; show: string }) {
  return grant.value ? <Shown id={id} show={show} /> : <p class="framed muted">This frame waits for its page.</p>;
}

function Shown({ id, show }: { id: string; show: string }) {
  const conversation = useMemo(() => opened(id), [id]);
  const blocks = show === "blocks";
  return (
    <main class="framed">
      <LiveGlass conversation={conversation} title={<b>{visible(id)}</b>} hidden={blocks}>
        {conversation.missing.value && <p class="muted">{conversation.missing.value}</p>}
        {blocks && <BlockList conversation={conversation} />}
      </LiveGlass>
      <Asking />
    </main>
  );
}
