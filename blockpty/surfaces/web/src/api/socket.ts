import { BASE } from "../base.ts";
import { signedOut, token } from "./auth.ts";
import { checkToken } from "./http.ts";

/** What a conversation's socket says, and where to go on when it has to be opened again. */
export interface Listener {
  /** Query of the next connection. */
  query(): Promise<string>;
  bytes(data: Uint8Array): void;
  message(content: Record<string, any>): void;
  state(state: SocketState): void;
}

export type SocketState = "connecting" | "live" | "reconnecting";

const FIRST_WAIT = 250;
const LONGEST_WAIT = 5000;
const SIGNED_OUT = 4401;

const LOOK_MS = 5000;
const SLEPT_MS = 30_000;

/** Call when this page was not run for a while though it was shown: a laptop slept, and its connections may be dead. */
function onWaking(woken: () => void): () => void {
  let last = Date.now();
  const timer = setInterval(() => {
    const now = Date.now();
    if (now - last > LOOK_MS + SLEPT_MS) woken();
    last = now;
  }, LOOK_MS);
  // Timers of a page that is not shown are slowed down.
  const shown = () => (last = Date.now());
  document.addEventListener("visibilitychange", shown);
  return () => {
    clearInterval(timer);
    document.removeEventListener("visibilitychange", shown);
  };
}

/** One socket that is opened again whenever it closes, sooner when the network or the page comes back. */
export class Socket {
  #address: string;
  #listener: Listener;
  #socket: WebSocket | null = null;
  #timer = 0;
  #failures = 0;
  #closed = false;
  #wake = () => {
    if (this.#timer && !document.hidden) this.now();
  };
  #sleeping = onWaking(() => {
    // A connection that closes is opened again; a dead one never says that it has closed.
    if (!document.hidden && this.#socket?.readyState === WebSocket.OPEN) this.#again();
  });

  constructor(address: string, listener: Listener) {
    this.#address = address;
    this.#listener = listener;
    addEventListener("online", this.#wake);
    document.addEventListener("visibilitychange", this.#wake);
    listener.state("connecting");
    void this.#open();
  }

  /** Try again at once. */
  now(): void {
    clearTimeout(this.#timer);
    this.#timer = 0;
    void this.#open();
  }

  /** Send a frame; what is given while there is no connection is dropped and not sent later. */
  send(frame: object | Uint8Array<ArrayBuffer>): boolean {
    if (this.#socket?.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(frame instanceof Uint8Array ? frame : JSON.stringify(frame));
    return true;
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#sleeping();
    removeEventListener("online", this.#wake);
    document.removeEventListener("visibilitychange", this.#wake);
    const socket = this.#socket;
    // The browser complains of a connection that is closed before it is there.
    if (socket?.readyState === WebSocket.CONNECTING) socket.onopen = () => socket.close();
    else socket?.close();
  }

  /** Leave the connection there is, whatever becomes of it, and open another one. */
  #again(): void {
    const old = this.#socket!;
    old.onmessage = old.onclose = null;
    old.close();
    this.#listener.state("reconnecting");
    this.now();
  }

  async #open(): Promise<void> {
    let query: string;
    try {
      query = await this.#listener.query();
    } catch {
      this.#later();
      return;
    }
    const given = token();
    if (this.#closed || given === null) return;
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const address = `${scheme}://${location.host}${BASE}/v1${this.#address}?${query}`;
    const socket = new WebSocket(address, ["blockpty.v1", `blockpty.token.${given}`]);
    this.#socket = socket;
    socket.binaryType = "arraybuffer";
    let opened = false;
    socket.onopen = () => {
      opened = true;
      this.#failures = 0;
      this.#listener.state("live");
    };
    socket.onmessage = ({ data }) => {
      if (this.#closed) return;
      if (typeof data === "string") this.#listener.message(JSON.parse(data));
      else this.#listener.bytes(new Uint8Array(data as ArrayBuffer));
    };
    socket.onclose = ({ code }) => {
      if (this.#closed) return;
      if (code === SIGNED_OUT) return signedOut(given);
      this.#later();
      if (!opened) void checkToken();
    };
  }

  #later(): void {
    if (this.#closed) return;
    this.#listener.state("reconnecting");
    const wait = Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** this.#failures++);
    this.#timer = window.setTimeout(() => this.now(), wait * (0.75 + Math.random() / 2));
  }
}
