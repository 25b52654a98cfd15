import type { Conversation } from "../store/conversation.ts";
import { visible } from "../words.ts";

/** One person asks another for control: what the one sees, and the other. */
export function ControlBanner({ conversation }: { conversation: Conversation }) {
  const names = conversation.askers.value;
  const asking = conversation.asking.value;
  if (names.length)
    return (
      <div class="banner wait">
        {`${names.map(visible).join(", then ")} ${names.length === 1 ? "asks" : "ask"} for control.`}
        <button onClick={() => conversation.handBack()}>Hand over</button>
        <button onClick={() => conversation.keepControl()}>Keep it</button>
      </div>
    );
  if (asking?.state === "waits")
    return (
      <div class="banner">
        {`You have asked ${holder(conversation)} for control. You type as soon as it is handed over.`}
        <button onClick={() => conversation.stopAsking()}>Stop asking</button>
      </div>
    );
  if (asking?.state === "kept") return <div class="banner">{`${visible(asking.who ?? "")} keeps control.`}</div>;
  return null;
}

function holder(conversation: Conversation): string {
  return visible(conversation.status.value?.control_by ?? "a person");
}
