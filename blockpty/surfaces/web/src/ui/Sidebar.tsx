import { isPerson } from "../api/auth.ts";
import { call } from "../api/http.ts";
import type { ConversationInfo } from "../api/types.ts";
import { follow, go, place, toConversation } from "../router.ts";
import { sign } from "../store/blocks.ts";
import { approvals, conversations, type Group, groupOf, lastBlocks, now, refresh, running } from "../store/home.ts";
import { attempt } from "../store/notice.ts";
import { age, visible } from "../words.ts";
import { Icon } from "./icons.tsx";
import { StateSign } from "./Sign.tsx";

const GROUPS: Group[] = ["Needs you", "Running", "Idle", "Ended"];

export async function openConversation(): Promise<void> {
  await attempt(async () => {
    const opened = await call<{ conversation_id: string }>("/conversations", {});
    await refresh();
    go(toConversation(opened.conversation_id));
  });
}

export function Sidebar() {
  return (
    <nav class="side" aria-label="Conversations">
      <div class="side-head">
        <span>Conversations</span>
        {isPerson() && (
          <button class="button small" onClick={openConversation}>
            <Icon name="plus" /> New
          </button>
        )}
      </div>
      {GROUPS.map((group) => {
        const members = conversations.value.filter((one) => groupOf(one) === group);
        return (
          members.length > 0 && (
            <section key={group}>
              <h2>
                <span>{group}</span>
                <span>{members.length}</span>
              </h2>
              {members.map((one) => (
                <Entry key={one.conversation_id} info={one} group={group} />
              ))}
            </section>
          )
        );
      })}
    </nav>
  );
}

function Entry({ info, group }: { info: ConversationInfo; group: Group }) {
  const { conversation_id: id } = info;
  const last = lastBlocks.value[id];
  const waiting = approvals.value.find((one) => one.conversation_id === id);
  const since = waiting?.requested_ts ?? last?.ts_end ?? info.created_ts;
  const second = waiting?.text ?? (running.value[id] || null) ?? last?.cmd ?? info.cwd ?? info.shell;
  const isHere = place.value.name === "conversation" && place.value.conversation === id;
  return (
    <a class="entry" href={toConversation(id)} onClick={follow} aria-current={isHere ? "page" : undefined}>
      {group === "Needs you" ? (
        <span class="sign wait">
          <Icon name="warn" />
        </span>
      ) : group === "Ended" ? (
        <span class="sign">
          <Icon name="dash" />
        </span>
      ) : (
        <StateSign sign={group === "Running" ? "run" : last ? sign(last) : "ok"} />
      )}
      <b>{id}</b>
      <span class="age">{group === "Running" ? "" : age(now.value - since)}</span>
      {waiting && <span class="why">Approval wanted</span>}
      <code>{visible(second).split("\n")[0]}</code>
    </a>
  );
}
