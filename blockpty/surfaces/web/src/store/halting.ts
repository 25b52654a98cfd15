import { call, of } from "../api/http.ts";
import type { Status } from "../api/types.ts";
import { attempt, say } from "./notice.ts";

/** Have agents type nothing in any conversation, and interrupt what runs in all of them. */
export async function haltAll(): Promise<void> {
  await attempt(async () => {
    const { conversations } = await call<{ conversations: { how: string }[] }>("/halt", {});
    const count = conversations.filter(({ how }) => how.startsWith("SIG")).length;
    say(`Agents are halted, and ${count} ${count === 1 ? "command was" : "commands were"} interrupted.`);
  });
}

/** Let agents type again in all conversations, but for those that were halted one by one. */
export async function releaseAll(): Promise<void> {
  await attempt(() => call("/release", {}));
}

/** Let agents type again in a conversation: where all were halted, in all of them. */
export async function release(conversation: string): Promise<void> {
  await attempt(async () => {
    await call("/release", { conversation_id: conversation });
    if (!(await call<Status>(of(conversation, "status"))).halted) return;
    await call("/release", {});
    say("All conversations were halted; agents may type in all of them again.");
  });
}
