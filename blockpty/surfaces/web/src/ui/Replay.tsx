import { memo } from "preact/compat";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { Timeline } from "../api/types.ts";
import { useKeys } from "../keys.ts";
import { follow, go, toConversation, toMoment } from "../router.ts";
import { ending, sign } from "../store/blocks.ts";
import { copy } from "../store/notice.ts";
import { IDLE_LIMIT_SECONDS, Replaying } from "../store/replay.ts";
import type { XtermGlass } from "../terminal/glass.ts";
import { duration, number, time, visible } from "../words.ts";
import { Glass } from "./Glass.tsx";
import { Icon } from "./icons.tsx";
import { Author, StateSign } from "./Sign.tsx";

const STEP_MS = 5000;

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
  const clock = (ms: number) => {
    const seconds = Math.floor(ms / 1000);
    const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
    return (parts[0] ? parts : parts.slice(1)).map((one) => String(one).padStart(2, "0")).join(":");
  };
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

/** The blocks by time, how much was printed when, and the place in it; a click or drag goes there. */
function Scrubber({ replay }: { replay: Replaying }) {
  const lane = useRef<HTMLDivElement>(null);
  const whole = Math.max(1, replay.durationMs.value);
  const drag = (event: PointerEvent) => {
    if (event.type === "pointermove" && !event.buttons) return;
    const { left, width } = lane.current!.getBoundingClientRect();
    replay.toTime(((event.clientX - left) / width) * whole);
  };
  return (
    <div
      class="lane"
      ref={lane}
      role="slider"
      tabIndex={0}
      aria-label="Time"
      aria-valuemin={0}
      aria-valuemax={Math.round(whole / 1000)}
      aria-valuenow={Math.round(replay.atMs.value / 1000)}
      aria-valuetext={`${duration(Math.round(replay.atMs.value))} of ${duration(Math.round(whole))}`}
      onPointerDown={drag}
      onPointerMove={drag}
    >
      {replay.timeline.value && <Lanes timeline={replay.timeline.value} whole={whole} />}
      <b style={{ left: share(replay.atMs.value, whole) }} />
    </div>
  );
}

const share = (ms: number, whole: number): string => `${Math.max(0, Math.min(100, (ms / whole) * 100))}%`;

/** What does not move while it plays. */
const Lanes = memo(function Lanes({ timeline, whole }: { timeline: Timeline; whole: number }) {
  const span = (begin: number, end: number) => ({ left: share(begin, whole), width: `max(2px, ${share(end - begin, whole)})` });
  const most = Math.log2(1 + Math.max(1, ...timeline.buckets));
  const at = (ms: number) => time(timeline.begin_ts + ms);
  const { buckets } = timeline;
  const area = buckets.map((count, index) => `${index},${20 - (Math.log2(1 + count) / most) * 20}`).join(" ");
  return (
    <>
      {timeline.silences.map((one) => (
        <u key={one.cursor} style={span(one.begin_ms, one.end_ms)} title={`nothing was printed for ${duration(one.end_ms - one.begin_ms)}`} />
      ))}
      {timeline.blocks.map((block) => (
        <i
          key={block.block_id}
          class={`${sign(block)} ${block.author === "user" ? "yours" : ""}`}
          style={span(block.begin_ms, block.end_ms ?? whole)}
          title={`${at(block.begin_ms)} ${visible(block.cmd)}`}
        />
      ))}
      {[...timeline.resizes.slice(1).map((one) => [one.at_ms, `${one.cols}×${one.rows}`] as const),
        ...timeline.control.map((one) => [one.at_ms, one.state === "agent" ? "handed back" : `${visible(one.who ?? "a person")} took over`] as const),
        ...timeline.approvals.map((one) => [one.at_ms, one.outcome ? `answered: ${one.outcome}` : "a question"] as const),
      ].map(([ms, words], index) => (
        <em key={index} style={{ left: share(ms, whole) }} title={`${at(ms)} ${words}`} />
      ))}
      <svg viewBox={`0 0 ${Math.max(1, buckets.length - 1)} 20`} preserveAspectRatio="none" aria-hidden="true">
        <polygon points={`0,20 ${area} ${buckets.length - 1},20`} />
      </svg>
    </>
  );
});
