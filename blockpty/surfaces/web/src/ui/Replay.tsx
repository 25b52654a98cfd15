import { useEffect, useMemo, useRef } from "preact/hooks";
import type { Block } from "../api/types.ts";
import { bind } from "../keys.ts";
import { follow, go, toConversation, toMoment } from "../router.ts";
import { ending, sign } from "../store/blocks.ts";
import { copy } from "../store/notice.ts";
import { IDLE_LIMIT_SECONDS, Replaying } from "../store/replay.ts";
import { theme } from "../store/settings.ts";
import { XtermGlass } from "../terminal/glass.ts";
import { duration, number, time, visible } from "../words.ts";
import { Icon } from "./icons.tsx";
import { Author, StateSign } from "./Sign.tsx";

const STEP_MS = 5000;

/** What happened in a conversation, at its recorded times. */
export function ReplayPlace({ id, at, play }: { id: string; at: number; play: boolean }) {
  const replay = useMemo(() => new Replaying(id), [id]);
  const holder = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const made = new XtermGlass(holder.current!, () => undefined, theme.peek());
    const fit = new ResizeObserver(() => made.fit());
    fit.observe(holder.current!);
    replay.enter(made, at, play);
    (holder.current as any).terminal = made.terminal;
    return () => {
      fit.disconnect();
      replay.leave();
      made.close();
    };
  }, [replay]);
  const link = () => copy(location.origin + toMoment(id, replay.cursor.value), "Link to this moment copied");
  useEffect(() =>
    bind({
      playPause: () => replay.play(!replay.playing.value),
      earlier: () => replay.toTime(replay.atMs.value - STEP_MS),
      later: () => replay.toTime(replay.atMs.value + STEP_MS),
      slower: () => replay.setSpeed(-1),
      faster: () => replay.setSpeed(1),
      next: () => replay.step(1),
      previous: () => replay.step(-1),
      copyLink: link,
      toEnd: () => go(toConversation(id)),
    }),
  );
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
        <div class="glass" ref={holder} />
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
          onClick={() => replay.toCursor(block.span[0])}
        >
          <StateSign sign={sign(block)} />
          <code>{visible(block.cmd).split("\n")[0] || block.kind}</code>
          {ending(block) && <span class={`ending ${sign(block)}`}>{ending(block)}</span>}
          <span class="age">{time(block.ts_begin)}</span>
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
        <span class="muted">{replay.begin.value > 0 && time(replay.begin.value + replay.atMs.value)}</span>
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

/** The blocks by time, and the place in it; a click or drag goes there. */
function Scrubber({ replay }: { replay: Replaying }) {
  const lane = useRef<HTMLDivElement>(null);
  const whole = Math.max(1, replay.durationMs.value);
  const share = (ms: number) => `${Math.max(0, Math.min(100, (ms / whole) * 100))}%`;
  const drag = (event: PointerEvent) => {
    if (event.type === "pointermove" && !event.buttons) return;
    const { left, width } = lane.current!.getBoundingClientRect();
    replay.toTime(((event.clientX - left) / width) * whole);
  };
  const place = (block: Block) => {
    const from = block.ts_begin - replay.begin.value;
    return { left: share(from), width: `max(2px, ${share((block.ts_end ?? replay.begin.value + whole) - replay.begin.value - from)})` };
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
      {replay.begin.value > 0 &&
        replay.blocks.value.map((block) => (
          <i
            key={block.block_id}
            class={`${sign(block)} ${block.author === "user" ? "yours" : ""}`}
            style={place(block)}
            title={`${time(block.ts_begin)} ${visible(block.cmd)}`}
          />
        ))}
      <b style={{ left: share(replay.atMs.value) }} />
    </div>
  );
}
