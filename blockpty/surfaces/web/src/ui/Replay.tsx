import { useEffect, useMemo, useRef } from "preact/hooks";
import { useKeys } from "../keys.ts";
import { follow, go, toConversation, toMoment } from "../router.ts";
import { ending, sign } from "../store/blocks.ts";
import { copy } from "../store/notice.ts";
import { IDLE_LIMIT_SECONDS, Replaying } from "../store/replay.ts";
import type { XtermGlass } from "../terminal/glass.ts";
import { clock, number, time, visible } from "../words.ts";
import { Glass } from "./Glass.tsx";
import { Icon } from "./icons.tsx";
import { Scrubber } from "./Scrubber.tsx";
import { Author, StateSign } from "./Sign.tsx";

const STEP_MS = 5000;
const LARGE_STEP_MS = 60_000;

/** What happened in a conversation, at its recorded times. */
export function ReplayPlace({ id, at, play }: { id: string; at: number; play: boolean }) {
  const replay = useMemo(() => new Replaying(id), [id]);
  const enter = (glass: XtermGlass) => {
    replay.enter(glass, at, play);
    return () => replay.leave();
  };
  const link = () => copy(location.origin + toMoment(id, replay.cursor.value), "Link to this moment copied");
  useKeys({
    playPause: () => replay.play(!replay.playing.value),
    earlier: () => replay.toTime(replay.atMs.value - STEP_MS),
    later: () => replay.toTime(replay.atMs.value + STEP_MS),
    muchEarlier: () => replay.toTime(replay.atMs.value - LARGE_STEP_MS),
    muchLater: () => replay.toTime(replay.atMs.value + LARGE_STEP_MS),
    changeBack: () => replay.change(-1),
    changeOn: () => replay.change(1),
    nextBlock: () => replay.step(1),
    previousBlock: () => replay.step(-1),
    slower: () => replay.setSpeed(-1),
    faster: () => replay.setSpeed(1),
    next: () => replay.step(1),
    previous: () => replay.step(-1),
    copyLink: link,
    toEnd: () => go(toConversation(id)),
  });
  const { current } = replay;
  return (
    <main class="replay" tabIndex={-1}>
      <div class="head">
        <div class="title">
          <h1>{id}</h1>
          <span class="chip run">
            <Icon name="clock" /> Replay
          </span>
          <span class="space" />
          <button class="button" onClick={link}>
            <Icon name="link" /> Link to this moment
          </button>
          <a class="button" href={toConversation(id)} onClick={follow}>
            Go live
          </a>
        </div>
        <div class="facts">
          {current.value && <code>{visible(current.value.cmd).split("\n")[0]}</code>}
          <span>{`${replay.size.value[0]}×${replay.size.value[1]}`}</span>
          <span>
            cursor <span class="mono">{number(replay.cursor.value)}</span>
          </span>
        </div>
      </div>
      {replay.state.value === "reconnecting" && <div class="banner">The connection is gone. It goes on here when it is back.</div>}
      {replay.problem.value && <div class="banner red">{visible(replay.problem.value)}</div>}
      <div class="stage">
        <BlockColumn replay={replay} />
        <Glass enter={enter} />
      </div>
      <Controls replay={replay} />
    </main>
  );
}

function BlockColumn({ replay }: { replay: Replaying }) {
  const here = replay.current.value?.block_id;
  const chosen = useRef<HTMLButtonElement>(null);
  useEffect(() => chosen.current?.scrollIntoView({ block: "nearest" }), [here]);
  return (
    <div class="moments" role="group" aria-label="Blocks">
      {replay.blocks.value.map((block) => (
        <button
          key={block.block_id}
          ref={block.block_id === here ? chosen : undefined}
          aria-current={block.block_id === here}
          class={block.block_id === here ? "chosen" : ""}
          onClick={() => replay.toCursor(block.cursor)}
        >
          <StateSign sign={sign(block)} />
          <code>{visible(block.cmd).split("\n")[0] || block.kind}</code>
          {ending(block) && <span class={`ending ${sign(block)}`}>{ending(block)}</span>}
          <span class="age">{time(replay.timeline.value!.begin_ts + block.begin_ms)}</span>
          <Author author={block.author} />
        </button>
      ))}
    </div>
  );
}

function Controls({ replay }: { replay: Replaying }) {
  return (
    <div class="controls">
      <Scrubber replay={replay} />
      <div class="buttons">
        <button class="button primary" onClick={() => replay.play(!replay.playing.value)} aria-label={replay.playing.value ? "Pause" : "Play"}>
          <Icon name={replay.playing.value ? "pause" : "play"} />
        </button>
        <button class="button" onClick={() => replay.step(-1)}>
          Previous <kbd>k</kbd>
        </button>
        <button class="button" onClick={() => replay.step(1)}>
          Next <kbd>j</kbd>
        </button>
        <span class="mono">
          {clock(replay.atMs.value)} / {clock(replay.durationMs.value)}
        </span>
        <span class="muted">{replay.timeline.value && time(replay.timeline.value.begin_ts + replay.atMs.value)}</span>
        <span class="space" />
        <label class="check">
          <input
            type="checkbox"
            checked={replay.skips.value}
            onChange={(event) => replay.skipSilence(event.currentTarget.checked)}
          />
          Skip silence over {IDLE_LIMIT_SECONDS} s
        </label>
        <button class="button" aria-label="Slower" onClick={() => replay.setSpeed(-1)}>
          −
        </button>
        <span class="mono">{replay.speed.value}×</span>
        <button class="button" aria-label="Faster" onClick={() => replay.setSpeed(1)}>
          +
        </button>
      </div>
    </div>
  );
}
