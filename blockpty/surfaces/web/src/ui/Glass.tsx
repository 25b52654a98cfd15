import { effect } from "@preact/signals";
import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { outputsPainted } from "../output/reading.ts";
import { hush, ring } from "../store/bells.ts";
import type { Conversation } from "../store/conversation.ts";
import { say } from "../store/notice.ts";
import { screenReader, theme } from "../store/settings.ts";
import type { Hands, XtermGlass } from "../terminal/glass.ts";

interface GlassProps {
  /** Called when the terminal is there, with what it returns when the terminal goes. */
  enter: (glass: XtermGlass) => () => void;
  /** What a person may do to it; by default nothing. */
  hands?: Hands;
  glass?: RefObject<XtermGlass | null>;
  /** What is more urgent than the terminal. */
  after?: Promise<void>;
  mine?: boolean;
  hidden?: boolean;
}

const nothing = () => undefined;
const NO_HANDS: Hands = { typed: nothing, pasted: nothing, change: (data) => data };

/** A terminal of xterm.js at the size of its program, for as long as this is shown. */
export function Glass({ enter, hands = NO_HANDS, after, glass, mine = false, hidden = false }: GlassProps) {
  const holder = useRef<HTMLDivElement>(null);
  const own = useRef<XtermGlass | null>(null);
  const shown = glass ?? own;
  // Those of the last time that this was drawn: they go by who may type now.
  const current = useRef(hands);
  current.current = hands;
  // Where this goes while the script is on its way, it has to know at once, not a frame later.
  useLayoutEffect(() => {
    let end: () => void = nothing;
    let gone = false;
    const begin = (made: XtermGlass) => {
      shown.current = made;
      const fit = new ResizeObserver(() => made.fit());
      fit.observe(holder.current!);
      const reader = effect(() => {
        made.terminal.options.screenReaderMode = screenReader.value;
      });
      void document.fonts.ready.then(() => made.fit());
      // For the tests, which compare cells.
      (holder.current as any).terminal = made.terminal;
      const leave = enter(made);
      end = () => {
        fit.disconnect();
        reader();
        leave();
        made.close();
      };
    };
    // xterm.js is most of the page's script, and lists and blocks are shown without it.
    const loading = (after ?? Promise.resolve()).catch(nothing).then(() => import("../terminal/glass.ts"));
    void loading.then(
      (loaded) => gone || begin(new loaded.XtermGlass(holder.current!, theme.peek(), {
          typed: (data) => current.current.typed(data),
          pasted: (text) => current.current.pasted(text),
          change: (data) => current.current.change(data),
        })),
      () => say("The screen could not be loaded: load the page again.", true),
    );
    return () => {
      gone = true;
      end();
    };
  }, []);
  useEffect(() => shown.current?.setTheme(theme.value), [theme.value]);
  return <div class={`glass ${mine ? "mine" : ""}`} ref={holder} hidden={hidden} />;
}

interface LiveProps extends Omit<GlassProps, "enter"> {
  conversation: Conversation;
  title: ComponentChildren;
  /** What can be done, at the end of the head. */
  tools?: ComponentChildren;
  children?: ComponentChildren;
}

/** The live terminal of a conversation below its head; `children` stand between the two. */
export function LiveGlass({ conversation, title, tools, children, ...rest }: LiveProps) {
  const enter = (glass: XtermGlass) => {
    conversation.enter(glass);
    glass.terminal.onTitleChange((title) => (conversation.title.value = title));
    glass.terminal.onBell(() => ring(conversation.id));
    const acted = () => hush(conversation.id);
    for (const kind of ["pointerdown", "keydown"]) document.addEventListener(kind, acted, true);
    return () => {
      for (const kind of ["pointerdown", "keydown"]) document.removeEventListener(kind, acted, true);
      conversation.leave();
    };
  };
  // Who opens a conversation reads its last outputs first: to make a terminal takes longer than to show them.
  const after = useMemo(() => conversation.load().then(outputsPainted), [conversation]);
  const status = conversation.status.value;
  const ended = status?.mode === "exited";
  const live = conversation.state.value === "live" && !ended;
  return (
    <>
      <div class="screen-head">
        {title}
        <span class={`chip ${live ? "run" : ""}`}>
          <span class="dot" />
          {live ? "live" : ended ? "ended" : "not connected"}
        </span>
        <span class="space" />
        {tools}
        <span class="muted">{status && `${status.cols}×${status.rows}`}</span>
      </div>
      {children}
      <Glass {...rest} enter={enter} after={after} />
    </>
  );
}
