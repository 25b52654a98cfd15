import { computed, effect, signal } from "@preact/signals";
import { grant } from "../api/auth.ts";
import usual from "../favicon.svg";
import urgent from "../favicon-waiting.svg";
import { place } from "../router.ts";
import { conversations, need } from "./home.ts";
import { ofBrowser } from "./kept.ts";
import { say } from "./notice.ts";

/**
 * What is said where the page itself is not seen: title, icon, the app's badge, and notifications of the system, which
 * come only after a person has asked for them and never say what is in a conversation.
 */
const TELL = "blockpty.tell";

/** Whether what a person types goes to a program now. */
export const typing = signal(false);
export const waiting = computed(() => conversations.value.filter((one) => need(one)).length);
/** Whether the browser can notify, and is not yet asked to. */
export const canTell = signal("Notification" in window && !tells());

function tells(): boolean {
  return ofBrowser.get(TELL) !== null && Notification.permission === "granted";
}

/** Ask the browser for notifications, because a person has clicked. */
export async function tellMe(): Promise<void> {
  if ((await Notification.requestPermission()) !== "granted") return say("The browser does not allow notifications.", true);
  ofBrowser.set(TELL, "1");
  canTell.value = false;
  say("The system notifies you when something needs you and this page is not in sight.");
}

effect(() => {
  const where = !grant.value ? "Sign in" : (typing.value && "You type") || place.value.conversation;
  const title = where ? `${where} · blockpty` : "blockpty";
  document.title = waiting.value ? `(${waiting.value}) ${title}` : title;
});

effect(() => {
  document.querySelector<HTMLLinkElement>("link[rel=icon]")!.href = waiting.value ? urgent : usual;
  const done = waiting.value ? navigator.setAppBadge?.(waiting.value) : navigator.clearAppBadge?.();
  done?.catch(() => undefined);
});

let before = 0;
effect(() => {
  const count = waiting.value;
  const more = count > before;
  before = count;
  if (!more || !("Notification" in window) || !tells() || document.hasFocus()) return;
  try {
    const notification = new Notification("blockpty", { body: `${count} ${count === 1 ? "needs" : "need"} you`, tag: TELL });
    notification.onclick = () => window.focus();
  } catch {
    // On phones only service workers may notify.
  }
});
