import { Terminal } from "@xterm/xterm";
import { TERMINAL } from "../output/colours.ts";
import type { Glass } from "../store/conversation.ts";
import type { Theme } from "../store/settings.ts";
import { measureCharacters } from "./characters.ts";
import { linkAddresses, openLink } from "./links.ts";
import { keepCursorInSight } from "./panning.ts";
import { silence } from "./quiet.ts";

/** What a person does to a terminal. */
export interface Hands {
  typed: (data: Uint8Array<ArrayBuffer>) => void;
  pasted: (text: string) => void;
  /** What becomes of the text of a key before it is typed. */
  change: (data: string) => string;
}

const SMALLEST = 9;
const LARGEST = 20;
/** Of a screen that is made to fit a person's window. */
const COMFORTABLE = 13;
const WIDTH_OF_CELL = 0.6;
/** Characters or bytes that are parsed at once, about 10 ms on a slow machine. */
const AT_ONCE = 8 * 1024;

/**
 * The terminal's screen, drawn by xterm.js at the program's size. The font is what makes it fit; where the smallest one
 * is too large, the screen is panned.
 */
export class XtermGlass implements Glass {
  readonly terminal: Terminal;
  #holder: HTMLElement;
  #cursor = 0;
  #parsed: (cursor: number) => void = () => undefined;

  constructor(holder: HTMLElement, theme: Theme, { typed, pasted, change }: Hands) {
    this.#holder = holder;
    this.terminal = new Terminal({
      cols: 80,
      rows: 24,
      scrollback: 1000,
      fontFamily: '"JetBrains Mono Variable", ui-monospace, "DejaVu Sans Mono", monospace',
      lineHeight: 1.2,
      cursorInactiveStyle: "block",
      disableStdin: false,
      allowProposedApi: true,
      minimumContrastRatio: 4.5,
      windowOptions: {},
      linkHandler: { activate: (_, text) => openLink(text) },
      logLevel: "off",
      theme: colours(theme),
    });
    silence(this.terminal);
    measureCharacters(this.terminal);
    linkAddresses(this.terminal);
    this.terminal.onData((data) => typed(new TextEncoder().encode(change(data))));
    this.terminal.onBinary((data) => typed(Uint8Array.from(data, (one) => one.charCodeAt(0))));
    this.terminal.attachCustomKeyEventHandler((event) => !(event.ctrlKey && event.key === "]"));
    // Before xterm.js, which would type the text: what is pasted may have to be shown first.
    holder.addEventListener("paste", (event) => {
      event.preventDefault();
      event.stopPropagation();
      pasted(event.clipboardData?.getData("text/plain") ?? "");
    }, true);
    this.terminal.open(holder);
    this.#showCursor();
    this.fit();
    keepCursorInSight(this.terminal, holder);
  }

  ready(parsed: (cursor: number) => void): void {
    this.#parsed = parsed;
  }

  begin(cols: number, rows: number, data: string, cursor: number): void {
    this.terminal.write("", () => {
      this.terminal.reset();
      this.#size(cols, rows);
    });
    this.#cursor = cursor;
    this.#write(data, 0);
  }

  bytes(data: Uint8Array): void {
    this.#write(data, data.length);
  }

  /** Queued behind what was written before it, as `write` queues. */
  resize(cols: number, rows: number): void {
    this.terminal.write("", () => this.#size(cols, rows));
  }

  restart(data: string): void {
    this.#write(data, 0);
  }

  lastWords(): string {
    const { active } = this.terminal.buffer;
    return active.getLine(active.baseY + active.cursorY)?.translateToString(true).trim() ?? "";
  }

  setTheme(theme: Theme): void {
    this.terminal.options.theme = colours(theme);
  }

  /** Choose the largest font, in halves of a pixel, with which all columns fit. */
  fit(): void {
    const room = this.#room();
    if (room <= 0) return;
    const size = Math.floor((room / (this.terminal.cols * WIDTH_OF_CELL)) * 2) / 2;
    const wanted = Math.min(LARGEST, Math.max(SMALLEST, size));
    if (this.terminal.options.fontSize !== wanted) this.terminal.options.fontSize = wanted;
  }

  /** Return the size with which the whole screen would be seen here, in letters that are read with ease. */
  fitting(): { cols: number; rows: number } {
    const place = this.#holder.parentElement!;
    const screen = this.#holder.querySelector<HTMLElement>(".xterm-screen")!;
    const cell = (screen.offsetHeight / this.terminal.rows) * (COMFORTABLE / this.terminal.options.fontSize!);
    // What stands above and below the screen; the facts of a block may be scrolled away.
    const others = [...place.children].filter((one) => one !== this.#holder && !one.matches(".inspector, .keybar, .splitter"));
    const { marginTop, marginBottom } = getComputedStyle(this.#holder);
    const around = this.#holder.offsetHeight - screen.offsetHeight + parseFloat(marginTop) + parseFloat(marginBottom);
    const taken = others.reduce((sum, one) => sum + (one as HTMLElement).offsetHeight, around);
    const { paddingBottom } = getComputedStyle(place);
    return {
      cols: Math.max(20, Math.floor(this.#room() / (COMFORTABLE * WIDTH_OF_CELL))),
      rows: Math.max(5, Math.floor((place.clientHeight - parseFloat(paddingBottom) - taken) / cell)),
    };
  }

  close(): void {
    this.terminal.dispose();
  }

  /** The width that the screen may have without being panned. */
  #room(): number {
    const { paddingLeft, paddingRight } = getComputedStyle(this.#holder);
    return this.#holder.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
  }

  /** xterm.js draws no cursor before its first focus: give it that, and the focus back. */
  #showCursor(): void {
    const before = document.activeElement;
    this.terminal.focus();
    this.terminal.blur();
    if (before instanceof HTMLElement) before.focus({ preventScroll: true });
  }

  #size(cols: number, rows: number): void {
    if (cols !== this.terminal.cols || rows !== this.terminal.rows) this.terminal.resize(cols, rows);
    this.fit();
  }

  #write(data: string | Uint8Array, length: number): void {
    const cursor = (this.#cursor += length);
    // xterm.js lets the page draw between two writes, but not within one.
    const last = Math.max(0, Math.ceil(data.length / AT_ONCE) - 1) * AT_ONCE;
    for (let at = 0; at < last; at += AT_ONCE) this.terminal.write(data.slice(at, at + AT_ONCE));
    this.terminal.write(data.slice(last), () => this.#parsed(cursor));
  }
}

function colours(theme: Theme) {
  const [background, foreground, ...ansi] = TERMINAL[theme];
  const names = "black red green yellow blue magenta cyan white".split(" ");
  const bright = names.map((one) => `bright${one[0].toUpperCase()}${one.slice(1)}`);
  const table = Object.fromEntries([...names, ...bright].map((name, at) => [name, ansi[at]]));
  const selection = theme === "light" ? "#2f5bd733" : "#8fb0ff33";
  return { ...table, background, foreground, cursor: foreground, cursorAccent: background, selectionBackground: selection };
}
