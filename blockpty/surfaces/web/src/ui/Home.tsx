import { useEffect, useState } from "preact/hooks";
import { isPerson, mayType } from "../api/auth.ts";
import { call, of } from "../api/http.ts";
import type { Block, ConversationInfo, Overview } from "../api/types.ts";
import { follow, go, toConversation } from "../router.ts";
import { rung } from "../store/bells.ts";
import { ending } from "../store/blocks.ts";
import { now } from "../store/clock.ts";
import { wanted } from "../store/conversation.ts";
import { haltAll, releaseAll } from "../store/halting.ts";
import { approvals, conversations, groupOf, halted, loaded, need, pictures, reachable, watchScreens } from "../store/home.ts";
import { attempt } from "../store/notice.ts";
import { canTell, tellMe } from "../store/outside.ts";
import { verdicts } from "../store/verdicts.ts";
import { age, number, visible } from "../words.ts";
import { Approval, VerdictNote } from "./Approval.tsx";
import { Icon } from "./icons.tsx";
import { Mini } from "./Mini.tsx";
import { Author, StateSign } from "./Sign.tsx";

const HOUR = 3_600_000;
const SETTLED_MS = 2000;
const RESTED_MS = 1000;
const NEWEST = 1000;
/** How long a verdict stays on the first page. */
const ANSWERED_MS = 60_000;

export function Home() {
  const waiting = approvals.value;
  const asking = conversations.value.filter((one) => need(one) && !one.needs.includes("approval"));
  const running = conversations.value.filter((one) => groupOf(one) === "Running");
  const shown = [...new Set([...waiting, ...asking, ...running].map((one) => one.conversation_id))];
  const answered = [...verdicts.value.values()].filter(({ ts }) => now.value - ts < ANSWERED_MS);
  useEffect(() => watchScreens(shown), [shown.join("\n")]);
  useEffect(() => () => watchScreens([]), []);
  const count = waiting.length + asking.length;
  return (
    <main class="home" tabIndex={-1}>
      <div class="home-head">
        <h1>{headline(count)}</h1>
        <span class="space" />
        {canTell.value && (
          <button class="button" onClick={tellMe}>
            Tell me
          </button>
        )}
        {mayType() && loaded.value && (
          <button class="button danger" onClick={haltAll}>
            <Icon name="square" /> Stop everything
          </button>
        )}
      </div>
      {halted.value !== null && (
        <p class="banner red">
          {visible(halted.value)} has halted agents: they may type nothing.
          {isPerson() && <button onClick={releaseAll}>Release</button>}
        </p>
      )}
      {count + answered.length > 0 && (
        <div class="cards">
          {waiting.map((one) => (
            <Approval key={`${one.conversation_id}/${one.approval_id}`} asked={one} among={waiting} link={<Link id={one.conversation_id} />} pictured />
          ))}
          {answered.map(({ asked: { conversation_id: id } }) => (
            <VerdictNote key={id} conversation={id} link={<Link id={id} />} />
          ))}
          {asking.map((one) => (
            <Asking key={one.conversation_id} info={one} />
          ))}
        </div>
      )}
      {running.length > 0 && (
        <>
          <h2>
            Running <span>{running.length}</span>
          </h2>
          <div class="wall">
            {running.map((one) => (
              <Tile key={one.conversation_id} info={one} />
            ))}
          </div>
        </>
      )}
      <Lately />
      {loaded.value && conversations.value.length === 0 && <Nothing />}
    </main>
  );
}

/** Only an answer of the server says that nothing waits. */
function headline(count: number): string {
  if (!reachable.value) return "The server does not answer";
  if (!loaded.value) return "Connecting…";
  return count ? `${count} ${count === 1 ? "needs" : "need"} you` : "Nothing needs you";
}

const Link = ({ id }: { id: string }) => (
  <a href={toConversation(id)} onClick={follow}>
    {id}
  </a>
);

function Nothing() {
  return (
    <section class="first">
      <h2>No conversation yet</h2>
      <p class="muted">A conversation is a shell whose commands, output and screen are kept. Begin one in a terminal:</p>
      <pre>{'blockpty open work\nblockpty run work "make test"'}</pre>
      <p class="muted">An agent begins its own over MCP. This says how to connect one:</p>
      <pre>blockpty mcp --help</pre>
    </section>
  );
}

/** A program or an agent waits for what only a person can type. */
function Asking({ info }: { info: ConversationInfo }) {
  const id = info.conversation_id;
  const isPassword = need(info) === "Password prompt";
  const open = (take: boolean) => () => {
    if (take) wanted.id = id;
    go(toConversation(id));
  };
  const title = isPassword ? "A program asks for a password" : need(info) === "You are asked" ? "The agent asks for you" : need(info);
  return (
    <section class="ask" aria-label={title}>
      <header>
        <Icon name={isPassword ? "key" : "warn"} />
        <b>{title}</b>
        <Link id={id} />
        <span class="muted">{age(now.value - info.used_ts)}</span>
      </header>
      <pre>{lastLine(id) || visible(info.running?.cmd ?? "")}</pre>
      <p>
        {isPassword ? "What you type is not recorded, not even its length. " : ""}
        {info.running && <code>{visible(info.running.cmd).split("\n")[0]}</code>}
      </p>
      {isPerson() && (
        <div class="answers">
          <button class="button primary" onClick={open(true)}>
            {isPassword ? "Type it" : "Answer"}
          </button>
          <button class="button" onClick={open(false)}>
            Open the screen
          </button>
          <span class="space" />
          <button class="button danger" onClick={() => attempt(() => call(of(id, "ctrl_c"), {}))}>
            Ctrl-C
          </button>
        </div>
      )}
    </section>
  );
}

