import { follow, toConversation } from "../router.ts";
import { sign } from "../store/blocks.ts";
import { approvals, conversations, lastBlocks, loaded, now, running as commands } from "../store/home.ts";
import { age, visible } from "../words.ts";
import { Approval } from "./Approval.tsx";
import { StateSign } from "./Sign.tsx";

export function Home() {
  const waiting = approvals.value;
  const running = conversations.value.filter((one) => one.live && one.mode !== "idle");
  const failed = conversations.value
    .map((one) => lastBlocks.value[one.conversation_id] && { id: one.conversation_id, block: lastBlocks.value[one.conversation_id] })
    .filter((one) => one && sign(one.block) === "fail")
    .slice(0, 8);
  const link = (id: string) => (
    <a href={toConversation(id)} onClick={follow}>
      {id}
    </a>
  );
  return (
    <main class="home">
      <h1>{waiting.length ? `${waiting.length} ${waiting.length === 1 ? "needs" : "need"} you` : "Nothing needs you"}</h1>
      {waiting.map((one) => (
        <Approval key={one.approval_id} asked={one} link={link(one.conversation_id)} />
      ))}
      {running.length > 0 && <h2>Running <span>{running.length}</span></h2>}
      {running.length > 0 && (
        <div class="table">
          {running.map((one) => (
            <a key={one.conversation_id} href={toConversation(one.conversation_id)} onClick={follow}>
              <StateSign sign="run" />
              <b>{one.conversation_id}</b>
              <code>{visible(commands.value[one.conversation_id] || (one.cwd ?? ""))}</code>
            </a>
          ))}
        </div>
      )}
      {failed.length > 0 && <h2>Failed last</h2>}
      {failed.length > 0 && (
        <div class="table">
          {failed.map(({ id, block }) => (
            <a key={id} href={`${toConversation(id)}/${block.block_id}`} onClick={follow}>
              <StateSign sign="fail" />
              <b>{id}</b>
              <code>{visible(block.cmd).split("\n")[0]}</code>
              <span class="ending fail">exit {block.exit_status}</span>
              <span class="age">{age(now.value - (block.ts_end ?? block.ts_begin))}</span>
            </a>
          ))}
        </div>
      )}
      {loaded.value && conversations.value.length === 0 && (
        <p class="muted">
          No conversation yet. <code>blockpty open</code> begins one, and an agent does with <code>blockpty mcp</code>.
        </p>
      )}
    </main>
  );
}
