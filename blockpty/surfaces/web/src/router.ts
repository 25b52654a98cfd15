import { computed, signal } from "@preact/signals";

/** Where the page is: its address without the fragment. */
const address = signal(location.pathname + location.search);
addEventListener("popstate", () => (address.value = location.pathname + location.search));

export interface Place {
  name: "home" | "conversation" | "search";
  conversation: string;
  block: string;
  query: string;
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
  const [, first, conversation = "", block = ""] = url.pathname.split("/");
  const name = first === "c" && conversation ? "conversation" : first === "search" ? "search" : "home";
  return { name, conversation: decoded(conversation), block: decoded(block), query: url.searchParams.get("q") ?? "" };
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

export const toConversation = (id: string): string => `/c/${encodeURIComponent(id)}`;
