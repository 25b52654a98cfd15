import { useEffect, useMemo, useRef } from "preact/hooks";
import { grant } from "../api/auth.ts";
import { Conversation } from "../store/conversation.ts";
import { attempt } from "../store/notice.ts";
import { theme } from "../store/settings.ts";
import { XtermGlass } from "../terminal/glass.ts";
import { visible } from "../words.ts";
import { BlockList } from "./BlockList.tsx";

/** A conversation in a frame: its screen, or its blocks, and no way to type. */
export function Embedded({ id, show }: { id: string; show: string }) {
  return grant.value ? <Shown id={id} show={show} /> : <p class="framed muted">This frame waits for its page.</p>;
}

function Shown({ id, show }: { id: string; show: string }) {
  const conversation = useMemo(() => new Conversation(id), [id]);
  const holder = useRef<HTMLDivElement>(null);
  const glass = useRef<XtermGlass | null>(null);
  useEffect(() => {
    const made = new XtermGlass(holder.current!, () => undefined, theme.peek());
    glass.current = made;
    const fit = new ResizeObserver(() => made.fit());
    fit.observe(holder.current!);
    void document.fonts.ready.then(() => made.fit());
    void attempt(() => conversation.enter(made)).then((went) => {
      if (!went) conversation.missing.value = "There is no such conversation, or this page may not show it.";
    });
    (holder.current as any).terminal = made.terminal;
    return () => {
      fit.disconnect();
      conversation.leave();
      made.close();
    };
  }, [conversation]);
  useEffect(() => glass.current?.setTheme(theme.value), [theme.value]);
  const status = conversation.status.value;
  const isLive = conversation.state.value === "live" && status?.mode !== "exited";
  const blocks = show === "blocks";
  return (
    <main class="framed">
      <div class="screen-head">
        <b>{visible(id)}</b>
        <span class={`chip ${isLive ? "run" : ""}`}>
          <span class="dot" />
          {isLive ? "live" : status?.mode === "exited" ? "ended" : "not connected"}
        </span>
        <span class="space" />
        <span class="muted">{status && `${status.cols}×${status.rows}`}</span>
      </div>
      {conversation.missing.value && <p class="muted">{conversation.missing.value}</p>}
      {blocks && <BlockList conversation={conversation} target="" at={null} />}
      <div class="glass" ref={holder} hidden={blocks} />
    </main>
  );
}
