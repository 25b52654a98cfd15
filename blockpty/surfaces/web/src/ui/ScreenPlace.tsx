import { useEffect, useMemo } from "preact/hooks";
import { isPerson, mayType } from "../api/auth.ts";
import { useKeys } from "../keys.ts";
import { follow, toConversation } from "../router.ts";
import { opened } from "../store/conversation.ts";
import { Screen } from "./Screen.tsx";
import { ControlBanner } from "./ControlBanner.tsx";
import { stop } from "./Stop.tsx";

/** The screen of a conversation alone, as large as the window, such as for a second monitor. */
export function ScreenPlace({ id }: { id: string }) {
  const conversation = useMemo(() => opened(id), [id]);
  // Also before there is a terminal.
  useEffect(() => () => conversation.leave(), [conversation]);
  useKeys({
    toScreen: () => document.querySelector<HTMLElement>(".glass textarea")?.focus(),
    takeOver: () => isPerson() && conversation.takeOver(),
    handBack: () => conversation.mine.value && conversation.handBack(),
    stop: () => mayType() && void stop(id),
  });
  return (
    <Screen conversation={conversation}>
      <ControlBanner conversation={conversation} />
      <p class="muted">
        {conversation.missing.value}{" "}
        <a href={toConversation(id)} onClick={follow}>
          Its blocks
        </a>
      </p>
    </Screen>
  );
}
