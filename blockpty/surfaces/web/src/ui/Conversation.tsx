import { effect } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { isPerson, mayType } from "../api/auth.ts";
import { useKeys } from "../keys.ts";
import { marked } from "../output/marks.ts";
import { follow, go, place, toReplay } from "../router.ts";
import { now } from "../store/clock.ts";
import { type Conversation, type Filter, FILTERS, opened } from "../store/conversation.ts";
import { approvals, conversations } from "../store/home.ts";
import { typing } from "../store/outside.ts";
import { age, number, time, visible } from "../words.ts";
import { Approval } from "./Approval.tsx";
import { Banner } from "./Banner.tsx";
import { BlockList } from "./BlockList.tsx";
import { Composer } from "./Composer.tsx";
import { FindBar, openFind } from "./FindBar.tsx";
import { Icon } from "./icons.tsx";
import { Inspector } from "./Inspector.tsx";
import { Screen } from "./Screen.tsx";
import { Stop, stop } from "./Stop.tsx";

const NAMES: Record<Filter, string> = { all: "All", failed: "Failed", slow: "Slow", agent: "Agent", you: "You", screen: "Screen" };

export function ConversationPlace({ id, block }: { id: string; block: string }) {
  const conversation = useMemo(() => opened(id), [id]);
  const show = (name: Filter) => () => (conversation.filter.value = conversation.filter.value === name ? "all" : name);
  const from = () => conversation.blocks.value.list.find((one) => one.block_id === conversation.selected.value);
  useKeys({
    failed: show("failed"),
    slow: show("slow"),
    byAgent: show("agent"),
    byUser: show("you"),
    onScreen: show("screen"),
    all: () => (conversation.filter.value = "all"),
    find: () => openFind(conversation),
    replay: () => go(toReplay(id, from()?.span[0])),
    toScreen: () => document.querySelector<HTMLElement>(".glass textarea")?.focus(),
    takeOver: () => isPerson() && conversation.takeOver(),
    handBack: () => conversation.mine.value && conversation.handBack(),
    stop: () => mayType() && void stop(id),
  });
  const { params } = place.value;
  const take = params.get("take") === "1";
  useEffect(
    () =>
      // Once, when the screen is there: the address says what a button on the first page asked for.
      effect(() => {
        if (!take || conversation.state.value !== "live" || !isPerson()) return;
        go(place.peek().block ? `/c/${encodeURIComponent(id)}/${place.peek().block}` : `/c/${encodeURIComponent(id)}`, true);
        conversation.takeOver();
      }),
    [take, conversation],
  );
  const mine = conversation.mine.value;
  useEffect(() => {
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
      <main class="middle">
        <Head conversation={conversation} />
        <Banner conversation={conversation} />
        <FindBar conversation={conversation} />
        <BlockList conversation={conversation} target={block} at={Number(params.get("at") ?? NaN) || null} />
        {waiting.map((one) => (
          <Approval key={one.approval_id} asked={one} />
        ))}
        <Composer conversation={conversation} />
      </main>
      <Screen key={id} conversation={conversation}>
        <Inspector conversation={conversation} />
      </Screen>
    </>
  );
}

function Head({ conversation }: { conversation: Conversation }) {
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
            <button class="button" onClick={() => conversation.takeOver()}>
              <Icon name="hand" /> Take over <kbd>t</kbd>
            </button>
          ))}
        {mayType() && !ended && <Stop conversation={conversation} />}
        <a class="button plain" href={toReplay(conversation.id)} onClick={follow}>
          <Icon name="play" /> Replay <kbd>r</kbd>
        </a>
      </div>
      <div class="facts">
        {status?.cwd && <code>{visible(status.cwd)}</code>}
        {status && <span>{status.shell.split("/").at(-1)}</span>}
        {status && <span>{`${status.cols}×${status.rows}`}</span>}
        {info && <span>{number(info.blocks)} blocks</span>}
        {info && <span>opened {age(now.value - info.created_ts)} ago</span>}
      </div>
      <div class="tabs" role="group" aria-label="Filter">
        {FILTERS.map((name) => (
          <button
            key={name}
            aria-pressed={conversation.filter.value === name}
            onClick={() => (conversation.filter.value = name)}
          >
            {NAMES[name]}{" "}
            {/* Which used the screen is asked when that is wanted. */}
            {(name !== "screen" || conversation.filter.value === name) && (
              <span class={name === "failed" ? "red" : ""}>{number(conversation.counts.value[name])}</span>
            )}
          </button>
        ))}
        <span class="space" />
        <button onClick={() => openFind(conversation)}>
          <Icon name="search" /> Find <kbd>f</kbd>
        </button>
        <span class="muted">
          Jump <kbd>[</kbd> <kbd>]</kbd>
        </span>
      </div>
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
