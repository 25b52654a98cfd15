import { useComputed } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { mayType } from "../api/auth.ts";
import { useKeys } from "../keys.ts";
import { rung } from "../store/bells.ts";
import type { Conversation } from "../store/conversation.ts";
import { BROWSER_KEYS, hasKeys, isFull, switchFullScreen, takeKeys } from "../store/fullscreen.ts";
import { view } from "../store/layout.ts";
import { say } from "../store/notice.ts";
import type { XtermGlass } from "../terminal/glass.ts";
import { Modifiers, modified } from "../terminal/modifiers.ts";
import { number, visible } from "../words.ts";
import { LiveGlass } from "./Glass.tsx";
import { KeyBar } from "./KeyBar.tsx";
import { Paste, showsFirst } from "./Paste.tsx";
import { Icon } from "./icons.tsx";

/** The live terminal, at the program's size. */
export function Screen({ conversation, children }: { conversation: Conversation; children?: ComponentChildren }) {
  const glass = useRef<XtermGlass | null>(null);
  const held = useMemo(() => new Modifiers(), []);
  const warned = useRef(false);
  const [toPaste, setToPaste] = useState<string | null>(null);
  const warn = () => {
    if (warned.current) return;
    warned.current = true;
    say(!mayType() ? "You are watching." : `You are watching. t ${conversation.others.value ? "asks for control" : "takes over"}.`);
  };
  const typed = (data: Uint8Array<ArrayBuffer>) => (conversation.mine.value ? conversation.type(data) : warn());
  const pasted = (text: string) => {
    if (!conversation.mine.value) warn();
    else if (showsFirst(text)) setToPaste(text);
    else if (text) conversation.paste(text);
  };
  const hands = { typed, pasted, change: (data: string) => modified(data, held.take()) };
  const mine = conversation.mine.value;
  const press = (code: number) => {
    conversation.type(Uint8Array.of(code));
    glass.current?.terminal.focus();
  };
  const fit = () => {
    const { cols, rows } = glass.current!.fitting();
    conversation.resize(cols, rows);
  };
  useKeys({ ...(document.fullscreenEnabled && { fullScreen: switchFullScreen }), ...(mine && { fit }) });
  const full = isFull.value;
  useEffect(() => (mine && full ? takeKeys() : undefined), [mine, full]);
  // At once: the next key is meant for the program.
  useLayoutEffect(() => {
    if (mine) glass.current?.terminal.focus();
    else setToPaste(null);
  }, [mine, view.value]);

  // Put into the document without drawing anything else anew: it changes with all that is printed.
  const cursor = useComputed(() => number(conversation.cursor.value));
  const title = (
    <>
      <Icon name="screen" />
      <b>Screen</b>
      {rung.value.has(conversation.id) && <span class="chip wait">bell</span>}
    </>
  );
  const tools = (
    <>
      {mine && (
        <button class="button small" onClick={fit} title="The program gets the size that is seen here">
          Fit to my window
        </button>
      )}
      {mine && !hasKeys.value && (
        <span class="browser-keys" role="group" aria-label="Keys that the browser keeps for itself">
          {Object.entries(BROWSER_KEYS).map(([letter, code]) => (
            <button key={letter} class="button small" aria-label={`Ctrl+${letter}`} title={`Ctrl+${letter}, which the browser keeps for itself`} onClick={() => press(code)}>
              ^{letter}
            </button>
          ))}
        </span>
      )}
      {document.fullscreenEnabled && (
        <button class="button small" aria-pressed={full} aria-label="Full screen" title="Full screen: keys such as Ctrl+W go to the program" onClick={switchFullScreen}>
          <Icon name="corners" />
        </button>
      )}
    </>
  );
  return (
    <aside class="screen" aria-label="Screen" tabIndex={-1}>
      <LiveGlass {...{ conversation, title, tools, glass, hands, mine }} />
      {mine && <KeyBar glass={() => glass.current} held={held} pasted={pasted} />}
      {mine && toPaste !== null && (
        <Paste
          text={toPaste}
          answer={(wanted) => {
            if (wanted) conversation.paste(toPaste);
            setToPaste(null);
            glass.current?.terminal.focus();
          }}
        />
      )}
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
  if (conversation.fellBehind.value) return "The screen fell behind and was redrawn. The blocks have all of the output.";
  if (conversation.mine.value) return "You type. Ctrl+] hands back.";
  if (status.control === "agent") return status.halted ? "Agents are halted." : "The agent types, you watch.";
  return `${visible(status.control_by ?? "A person")} types${status.control === "shared" ? ", and the agent" : ""}.`;
}
