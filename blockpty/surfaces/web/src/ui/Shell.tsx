import { useEffect, useRef, useState } from "preact/hooks";
import { grant } from "../api/auth.ts";
import { bind } from "../keys.ts";
import { follow, go, place } from "../router.ts";
import { approvals, conversations, reachable } from "../store/home.ts";
import { notice } from "../store/notice.ts";
import { switchTheme, theme } from "../store/settings.ts";
import { ConversationPlace } from "./Conversation.tsx";
import { Help } from "./Help.tsx";
import { Home } from "./Home.tsx";
import { Icon } from "./icons.tsx";
import { Search } from "./Search.tsx";
import { Sidebar } from "./Sidebar.tsx";
import { SignIn } from "./SignIn.tsx";

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
  ["t", "take over"],
];

export function Shell() {
  const [help, setHelp] = useState(false);
  const search = useRef<HTMLInputElement>(null);
  useEffect(
    () =>
      bind({
        help: () => setHelp((shown) => !shown),
        back: () => (help ? setHelp(false) : go("/")),
        theme: switchTheme,
        search: () => search.current?.focus(),
      }),
    [help],
  );
  const { name, conversation, block, query } = place.value;
  const waiting = approvals.value.length;
  useEffect(() => {
    const where = name === "conversation" ? `${conversation} · blockpty` : "blockpty";
    document.title = waiting ? `(${waiting}) ${where}` : where;
  }, [name, conversation, waiting]);
  if (!grant.value) return <SignIn />;
  return (
    <div class={`shell at-${name}`}>
      <header class="bar">
        <a class="logo" href="/" onClick={follow}>
          <Mark /> blockpty
        </a>
        <form
          class="search"
          role="search"
          onSubmit={(event) => {
            event.preventDefault();
            go(`/search?q=${encodeURIComponent(search.current!.value)}`);
          }}
        >
          <Icon name="search" />
          <input ref={search} defaultValue={query} placeholder="Search every conversation" aria-label="Search" />
          <kbd>/</kbd>
        </form>
        <span class="space" />
        {waiting > 0 && (
          <a class="need" href="/" onClick={follow}>
            <Icon name="warn" /> {waiting} {waiting === 1 ? "needs" : "need"} you
          </a>
        )}
        <span class={`live ${reachable.value ? "" : "gone"}`} role="status">
          <span class="dot" /> {reachable.value ? "live" : "server does not answer"}
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
      ) : name === "search" ? (
        <Search query={query} />
      ) : (
        <Home />
      )}
      <footer class="foot">
        <span>
          {conversations.value.filter((one) => one.live).length} of {conversations.value.length} shells open
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
      </footer>
      {help && <Help close={() => setHelp(false)} />}
      {notice.value && (
        <div class={`notice ${notice.value.failed ? "failed" : ""}`} role="status">
          {notice.value.words}
        </div>
      )}
    </div>
  );
}
