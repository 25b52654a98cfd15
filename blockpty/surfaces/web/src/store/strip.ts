/** Where the times of a replay stand on its strip: as they were, or with long silences as short as they are played. */
export class Strip {
  /** Times between which the scale stays the same, in order, and where they stand, in ms of the strip. */
  #times = [0];
  #places = [0];

  constructor(duration: number, silences: { begin_ms: number; end_ms: number }[], limit: number | null) {
    for (const { begin_ms: begin, end_ms: end } of limit === null ? [] : silences) {
      if (end - begin <= limit! || begin < this.#times.at(-1)!) continue;
      this.#add(begin, begin - this.#times.at(-1)!);
      this.#add(end, limit!);
    }
    this.#add(Math.max(duration, 1), Math.max(duration, 1) - this.#times.at(-1)!);
  }

  get #whole(): number {
    return this.#places.at(-1)!;
  }

  #add(time: number, length: number): void {
    this.#places.push(this.#whole + Math.max(0, length));
    this.#times.push(time);
  }

  /** Return the share of the strip at which a time stands. */
  share(ms: number): number {
    return between(ms, this.#times, this.#places) / this.#whole;
  }

  /** Return the time that stands at a share of the strip. */
  time(share: number): number {
    return between(share * this.#whole, this.#places, this.#times);
  }

  /** Return times that are as far apart as a person would divide the strip, each with its share. */
  ticks(most: number): [ms: number, share: number][] {
    const step = STEPS.find((one) => this.#whole / one <= most) ?? STEPS.at(-1)!;
    const found: [number, number][] = [];
    const end = this.#times.at(-1)!;
    for (let ms = step; ms < end; ms += step) {
      const share = this.share(ms);
      if (share > LAST) break;
      // In a silence that is not played they would stand on one another.
      if (share - (found.at(-1)?.[1] ?? 0) >= step / this.#whole / 2) found.push([ms, share]);
      else ms = Math.max(ms, Math.floor(this.time(share + step / this.#whole / 2) / step) * step - step);
      if (found.length > 2 * most) break;
    }
    return found;
  }
}

/** Beyond this share a time has no room. */
const LAST = 0.95;
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const STEPS = [SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND, 30 * SECOND, MINUTE, 2 * MINUTE, 5 * MINUTE,
  10 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 6 * HOUR, 12 * HOUR, 24 * HOUR, 168 * HOUR];

/** Return what stands in one list where a number stands in the other, both in order and equally long. */
function between(value: number, from: number[], to: number[]): number {
  let [low, high] = [0, from.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (from[middle] <= value) low = middle;
    else high = middle;
  }
  const part = from[high] === from[low] ? 0 : (value - from[low]) / (from[high] - from[low]);
  return to[low] + Math.max(0, Math.min(1, part)) * (to[high] - to[low]);
}
