import { computed, signal } from "@preact/signals";
import { BASE } from "./base.ts";

/** Where the page is: its address without the fragment. */
const address = signal(location.pathname + location.search);
addEventListener("popstate", () => (address.value = location.pathname + location.search));

export interface Place {
  name: "home" | "conversation" | "screen" | "replay" | "search";
  conversation: string;
  block: string;
  params: URLSearchParams;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export const place = computed<Place>(() => {
  const url = new URL(address.value, location.origin);
  const [, first, conversation = "", block = ""] = url.pathname.slice(BASE.length).split("/");
  const isInside = first === "c" && conversation !== "";
  const inside = block === "replay" || block === "screen" ? block : "conversation";
  const name = isInside ? inside : first === "search" ? "search" : "home";
  return {
    name,
    conversation: isInside ? decoded(conversation) : "",
    block: name === "conversation" ? decoded(block) : "",
    params: url.searchParams,
  };
});

export function go(to: string, replace = false): void {
  if (to === address.value) return;
  history[replace ? "replaceState" : "pushState"](null, "", to);
  address.value = to;
}

/** Follow a link inside the page; with a modifier the browser does. */
export function follow(event: MouseEvent): void {
  const link = (event.currentTarget as HTMLAnchorElement).getAttribute("href");
  if (link === null || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
  event.preventDefault();
  go(link);
}

export const toHome = (): string => `${BASE}/`;
export const toConversation = (id: string): string => `${BASE}/c/${encodeURIComponent(id)}`;
/** A block alone; `at`: a byte of its output. */
export const toBlock = (id: string, block: string, at: number | null = null): string =>
  `${toConversation(id)}/${encodeURIComponent(block)}${at === null ? "" : `?at=${at}`}`;
export const toScreen = (id: string): string => `${toConversation(id)}/screen`;
/** The replay from a cursor on, playing; `toMoment` is the moment itself, paused. */
export const toReplay = (id: string, cursor = 0): string => `${toMoment(id, cursor)}&play=1`;
export const toMoment = (id: string, cursor: number): string => `${toConversation(id)}/replay?at=${cursor}`;
export const toSearch = (params: URLSearchParams): string => `${BASE}/search?${params}`;
