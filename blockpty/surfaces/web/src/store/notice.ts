import { signal } from "@preact/signals";
import { Problem } from "../api/http.ts";

/** One short message at a time, which goes away by itself. */
export const notice = signal<{ words: string; failed: boolean } | null>(null);
let timer = 0;

export function say(words: string, failed = false): void {
  notice.value = { words, failed };
  clearTimeout(timer);
  timer = window.setTimeout(() => (notice.value = null), failed ? 8000 : 2500);
}

/** Do something that may fail, and say so when it does. Returns whether it went well. */
export async function attempt(what: () => Promise<unknown>): Promise<boolean> {
  try {
    await what();
    return true;
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    say(problem.hint ? `${problem.message}. ${problem.hint}` : problem.message, true);
    return false;
  }
}

export async function copy(text: string, words: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    say(words);
  } catch {
    say("The browser does not let this page copy.", true);
  }
}
