import { isPerson } from "../api/auth.ts";
import { call } from "../api/http.ts";
import type { ConversationInfo } from "../api/types.ts";
import { follow, go, place, toConversation } from "../router.ts";
import { sign } from "../store/blocks.ts";
import { now } from "../store/clock.ts";
import { rung } from "../store/bells.ts";
import { approvals, type Group, grouped, need, since } from "../store/home.ts";
import { attempt } from "../store/notice.ts";
import { age, visible } from "../words.ts";
import { Icon } from "./icons.tsx";
import { StateSign } from "./Sign.tsx";

/** Of what has ended, so many are listed until all are asked for by searching. */
const ENDED = 50;

/** Open a conversation and go there; `like`: what is given to `open`. */
export async function openConversation(like: object = {}): Promise<void> {
  await attempt(async () => {
    const opened = await call<{ conversation_id: string }>("/conversations", like);
    go(toConversation(opened.conversation_id));
  });
}

export function Sidebar() {
  return (
    <nav class="side" aria-label="Conversations">
      <div class="side-head">
        <span>Conversations</span>
        {isPerson() && (
          <button class="button small" onClick={() => openConversation()}>
            <Icon name="plus" /> New <kbd>n</kbd>
          </button>
        )}
      </div>
      {grouped.value.map(({ group, members }) => (
        <section key={group}>
          <h2>
            <span>{group}</span>
            <span>{members.length}</span>
          </h2>
          {(group === "Ended" ? members.slice(0, ENDED) : members).map((one) => (
            <Entry key={one.conversation_id} info={one} group={group} />
          ))}
        </section>
      ))}
    </nav>
  );
}

function Entry({ info, group }: { info: ConversationInfo; group: Group }) {
  const { conversation_id: id, last, running } = info;
  const waiting = approvals.value.find((one) => one.conversation_id === id);
  const origin = info.source && info.source !== "shell" ? info.source : info.shell;
  const second = waiting?.text ?? running?.cmd ?? last?.cmd ?? info.cwd ?? origin;
  const isHere = place.value.conversation === id;
  const full = info.needs.includes("storage") ? "The disk is full" : "";
  const bell = rung.value.has(id) ? "The bell has rung" : "";
  const why = need(info) || full || bell || (info.integrity !== "ok" && info.live ? "Borders less than certain" : "");
  return (
    <a class="entry" href={toConversation(id)} onClick={follow} aria-current={isHere ? "page" : undefined}>
      {group === "Needs you" ? (
        <span class="sign wait">
          <Icon name={info.needs.includes("password") ? "key" : "warn"} />
        </span>
      ) : group === "Ended" ? (
        <span class="sign">
          <Icon name="dash" />
        </span>
      ) : (
        <StateSign sign={group === "Running" ? "run" : last ? sign(last) : "ok"} />
      )}
      <b>{id}</b>
      <span class="age">{age(now.value - since(info, waiting))}</span>
      {why && <span class="why">{why}</span>}
      <code>{visible(second).split("\n")[0]}</code>
    </a>
  );
}
