import { useState } from "preact/hooks";
import { isPerson } from "../api/auth.ts";
import { call, of } from "../api/http.ts";
import type { ConversationInfo, Status } from "../api/types.ts";
import { follow, toConversation } from "../router.ts";
import type { Conversation } from "../store/conversation.ts";
import { release } from "../store/halting.ts";
import { conversations } from "../store/home.ts";
import { attempt, say } from "../store/notice.ts";
import { number, visible } from "../words.ts";
import { openConversation } from "./Sidebar.tsx";

/** The one thing about a conversation that a person should know first, and what can be done about it. */
export function Banner({ conversation }: { conversation: Conversation }) {
  const status = conversation.status.value;
  const info = conversations.value.find((one) => one.conversation_id === conversation.id);
  const mine = conversation.mine.value;
  const { id } = conversation;
  if (conversation.state.value === "reconnecting")
    return (
      <div class="banner">
        {conversation.loaded.value
          ? `The connection is gone. Everything up to cursor ${number(conversation.cursor.value)} is right; what you type now is not sent. `
          : "The server does not answer. "}
        <button onClick={() => conversation.now()}>Try now</button>
      </div>
    );
  // All are halted without an event of this conversation.
  const halted = info?.halted ?? status?.halted;
  if (halted && status?.mode !== "exited")
    return (
      <div class="banner red">
        {visible(halted)} has halted agents: they may type nothing.
        {isPerson() && <button onClick={() => release(id)}>Release</button>}
      </div>
    );
  if (info?.needs.includes("user_input"))
    return (
      <div class="banner wait">
        {conversation.message.value ? `The agent asks: ${visible(conversation.message.value)}` : "The agent asks for a person."}
        {isPerson() && !mine && <button onClick={() => conversation.takeOver()}>Answer</button>}
        {isPerson() && mine && <button onClick={() => conversation.handBack()}>Done, hand back</button>}
        {isPerson() && (
          <button onClick={() => attempt(() => call(of(id, "release_control"), { cancelled: true }))}>Cancel</button>
        )}
      </div>
    );
  if (status?.mode !== "exited" && info?.needs.includes("password"))
    return (
      <div class="banner wait">
        A program asks for a password. What you type is not recorded, not even its length.
        {isPerson() && !mine && <button onClick={() => conversation.takeOver()}>Type it</button>}
        {isPerson() && <button onClick={() => attempt(() => call(of(id, "ctrl_c"), {}))}>Ctrl-C</button>}
      </div>
    );
  if (info?.needs.includes("line") && !mine)
    return (
      <div class="banner">
        {visible(info.running?.cmd.split(" ")[0] ?? "The program")} waits for a line. <LastWords conversation={conversation} />
        {isPerson() && <button onClick={() => conversation.takeOver()}>Answer</button>}
      </div>
    );
  if (status && status.integrity !== "ok") return <Uncertain conversation={conversation} status={status} />;
  if (status?.mode === "exited") return <Ended status={status} info={info} />;
  return null;
}

/** What the program printed last, in the row of the cursor. */
function LastWords({ conversation }: { conversation: Conversation }) {
  // Read anew whenever something was drawn.
  void conversation.cursor.value;
  const words = conversation.lastWords();
  return words && <code>{visible(words)}</code>;
}

function Uncertain({ conversation, status }: { conversation: Conversation; status: Status }) {
  const [explained, setExplained] = useState(false);
  const uncertain = conversation.list.value.filter((block) => block.degraded !== null);
  const verify = () =>
    attempt(async () => {
      const { clean, differences } = await call<{ clean: boolean; differences: object[] }>(of(conversation.id, "verify"), {});
      say(clean ? "Verified: blocks and events follow from the bytes." : `${differences.length} differences; blockpty verify lists them.`, !clean);
    });
  return (
    <div class="banner red">
      The record is {status.integrity}: {visible(status.integrity_reason ?? "no reason is known")}.
      {uncertain.length > 0 && " Less than certain: "}
      {uncertain.slice(-8).map((block) => (
        <a key={block.block_id} href={`${toConversation(conversation.id)}/${block.block_id}`} onClick={follow}>
          {block.block_id}
        </a>
      ))}
      <button onClick={verify}>Verify</button>
      <button aria-expanded={explained} onClick={() => setExplained(!explained)}>
        What does it mean?
      </button>
      {explained && (
        <p>
          Every byte is recorded, but the shell's marks for the beginning and end of commands were missing or did not fit. So
          where some blocks begin and end, and how they ended, may be wrong. "Borders of blocks" in the documentation
          (docs/topics/boundaries.md) says how that happens.
        </p>
      )}
    </div>
  );
}

function Ended({ status, info }: { status: Status; info: ConversationInfo | undefined }) {
  const how = status.lost ? "; how is not known" : status.exit?.signal ? ` (${status.exit.signal})` : status.exit ? ` with ${status.exit.status}` : "";
  const isShell = info?.source === undefined || info.source === "shell";
  const again = isShell ? { shell: status.shell, ...(status.cwd ? { cwd: status.cwd } : {}) } : { source: info.source };
  return (
    <div class="banner">
      The shell has ended{how}.
      {isPerson() && (
        <>
          <button onClick={() => openConversation(again)}>Open it again</button>
          <span class="muted"> as a new conversation{isShell && " with the same shell and directory"}</span>
        </>
      )}
    </div>
  );
}
