import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Conversation } from "../store/conversation.ts";
import { attempt } from "../store/notice.ts";
import { theme } from "../store/settings.ts";
import { XtermGlass } from "../terminal/glass.ts";

interface GlassProps {
  /** Called when the terminal is there, with what it returns when the terminal goes. */
  enter: (glass: XtermGlass) => () => void;
  typed?: (data: Uint8Array<ArrayBuffer>) => void;
  /** What becomes of the text of a key or a paste before it is typed. */
  change?: (data: string) => string;
  glass?: RefObject<XtermGlass | null>;
  mine?: boolean;
  hidden?: boolean;
}

const nothing = () => undefined;

/** A terminal of xterm.js at the size of its program, for as long as this is shown. */
export function Glass({ enter, typed = nothing, change, glass, mine = false, hidden = false }: GlassProps) {
  const holder = useRef<HTMLDivElement>(null);
  const own = useRef<XtermGlass | null>(null);
  const shown = glass ?? own;
  useEffect(() => {
    const made = new XtermGlass(holder.current!, typed, theme.peek(), change);
    shown.current = made;
    const fit = new ResizeObserver(() => made.fit());
    fit.observe(holder.current!);
    void document.fonts.ready.then(() => made.fit());
    // For the tests, which compare cells.
    (holder.current as any).terminal = made.terminal;
    const leave = enter(made);
    return () => {
      fit.disconnect();
      leave();
      made.close();
    };
  }, []);
  useEffect(() => shown.current?.setTheme(theme.value), [theme.value]);
  return <div class={`glass ${mine ? "mine" : ""}`} ref={holder} hidden={hidden} />;
}

interface LiveProps extends Omit<GlassProps, "enter"> {
  conversation: Conversation;
  title: ComponentChildren;
  children?: ComponentChildren;
}

/** The live terminal of a conversation below its head; `children` stand between the two. */
export function LiveGlass({ conversation, title, children, ...rest }: LiveProps) {
  const enter = (glass: XtermGlass) => {
    void attempt(() => conversation.enter(glass)).then((went) => {
      if (!went) conversation.missing.value = "There is no such conversation, or this page may not show it.";
    });
    return () => conversation.leave();
  };
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
        <span class="muted">{status && `${status.cols}×${status.rows}`}</span>
      </div>
      {children}
      <Glass {...rest} enter={enter} />
    </>
  );
}
