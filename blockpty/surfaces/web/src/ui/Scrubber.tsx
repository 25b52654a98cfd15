import { useRef, useState } from "preact/hooks";
import type { Timeline } from "../api/types.ts";
import { memo } from "../memo.ts";
import { sign } from "../store/blocks.ts";
import type { Replaying } from "../store/replay.ts";
import type { Strip } from "../store/strip.ts";
import { clock, duration, number, time, visible } from "../words.ts";

const TICKS = 10;

const percent = (share: number): string => `${share * 100}%`;

/** The blocks by time, how much was printed when, and the place in it; a click or drag goes there. */
export function Scrubber({ replay }: { replay: Replaying }) {
  const lane = useRef<HTMLDivElement>(null);
  const [pointed, setPointed] = useState<number | null>(null);
  const { value: timeline } = replay.timeline;
  const { value: strip } = replay.strip;
  const whole = replay.durationMs.value;
  const point = (event: PointerEvent) => {
    const { left, width } = lane.current!.getBoundingClientRect();
    const ms = strip.time(Math.max(0, Math.min(1, (event.clientX - left) / width)));
    setPointed(ms);
    if (event.type === "pointerdown" || event.buttons) replay.toTime(ms);
  };
  const at = strip.share(replay.atMs.value);
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
      onPointerDown={point}
      onPointerMove={point}
      onPointerLeave={() => setPointed(null)}
    >
      {timeline && <Lanes timeline={timeline} strip={strip} screens={replay.screens.value} />}
      <b style={{ left: percent(at) }} />
      <span class={`label ${at > 0.5 ? "left" : ""}`} style={{ left: percent(at) }}>
        {visible(replay.current.value?.cmd ?? "").split("\n")[0]}
      </span>
      {pointed !== null && timeline && <Pointed timeline={timeline} ms={pointed} share={strip.share(pointed)} />}
    </div>
  );
}

/** What is under the pointer. */
function Pointed({ timeline, ms, share }: { timeline: Timeline; ms: number; share: number }) {
  const block = timeline.blocks.findLast((one) => one.begin_ms <= ms && (one.end_ms ?? Infinity) >= ms);
  const known = [...timeline.blocks, ...timeline.silences].filter((one) => one.begin_ms <= ms).map((one) => one.cursor);
  return (
    <span class={`label pointed ${share > 0.5 ? "left" : ""}`} style={{ left: percent(share) }}>
      {time(timeline.begin_ts + ms)} · {clock(ms)}
      {block && ` · ${visible(block.cmd).split("\n")[0] || block.kind}`} · cursor from {number(Math.max(0, ...known))}
    </span>
  );
}

/** What does not move while it plays. */
const Lanes = memo(({ timeline, strip, screens }: { timeline: Timeline; strip: Strip; screens: ReadonlySet<string> }) => {
  const span = (begin: number, end: number) => {
    const [left, right] = [strip.share(begin), strip.share(end)];
    return { left: percent(left), width: `max(2px, ${percent(right - left)})` };
  };
  const at = (ms: number) => time(timeline.begin_ts + ms);
  const { buckets, duration_ms: whole } = timeline;
  const most = Math.log2(1 + Math.max(1, ...buckets));
  const area = buckets.map((count, index) => {
    const x = strip.share((index / Math.max(1, buckets.length - 1)) * whole) * 1000;
    return `${x},${20 - (Math.log2(1 + count) / most) * 20}`;
  });
  return (
    <>
      {timeline.blocks.map((block) => (
        <i
          key={block.block_id}
          class={`${sign(block)} ${block.author === "user" ? "yours" : ""} ${block.kind === "session" || screens.has(block.block_id) ? "full" : ""}`}
          style={span(block.begin_ms, block.end_ms ?? whole)}
          title={`${at(block.begin_ms)} ${visible(block.cmd)}`}
        />
      ))}
      {timeline.silences.map((one) => (
        <u key={one.cursor} style={span(one.begin_ms, one.end_ms)} title={`nothing was printed for ${duration(one.end_ms - one.begin_ms)}`} />
      ))}
      {[...timeline.resizes.slice(1).map((one) => [one.at_ms, `${one.cols}×${one.rows}`] as const),
        ...timeline.control.map((one) => [one.at_ms, one.state === "agent" ? "handed back" : `${visible(one.who ?? "a person")} took over`] as const),
        ...timeline.approvals.map((one) => [one.at_ms, one.outcome ? `answered: ${one.outcome}` : "a question"] as const),
      ].map(([ms, words], index) => (
        <em key={index} style={{ left: percent(strip.share(ms)) }} title={`${at(ms)} ${words}`} />
      ))}
      <svg viewBox="0 0 1000 20" preserveAspectRatio="none" aria-hidden="true">
        <polygon points={`0,20 ${area.join(" ")} 1000,20`} />
      </svg>
      {strip.ticks(TICKS).map(([ms, share]) => (
        <s key={ms} style={{ left: percent(share) }}>
          {clock(ms)}
        </s>
      ))}
    </>
  );
});
