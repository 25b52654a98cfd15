import { effect } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { isPerson, mayType } from "../api/auth.ts";
import { call, of } from "../api/http.ts";
import { useKeys } from "../keys.ts";
import { marked } from "../output/marks.ts";
import { follow, go, place, toReplay } from "../router.ts";
import { now } from "../store/clock.ts";
import { type Conversation, type Filter, FILTERS, opened } from "../store/conversation.ts";
import { approvals, conversations } from "../store/home.ts";
import { attempt, say } from "../store/notice.ts";
import { age, number, visible } from "../words.ts";
import { Approval } from "./Approval.tsx";
import { BlockList } from "./BlockList.tsx";
import { Composer } from "./Composer.tsx";
import { FindBar, openFind } from "./FindBar.tsx";
import { Icon } from "./icons.tsx";
import { Inspector } from "./Inspector.tsx";
import { Screen } from "./Screen.tsx";

const NAMES: Record<Filter, string> = { all: "All", failed: "Failed", slow: "Slow", agent: "Agent", you: "You", screen: "Screen" };

export function ConversationPlace({ id, block }: { id: string; block: string }) {
  const conversation = useMemo(() => opened(id), [id]);
  const stop = () =>
    attempt(() => call(of(id, "interrupt"), { up_to: "INT" })).then((went) => went && say("Interrupted"));
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
    stop: () => mayType() && void stop(),
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
        <Head conversation={conversation} stop={stop} />
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

function Head({ conversation, stop }: { conversation: Conversation; stop: () => void }) {
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
        {mayType() && !ended && (
          <button class="button danger" onClick={stop}>
            <Icon name="square" /> Stop
          </button>
        )}
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
  return (
    <span class={`chip ${kind}`}>
      <Icon name="hand" /> {words}
    </span>
  );
}

function Banner({ conversation }: { conversation: Conversation }) {
  const status = conversation.status.value;
  const info = conversations.value.find((one) => one.conversation_id === conversation.id);
  if (conversation.state.value === "reconnecting")
    return (
      <div class="banner" role="status">
        The connection is gone. Everything up to cursor {number(conversation.cursor.value)} is right; what you type now is
        not sent. <button onClick={() => conversation.now()}>Try now</button>
      </div>
    );
  if (status?.halted)
    return (
      <div class="banner red" role="status">
        {visible(status.halted)} has halted agents: they may type nothing.
        {isPerson() && (
          <button onClick={() => attempt(() => call("/release", { conversation_id: conversation.id }))}>Release</button>
        )}
      </div>
    );
  if (info?.needs.includes("user_input"))
    return (
      <div class="banner wait" role="status">
        {conversation.message.value ? `The agent asks: ${visible(conversation.message.value)}` : "The agent asks for a person."}
        {isPerson() && !conversation.mine.value && <button onClick={() => conversation.takeOver()}>Answer</button>}
        {isPerson() && conversation.mine.value && <button onClick={() => conversation.handBack()}>Done, hand back</button>}
        {isPerson() && (
          <button onClick={() => attempt(() => call(of(conversation.id, "release_control"), { cancelled: true }))}>Cancel</button>
        )}
      </div>
    );
  if (status?.mode !== "exited" && info?.needs.includes("password"))
    return (
      <div class="banner wait" role="status">
        A program asks for a password. What you type is not recorded, not even its length.
        {isPerson() && !conversation.mine.value && <button onClick={() => conversation.takeOver()}>Type it</button>}
      </div>
    );
  if (info?.needs.includes("line") && !conversation.mine.value)
    return (
      <div class="banner" role="status">
        {visible(info.running?.cmd.split(" ")[0] ?? "The program")} waits for a line.
        {isPerson() && <button onClick={() => conversation.takeOver()}>Answer</button>}
      </div>
    );
  if (status && status.integrity !== "ok")
    return (
      <div class="banner red">
        The record is {status.integrity}: {visible(status.integrity_reason ?? "no reason is known")}.
      </div>
    );
  if (status?.mode === "exited")
    return (
      <div class="banner">
        The shell has ended
        {status.lost ? "; how is not known" : status.exit?.signal ? ` (${status.exit.signal})` : status.exit ? ` with ${status.exit.status}` : ""}.
      </div>
    );
  return null;
}
