import { effect } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { isPerson, mayType } from "../api/auth.ts";
import { useKeys } from "../keys.ts";
import { announceFrom } from "../store/announcing.ts";
import { marked } from "../output/marks.ts";
import { follow, go, place, toConversation, toReplay, toScreen } from "../router.ts";
import { now } from "../store/clock.ts";
import { type Conversation, opened, wanted } from "../store/conversation.ts";
import { approvals, conversations } from "../store/home.ts";
import { isNarrow, view } from "../store/layout.ts";
import { typing } from "../store/outside.ts";
import { decided } from "../store/verdicts.ts";
import { closeConversation, exportConversation, killShell } from "../store/whole.ts";
import { age, number, time, visible } from "../words.ts";
import { Approval, VerdictNote } from "./Approval.tsx";
import { Banner } from "./Banner.tsx";
import { BlockList } from "./BlockList.tsx";
import { Composer } from "./Composer.tsx";
import { ControlBanner } from "./ControlBanner.tsx";
import { Filters } from "./Filters.tsx";
import { FindBar, openFind } from "./FindBar.tsx";
import { Icon } from "./icons.tsx";
import { Inspector } from "./Inspector.tsx";
import { Screen } from "./Screen.tsx";
import { Splitter } from "./Splitter.tsx";
import { Stop, stop } from "./Stop.tsx";

const focusScreen = () => document.querySelector<HTMLElement>(".glass textarea")?.focus();

/** Of a program's title so many characters are shown. */
const TITLE = 120;

export function ConversationPlace({ id, block }: { id: string; block: string }) {
  const conversation = useMemo(() => opened(id), [id]);
  const isOpen = conversation.status.value?.mode !== "exited";
  useKeys({
    find: () => openFind(conversation),
    replay: () => go(toReplay(id, conversation.chosen.peek()?.span[0])),
    toScreen: () => {
      view.value = "screen";
      // At once where it is shown, else when it is.
      focusScreen();
      setTimeout(focusScreen);
    },
    screenAlone: () => go(toScreen(id)),
    takeOver: () => isPerson() && conversation.takeOver(),
    handBack: () => conversation.mine.value && conversation.handBack(),
    stop: () => mayType() && void stop(id),
    exportConversation: () => void exportConversation(id),
    ...(mayType() && isOpen && { closeConversation: () => void closeConversation(id), kill: () => void killShell(id) }),
  });
  const { params } = place.value;
  const at = Number(params.get("at") ?? NaN) || null;
  const before = useRef("");
  useEffect(() => {
    if (block) void conversation.isolate(block, at);
    else if (before.current) void conversation.rejoin(before.current);
    before.current = block;
  }, [block, at, conversation]);
  useEffect(() => {
    if (wanted.id === id && isPerson()) conversation.takeOver();
    wanted.id = "";
  }, [conversation]);
  const mine = conversation.mine.value;
  useEffect(() => announceFrom(conversation), [conversation]);
  // Also before there is a terminal.
  useEffect(() => () => conversation.leave(), [conversation]);
  useEffect(
    () =>
      effect(() => {
        if (conversation.verdict.value) decided(id, conversation.verdict.value);
      }),
    [conversation],
  );
  useEffect(() => {
    view.value = "blocks";
  }, [conversation]);
  useEffect(() => {
    if (mine) view.value = "screen";
    typing.value = mine;
    return () => {
      typing.value = false;
    };
  }, [mine]);
  const { text } = conversation.find;
  useEffect(() => {
    marked.value = text.value;
    return () => {
      marked.value = "";
    };
  }, [text.value]);
  if (conversation.missing.value) return <main class="middle empty">{conversation.missing.value}</main>;
  const waiting = approvals.value.filter((one) => one.conversation_id === id);
  return (
    <>
      <main class="middle" data-view={view.value}>
        <Head conversation={conversation} alone={block !== ""} />
        <Banner conversation={conversation} />
        <ControlBanner conversation={conversation} />
        <FindBar conversation={conversation} />
        {block && <Alone conversation={conversation} block={block} />}
        <BlockList key={block ? "alone" : "all"} conversation={conversation} alone={block !== ""} />
        {isNarrow.value && <Inspector conversation={conversation} />}
        <VerdictNote conversation={id} />
        {waiting.map((one) => (
          <Approval key={one.approval_id} asked={one} among={waiting} />
        ))}
        <Composer conversation={conversation} />
      </main>
      <Screen key={id} conversation={conversation}>
        <Splitter column="screen" words="Width of the screen" />
        {!isNarrow.value && <Inspector conversation={conversation} />}
      </Screen>
    </>
  );
}

