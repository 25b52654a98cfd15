import type { Terminal } from "@xterm/xterm";

/** How far a stretch lies beyond another one: 0 within it, negative before it. */
const beyond = (from: number, to: number, low: number, high: number): number =>
  from < low ? from - low : to > high ? to - high : 0;

/**
 * Keep the cursor in sight where a screen is larger than its place, as long as it is: a person who pans away from it
 * looks at something else, until the cursor is in sight again.
 */
export function keepCursorInSight(terminal: Terminal, holder: HTMLElement): void {
  const screen = holder.querySelector<HTMLElement>(".xterm-screen")!;
  const places = [holder, holder.parentElement!];
  // As last drawn: what was parsed since is not seen yet, and no person can have panned away from it.
  let [x, y] = [0, 0];
  let follows = true;
  const distance = (place: HTMLElement): [number, number] => {
    const [box, seen] = [screen.getBoundingClientRect(), place.getBoundingClientRect()];
    const [width, height] = [box.width / terminal.cols, box.height / terminal.rows];
    const [left, top] = [box.left + x * width, box.top + y * height];
    const covered = parseFloat(getComputedStyle(place).scrollPaddingBottom) || 0;
    return [
      Math.ceil(beyond(left, left + width, seen.left, seen.left + place.clientWidth)),
      Math.ceil(beyond(top, top + height, seen.top, seen.top + place.clientHeight - covered)),
    ];
  };
  const look = () => {
    follows = places.every((place) => distance(place).every((one) => Math.abs(one) <= 1));
  };
  for (const place of places) place.addEventListener("scroll", look, { passive: true });
  terminal.onRender(() => {
    const { cursorX, cursorY, viewportY, baseY } = terminal.buffer.active;
    if (viewportY !== baseY) return;
    [x, y] = [Math.min(cursorX, terminal.cols - 1), cursorY];
    if (!follows) return;
    for (const place of places) {
      if (place.scrollWidth <= place.clientWidth && place.scrollHeight <= place.clientHeight) continue;
      const [left, top] = distance(place);
      // Back to the beginning of lines where that has the cursor in sight: there is the prompt.
      const back = left < 0 && place.scrollLeft + left < place.clientWidth / 2 ? -place.scrollLeft : left;
      if (back || top) place.scrollBy({ left: back, top, behavior: "instant" });
    }
  });
}
