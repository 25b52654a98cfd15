import { effect, signal } from "@preact/signals";
import { grant } from "../api/auth.ts";
import { call, of } from "../api/http.ts";
import type { ApprovalRequest } from "../api/types.ts";
import { visible } from "../words.ts";
import { approvals, decisions } from "./home.ts";

/** What became of a question, said where it was asked. */
export interface Verdict {
  asked: ApprovalRequest;
  words: string;
  approved: boolean;
  /** When it became known here, in ms since 1970. */
  ts: number;
}

/** The last verdict of each conversation. */
export const verdicts = signal<ReadonlyMap<string, Verdict>>(new Map());

const keyOf = (conversation: string, approval: string): string => `${conversation}/${approval}`;
const seen = new Map<string, ApprovalRequest>();
/** Those of which it was said what became of them: by an answer from here, by the list of what waits, or by the record. */
const known = new Set<string>();
/** Those that wait no more, of which that was all there was to say. Each is said once: a verdict may be dismissed. */
const gone = new Set<string>();

const SCOPES: Record<string, string> = { once: "once", conversation: "for this conversation", always: "always" };
/** Of questions that wait no more so many are kept, since what the record says of one may come later. */
const MOST_SEEN = 100;

function tell(asked: ApprovalRequest, words: string, approved = false): void {
  verdicts.value = new Map(verdicts.peek()).set(asked.conversation_id, { asked, words, approved, ts: Date.now() });
}

export function dismiss(conversation: string): void {
  const rest = new Map(verdicts.peek());
  rest.delete(conversation);
  verdicts.value = rest;
}

/** Answer a question; raises Problem, with the code `stale` for one that is not what was shown. */
export async function answer(asked: ApprovalRequest, operation: "approve" | "deny", more: { scope?: string; reason?: string }): Promise<void> {
  const { approval_id, conversation_id, digest } = asked;
  const key = keyOf(conversation_id, approval_id);
  const wasKnown = known.has(key);
  known.add(key);
  try {
    await call(of(conversation_id, operation), { approval_id, digest, ...more });
  } catch (problem) {
    if (!wasKnown) known.delete(key);
    throw problem;
  }
  if (operation === "approve") tell(asked, `You approved it ${SCOPES[more.scope!]}.`, true);
  else tell(asked, more.reason ? `You refused it: ${more.reason}` : "You refused it.");
}

/** Take a verdict as the record has it, which says whose it is. */
export function decided(conversation: string, event: Record<string, unknown>): void {
  const key = keyOf(conversation, String(event.approval_id));
  const asked = seen.get(key);
  if (!asked || known.has(key)) return;
  known.add(key);
  const by = visible(String(event.principal));
  const because = event.reason ? `: ${visible(String(event.reason))}` : ".";
  if (event.verdict === "approved") tell(asked, `${by} approved it ${SCOPES[String(event.scope)] ?? ""}.`, true);
  else if (event.verdict === "denied") tell(asked, `${by} refused it${because}`);
  else if (event.verdict === "expired") tell(asked, "No answer came in time, so it was refused.");
  else tell(asked, `It was withdrawn${because}`);
}

effect(() => {
  if (!grant.value) {
    seen.clear();
    known.clear();
    gone.clear();
    verdicts.value = new Map();
    return;
  }
  const waiting = new Set<string>();
  for (const one of approvals.value) {
    const key = keyOf(one.conversation_id, one.approval_id);
    waiting.add(key);
    if (!seen.has(key)) {
      seen.set(key, one);
      dismiss(one.conversation_id);
    }
  }
  for (const [conversation, list] of decisions.value) for (const one of list) decided(conversation, one);
  for (const [key, asked] of seen) {
    if (waiting.has(key)) continue;
    if (!known.has(key) && !gone.has(key)) {
      gone.add(key);
      // The server was restarted. The record of an open conversation may say more.
      tell(asked, "It waits no more.");
    }
    if (seen.size > MOST_SEEN) for (const kept of [seen, known, gone]) kept.delete(key);
  }
});
