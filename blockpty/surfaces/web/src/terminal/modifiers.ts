import { signal } from "@preact/signals";

export interface Held {
  ctrl: boolean;
  alt: boolean;
}

/** Modifiers that were touched and hold for the next key. */
export class Modifiers {
  readonly now = signal<Held>({ ctrl: false, alt: false });

  toggle(name: keyof Held): void {
    this.now.value = { ...this.now.value, [name]: !this.now.value[name] };
  }

  /** Return what is held, and hold nothing any more. */
  take(): Held {
    const held = this.now.value;
    if (held.ctrl || held.alt) this.now.value = { ctrl: false, alt: false };
    return held;
  }
}

/** Return what a terminal gets for a key with modifiers. Only one character can have Ctrl; a paste is not changed. */
export function modified(data: string, held: Held): string {
  if ([...data].length !== 1) return data;
  const code = data.toUpperCase().charCodeAt(0);
  const key = held.ctrl && code >= 0x40 && code < 0x60 ? String.fromCharCode(code & 0x1f) : held.ctrl && data === " " ? "\0" : data;
  return held.alt ? `\x1b${key}` : key;
}
