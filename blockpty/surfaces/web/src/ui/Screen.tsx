import { useComputed } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { mayType } from "../api/auth.ts";
import type { Conversation } from "../store/conversation.ts";
import { attempt, say } from "../store/notice.ts";
import { theme } from "../store/settings.ts";
import { XtermGlass } from "../terminal/glass.ts";
import { Modifiers, modified } from "../terminal/modifiers.ts";
import { number, visible } from "../words.ts";
import { KeyBar } from "./KeyBar.tsx";
import { Icon } from "./icons.tsx";

/** The live terminal, at the program's size. */
export function Screen({ conversation, children }: { conversation: Conversation; children?: ComponentChildren }) {
  const holder = useRef<HTMLDivElement>(null);
  const glass = useRef<XtermGlass | null>(null);
  const held = useMemo(() => new Modifiers(), []);
  useEffect(() => {
    let warned = false;
    const typed = (data: Uint8Array<ArrayBuffer>) => {
      if (conversation.mine.value) conversation.type(data);
      else if (!warned) {
        warned = true;
        say(mayType() ? "You are watching. t takes over." : "You are watching.");
      }
    };
    const made = new XtermGlass(holder.current!, typed, theme.peek(), (data) => modified(data, held.take()));
    glass.current = made;
    const fit = new ResizeObserver(() => made.fit());
    fit.observe(holder.current!);
    void document.fonts.ready.then(() => made.fit());
    void attempt(() => conversation.enter(made)).then((went) => {
      if (!went) conversation.missing.value = "There is no such conversation, or this browser may not see it.";
    });
    // For the tests, which compare cells.
    (holder.current as any).terminal = made.terminal;
    return () => {
      fit.disconnect();
      conversation.leave();
      made.close();
    };
  }, [conversation]);
  const mine = conversation.mine.value;
  useEffect(() => glass.current?.setTheme(theme.value), [theme.value]);
  useEffect(() => {
    if (mine) glass.current?.terminal.focus();
  }, [mine]);

  // Put into the document without drawing anything else anew: it changes with all that is printed.
  const cursor = useComputed(() => number(conversation.cursor.value));
  const status = conversation.status.value;
  const live = conversation.state.value === "live" && status?.mode !== "exited";
  return (
    <aside class="screen" aria-label="Screen" tabIndex={-1}>
      <div class="screen-head">
        <Icon name="screen" />
        <b>Screen</b>
        <span class={`chip ${live ? "run" : ""}`}>
          <span class="dot" />
          {live ? "live" : status?.mode === "exited" ? "ended" : "not connected"}
        </span>
        <span class="space" />
        <span class="muted">{status && `${status.cols}×${status.rows}`}</span>
      </div>
      <div class={`glass ${mine ? "mine" : ""}`} ref={holder} />
      {mine && <KeyBar glass={() => glass.current} held={held} />}
      <div class="tail">
        <span>{who(conversation)}</span>
        <span class="space" />
        <Watchers conversation={conversation} />
        <span>
          cursor <span class="mono">{cursor}</span>
        </span>
      </div>
      {children}
    </aside>
  );
}

function Watchers({ conversation }: { conversation: Conversation }) {
  const { count, names } = conversation.watchers.value;
  if (count < 2) return null;
  return (
    <span class="watchers" title={names.map(visible).join(", ")}>
      {number(count)} watching
    </span>
  );
}

function who(conversation: Conversation): string {
  const status = conversation.status.value;
  if (!status) return "";
  if (conversation.mine.value) return "You type. Ctrl+] hands back.";
  if (status.control === "agent") return status.halted ? "Agents are halted." : "The agent types, you watch.";
  return `${status.control_by ?? "A person"} types${status.control === "shared" ? ", and the agent" : ""}.`;
}