/** The last row of a screen that is not empty: what the program asks. */
function lastLine(id: string): string {
  const picture = pictures.value.get(id);
  if (!picture) return "";
  const row = picture.lines.get(picture.cursor.y) ?? [];
  return visible(row.map((run) => run.text).join("").trimEnd());
}

function Tile({ info }: { info: ConversationInfo }) {
  const { conversation_id: id, running } = info;
  return (
    <a class="tile" href={toConversation(id)} onClick={follow}>
      <header>
        <StateSign sign="run" />
        <b>{id}</b>
        <Author author={info.control === "agent" ? (running?.author ?? "agent") : "user"} />
        <span class="space" />
        {rung.value.has(id) && <span class="chip wait">bell</span>}
        <span class="age">{age(now.value - running!.ts_begin)}</span>
      </header>
      <Mini id={id} />
      <code>{visible(running!.cmd).split("\n")[0] || running!.kind}</code>
    </a>
  );
}

/** What failed last, and the blocks of today by the hour. */
function Lately() {
  const [failed, setFailed] = useState<Overview["blocks"]>([]);
  const [today, setToday] = useState<Block[]>([]);
  const ended = conversations.value.map((one) => one.last?.block_id).join();
  const listed = loaded.value;
  useEffect(() => {
    // The list comes first, which this would only hold up.
    if (!listed) return;
    let gone = false;
    const look = (query: string, take: (blocks: Overview["blocks"]) => void) => () =>
      void call<Overview>(`/overview?conversations=0&${query}`).then(({ blocks }) => gone || take(blocks), () => undefined);
    const isFirst = !failed.length && !today.length;
    // A block counts in the overview within a second; many that end at once are looked at together.
    const soon = setTimeout(look("blocks=8&failed=true", setFailed), isFirst ? 0 : SETTLED_MS);
    // Most of a day's blocks take the server longer than all else here: a person who goes on at once does not wait.
    const later = setTimeout(
      look(`blocks=${NEWEST}`, (all) => {
        const midnight = new Date().setHours(0, 0, 0, 0);
        setToday(all.map(({ block }) => block).filter((block) => block.ts_begin >= midnight));
      }),
      isFirst ? RESTED_MS : SETTLED_MS,
    );
    return () => {
      gone = true;
      clearTimeout(soon);
      clearTimeout(later);
    };
  }, [ended, listed]);
  if (!today.length && !failed.length) return null;
  return (
    <div class="lately">
      <section>
        <h2>Failed lately</h2>
        <div class="table">
          {failed.length === 0 && <p class="muted">Nothing has failed.</p>}
          {failed.map(({ conversation_id: id, block }) => (
            <a key={`${id}/${block.block_id}`} href={`${toConversation(id)}/${block.block_id}`} onClick={follow}>
              <StateSign sign="fail" />
              <b>{id}</b>
              <code>{visible(block.cmd).split("\n")[0]}</code>
              <span class="ending fail">{ending(block)}</span>
              <span class="age">{age(now.value - (block.ts_end ?? block.ts_begin))}</span>
            </a>
          ))}
        </div>
      </section>
      <section>
        <h2>
          Today <span>{`${number(today.length)}${today.length === NEWEST ? "+" : ""} blocks`}</span>
        </h2>
        <Today blocks={today} />
      </section>
    </div>
  );
}

function Today({ blocks }: { blocks: Block[] }) {
  const midnight = new Date().setHours(0, 0, 0, 0);
  const first = Math.min(...blocks.map((block) => block.ts_begin), Date.now());
  const from = Math.floor((first - midnight) / HOUR);
  const hours = Math.floor((Date.now() - midnight) / HOUR) - from + 1;
  const counts = Array.from({ length: Math.max(1, hours) }, () => ({ all: 0, failed: 0 }));
  for (const block of blocks) {
    const hour = counts[Math.floor((block.ts_begin - midnight) / HOUR) - from];
    if (!hour) continue;
    hour.all++;
    if (block.exit_status) hour.failed++;
  }
  const most = Math.max(1, ...counts.map((one) => one.all));
  const failed = blocks.filter((block) => block.exit_status).length;
  const stopped = blocks.filter((block) => block.state === "interrupted").length;
  const well = blocks.filter((block) => block.exit_status === 0).length;
  return (
    <div class="today">
      <div class="bars" role="img" aria-label={`${blocks.length} blocks today, ${failed} failed`}>
        {counts.map((one, at) => (
          <div key={at} title={`${from + at}:00, ${one.all} blocks, ${one.failed} failed`} style={{ height: `${(one.all / most) * 100}%` }}>
            <i style={{ height: one.all ? `${(one.failed / one.all) * 100}%` : "0" }} />
          </div>
        ))}
      </div>
      <div class="hours">
        <span>{String(from).padStart(2, "0")}:00</span>
        <span>now</span>
      </div>
      <p class="muted">
        <b>{number(well)}</b> ended well <b class="red">{number(failed)}</b> failed <b>{number(stopped)}</b> interrupted
      </p>
    </div>
  );
}
