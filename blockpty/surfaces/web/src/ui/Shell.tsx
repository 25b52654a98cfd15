import { useRef, useState } from "preact/hooks";
import { grant, isPerson, mayType, signOut } from "../api/auth.ts";
import { useKeys } from "../keys.ts";
import { follow, go, place, toConversation, toHome, toSearch } from "../router.ts";
import { polite, urgent } from "../store/announcing.ts";
import { haltAll, releaseAll } from "../store/halting.ts";
import { conversations, diskIsFull, inPlace, halted, loaded, need, reachable } from "../store/home.ts";
import { notice, say } from "../store/notice.ts";
import { screenReader, singleKeys, switchScreenReader, switchSingleKeys, switchTheme, theme } from "../store/settings.ts";
import { canTell, tellMe, waiting } from "../store/outside.ts";
import { Asking } from "./Asking.tsx";
import { ConversationPlace } from "./Conversation.tsx";
import { Help } from "./Help.tsx";
import { Home } from "./Home.tsx";
import { Icon } from "./icons.tsx";
import { Palette, showPalette, type Shown } from "./Palette.tsx";
import { ReplayPlace } from "./Replay.tsx";
import { ScreenPlace } from "./ScreenPlace.tsx";
import { Search } from "./Search.tsx";
import { openConversation, Sidebar } from "./Sidebar.tsx";
import { SignIn } from "./SignIn.tsx";
import { Splitter } from "./Splitter.tsx";

export function Mark() {
  return (
    <span class="mark" aria-hidden="true">
      <i />
      <i />
      <i />
    </span>
  );
}

const HINTS = [
  ["j k", "block"],
  ["Enter", "open"],
  ["z", "fold"],
  ["c", "copy output"],
  ["d", "diff"],
  ["t", "take over"],
];
const PAUSE_MS = 50;

/** Go to the next question that waits here, or to a conversation that has one; it is answered there, never from afar. */
function toApproval(): void {
  const card = document.querySelector<HTMLElement>(".ask");
  if (card) {
    card.scrollIntoView({ block: "nearest" });
    card.focus();
    return;
  }
  const one = conversations.peek().find((info) => need(info));
  if (one) go(toConversation(one.conversation_id));
}

export function Shell() {
  const [help, setHelp] = useState(false);
  const [palette, setPalette] = useState<Shown>("nothing");
  const typed = useRef(0);
  const search = useRef<HTMLInputElement>(null);
  const { name, conversation, block, params } = place.value;
  const query = params.get("q") ?? "";
  useKeys({
    help: () => setHelp((shown) => !shown),
    palette: () => (palette === "nothing" ? openPalette("everything") : setPalette("nothing")),
    byName: () => openPalette("conversations"),
    back: () => {
      if (help) setHelp(false);
      else if (palette !== "nothing") setPalette("nothing");
      else go(conversation && (name !== "conversation" || block) ? toConversation(conversation) : toHome());
    },
    home: () => go(toHome()),
    theme: switchTheme,
    singleKeys: () => {
      switchSingleKeys();
      say(singleKeys.value ? "Single keys are on" : "Single keys are off");
    },
    screenReader: () => {
      switchScreenReader();
      say(screenReader.value ? "The terminal is for a screen reader" : "The terminal is hidden from screen readers");
    },
    search: () => search.current?.focus(),
    new: () => isPerson() && void openConversation(),
    number: (key) => {
      // The palette knows of no number.
      if (!key) return openPalette("conversations");
      const one = inPlace.value[Number(key) - 1];
      if (one) go(toConversation(one.conversation_id));
    },
    toApproval,
    signOut,
    ...(mayType() && { halt: () => void haltAll() }),
    ...(isPerson() && halted.value !== null && { release: () => void releaseAll() }),
    ...(canTell.value && { tellMe: () => void tellMe() }),
  });
  const count = waiting.value;
  // It has the focus before the next key, which is meant for it.
  const openPalette = (what: Shown) => {
    showPalette();
    setPalette(what);
  };
  // As one types; an address of its own only for what was entered, so that going back does not go letter by letter.
  const look = (entered: boolean) => {
    clearTimeout(typed.current);
    const changed = new URLSearchParams(name === "search" ? params : {});
    changed.set("q", search.current!.value);
    if (search.current!.value || name === "search") go(toSearch(changed), name === "search" && !entered);
  };
  const type = () => {
    clearTimeout(typed.current);
    typed.current = window.setTimeout(() => look(false), PAUSE_MS);
  };
  if (!grant.value) return <SignIn />;
  return (
    <div class={`shell at-${name}`}>
      <header class="bar">
        <Splitter column="side" words="Width of the list" />
        <a class="logo" href={toHome()} onClick={follow}>
          <Mark /> blockpty
        </a>
        <form
          class="search"
          role="search"
          onSubmit={(event) => {
            event.preventDefault();
            look(true);
            search.current!.blur();
          }}
        >
          <Icon name="search" />
          <input ref={search} defaultValue={query} onInput={type} placeholder="Search every conversation" aria-label="Search" />
          <kbd>/</kbd>
        </form>
        <span class="space" />
        {count > 0 && (
          <a class="need" href={toHome()} onClick={follow}>
            <Icon name="warn" /> {count} <span>{count === 1 ? "needs" : "need"} you</span>
          </a>
        )}
        <span class={`live ${reachable.value ? "" : "gone"}`}>
          <span class="dot" /> {!reachable.value ? "server does not answer" : loaded.value ? "live" : "connecting"}
        </span>
        <button class="quiet" onClick={switchTheme} title="Light or dark (D)" aria-label="Light or dark">
          <Icon name={theme.value === "dark" ? "sun" : "moon"} />
        </button>
        <button class="quiet" onClick={() => setHelp(true)} aria-label="Keys">
          <kbd>?</kbd>
        </button>
      </header>
      <Sidebar />
      {name === "conversation" ? (
        <ConversationPlace key={conversation} id={conversation} block={block} />
      ) : name === "screen" ? (
        <ScreenPlace key={conversation} id={conversation} />
      ) : name === "replay" ? (
        <ReplayPlace key={conversation} id={conversation} at={Number(params.get("at") ?? 0) || 0} play={params.get("play") === "1"} />
      ) : name === "search" ? (
        <Search params={params} />
      ) : (
        <Home />
      )}
      <footer class="foot">
        <span>
          {loaded.value && `${conversations.value.filter((one) => one.live).length} of ${conversations.value.length} shells open`}
        </span>
        <span class="space" />
        {name === "conversation" &&
          HINTS.map(([keys, words]) => (
            <span key={keys}>
              {keys.split(" ").map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}{" "}
              {words}
            </span>
          ))}
        <span>
          <kbd>Ctrl K</kbd> all commands
        </span>
      </footer>
      {diskIsFull.value && (
        <div class="alarm" role="alert">
          <b>The disk of the server is full.</b> Programs that print wait; nothing is lost. They go on as soon as there is room.
        </div>
      )}
      {help && <Help close={() => setHelp(false)} />}
      <Palette shown={palette} close={() => setPalette("nothing")} />
      <Asking />
      <div aria-live="polite">
        {notice.value && <div class={`notice ${notice.value.failed ? "failed" : ""}`}>{notice.value.words}</div>}
        <div class="unseen">
          {polite.value.map(({ number, words }) => (
            <p key={number}>{words}</p>
          ))}
        </div>
      </div>
      <div class="unseen" aria-live="assertive">
        {urgent.value.map(({ number, words }) => (
          <p key={number}>{words}</p>
        ))}
      </div>
    </div>
  );
}
