import { useEffect } from "preact/hooks";
import { say } from "../store/notice.ts";
import { modified, type Modifiers } from "../terminal/modifiers.ts";
import type { XtermGlass } from "../terminal/glass.ts";

const ARROWS = { "←": "D", "↑": "A", "↓": "B", "→": "C" } as const;
const NAMES: Record<string, string> = { "←": "Left", "↑": "Up", "↓": "Down", "→": "Right", "^C": "Ctrl+C", "^D": "Ctrl+D" };
const TEXTS = { Esc: "\x1b", Tab: "\t", "^C": "\x03", "^D": "\x04", "|": "|", "/": "/", "~": "~", "-": "-", Enter: "\r" } as const;

interface KeyBarProps {
  glass: () => XtermGlass | null;
  held: Modifiers;
  pasted: (text: string) => void;
}

/** The keys that a phone's keyboard lacks, above that keyboard. Ctrl and Alt hold for the next key, of either. */
export function KeyBar({ glass, held, pasted }: KeyBarProps) {
  useEffect(aboveTheKeyboard, []);
  const press = (data: string) => {
    const terminal = glass()?.terminal;
    terminal?.input(data, true);
    terminal?.focus();
  };
  const arrow = (letter: string) => {
    const { ctrl, alt } = held.take();
    const number = 1 + (alt ? 2 : 0) + (ctrl ? 4 : 0);
    if (number > 1) return press(`\x1b[1;${number}${letter}`);
    press(glass()?.terminal.modes.applicationCursorKeysMode ? `\x1bO${letter}` : `\x1b[${letter}`);
  };
  const paste = async () => {
    try {
      pasted(await navigator.clipboard.readText());
    } catch {
      say("The browser does not let this page read the clipboard.", true);
    }
  };
  const button = (words: string, act: () => unknown, pressed?: boolean) => (
    // The keyboard would close if the terminal lost the focus.
    <button key={words} aria-label={NAMES[words]} aria-pressed={pressed} onPointerDown={(event) => event.preventDefault()} onClick={act}>
      {words}
    </button>
  );
  const typed = (words: keyof typeof TEXTS) => button(words, () => press(modified(TEXTS[words], held.take())));
  return (
    <div class="keybar" role="toolbar" aria-label="Keys of a terminal">
      {typed("Esc")}
      {typed("Tab")}
      {button("Ctrl", () => held.toggle("ctrl"), held.now.value.ctrl)}
      {button("Alt", () => held.toggle("alt"), held.now.value.alt)}
      {Object.entries(ARROWS).map(([words, letter]) => button(words, () => arrow(letter)))}
      {(["^C", "^D", "|", "/", "~", "-"] as const).map(typed)}
      {button("Paste", paste)}
      {typed("Enter")}
    </div>
  );
}

/** Keep the bar in sight: browsers lay the keyboard over the page and say so here only. */
function aboveTheKeyboard() {
  const view = window.visualViewport;
  if (!view) return;
  const move = () => {
    const hidden = Math.max(0, window.innerHeight - view.height - view.offsetTop);
    document.documentElement.style.setProperty("--keyboard", `${hidden}px`);
  };
  move();
  view.addEventListener("resize", move);
  view.addEventListener("scroll", move);
  return () => {
    view.removeEventListener("resize", move);
    view.removeEventListener("scroll", move);
  };
}