function Head({ conversation, alone }: { conversation: Conversation; alone: boolean }) {
  const status = conversation.status.value;
  const info = conversations.value.find((one) => one.conversation_id === conversation.id);
  const ended = status?.mode === "exited";
  return (
    <div class="head">
      <div class="title">
        <h1>{conversation.id}</h1>
        <ControlChip conversation={conversation} />
        <span class="space" />
        {isPerson() && !ended &&
          (conversation.mine.value ? (
            <button class="button" onClick={() => conversation.handBack()}>
              <Icon name="hand" /> Hand back <kbd>Ctrl ]</kbd>
            </button>
          ) : (
            conversation.asking.value?.state !== "waits" && (
              <button class="button" onClick={() => conversation.takeOver()}>
                <Icon name="hand" /> {conversation.others.value ? "Ask for control" : "Take over"} <kbd>t</kbd>
              </button>
            )
          ))}
        {mayType() && !ended && <Stop conversation={conversation} />}
        <a class="button plain" href={toReplay(conversation.id)} onClick={follow}>
          <Icon name="play" /> Replay <kbd>r</kbd>
        </a>
      </div>
      <div class="facts">
        {status?.cwd && <code>{visible(status.cwd)}</code>}
        {conversation.title.value && <span class="window-title">{visible(conversation.title.value).slice(0, TITLE)}</span>}
        {status && <span>{status.shell.split("/").at(-1)}</span>}
        {status && <span>{`${status.cols}×${status.rows}`}</span>}
        {info && <span>{info.blocks === 1 ? "1 block" : `${number(info.blocks)} blocks`}</span>}
        {info && <span>opened {age(now.value - info.created_ts)} ago</span>}
      </div>
      <div class="views" role="group" aria-label="Shown">
        {(["blocks", "screen"] as const).map((name) => (
          <button key={name} aria-pressed={view.value === name} onClick={() => (view.value = name)}>
            {name === "blocks" ? "Blocks" : "Screen"}
          </button>
        ))}
      </div>
      {!alone && (
        <div class="tabs" role="group" aria-label="Filter">
          <Filters conversation={conversation} />
          <span class="space" />
          <button onClick={() => openFind(conversation)}>
            <Icon name="search" /> Find <kbd>f</kbd>
          </button>
          <span class="muted">
            Jump <kbd>[</kbd> <kbd>]</kbd>
          </span>
        </div>
      )}
    </div>
  );
}

/** The way back from a block that is shown alone, or is not there. */
function Alone({ conversation, block }: { conversation: Conversation; block: string }) {
  const isUnknown = conversation.unknown.value === block;
  return (
    <div class={`banner ${isUnknown ? "wait" : ""}`} role="status">
      {isUnknown ? `There is no block ${visible(block)} here, or it was removed. ` : `${visible(block)} alone. `}
      <a href={toConversation(conversation.id)} onClick={follow}>
        {isUnknown ? "Show the newest blocks" : "Show it among the others"}
      </a>
    </div>
  );
}

function ControlChip({ conversation }: { conversation: Conversation }) {
  const status = conversation.status.value;
  if (!status || status.mode === "exited") return null;
  const [kind, words] = conversation.mine.value
    ? ["user", "You type"]
    : status.control === "agent"
      ? ["agent", "Agent types"]
      : ["user", `${visible(status.control_by ?? "A person")} types`];
  const since = kind === "user" && status.control_since !== null ? ` since ${time(status.control_since)}` : "";
  return (
    <span class={`chip ${kind}`}>
      <Icon name="hand" /> {words}
      {since}
    </span>
  );
}
