/** Icons: one path each, drawn with the colour of the text. */
const PATHS = {
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM14 14l-3.4-3.4",
  warn: "M8 2.2 14.6 13.6H1.4zM8 6.6v3M8 11.6v.1",
  moon: "M13 9.5A5.5 5.5 0 1 1 6.5 3a4.3 4.3 0 0 0 6.5 6.5z",
  sun: "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM8 1v1.4M8 13.6V15M1 8h1.4M13.6 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1",
  plus: "M8 3v10M3 8h10",
  cross: "m4 4 8 8M12 4l-8 8",
  tick: "m3.5 8.5 3 3 6-7",
  dash: "M3.5 8h9",
  square: "M4.5 4.5h7v7h-7z",
  question: "M6 6a2 2 0 1 1 2.7 1.9c-.5.2-.7.6-.7 1.1v.5M8 11.9v.1",
  hand: "M5.5 8V3.7a1.1 1.1 0 0 1 2.2 0V7m0-4.2a1.1 1.1 0 0 1 2.2 0V7m0-3a1.1 1.1 0 0 1 2.2 0v5.2c0 3-1.6 5-4.4 5-2.2 0-3.2-1-4.4-3L2.2 9a1.1 1.1 0 0 1 1.8-1.2L5.5 9.6",
  screen: "M3 2.8h10c.7 0 1.2.5 1.2 1.2v6.6c0 .7-.5 1.2-1.2 1.2H3c-.7 0-1.2-.5-1.2-1.2V4c0-.7.5-1.2 1.2-1.2zM5.5 14h5",
  corners: "M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10",
  copy: "M7 5.5h5c.8 0 1.5.7 1.5 1.5v5c0 .8-.7 1.5-1.5 1.5H7c-.8 0-1.5-.7-1.5-1.5V7c0-.8.7-1.5 1.5-1.5zM3.2 10.5C2.5 10.5 2 10 2 9.3V3.2C2 2.5 2.5 2 3.2 2h6.1c.7 0 1.2.5 1.2 1.2",
  link: "M6.6 9.4a2.8 2.8 0 0 0 4 0l2-2a2.8 2.8 0 0 0-4-4l-.7.7M9.4 6.6a2.8 2.8 0 0 0-4 0l-2 2a2.8 2.8 0 0 0 4 4l.7-.7",
  key: "M8.6 7.4a3 3 0 1 0-1.2 1.2l5.4 5.4 1.4-1.4-1-1 1-1-2-2zM5.2 5.2h.1",
  play: "M5.5 3.5v9l7-4.5z",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  clock: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 5v3.2l2 1.3",
  diff: "M8 3v6M5 6h6M5 12.5h6",
  more: "M3.5 8h.1M8 8h.1M12.5 8h.1",
  down: "m4 6 4 4 4-4",
  up: "m4 10 4-4 4 4",
  prompt: "m6 4 4 4-4 4",
  both: "M5.5 2.5h8v8h-8zM2.5 5.5v8h8M8 5.5l1.5 1.2L8 8",
  save: "M8 2.5v7M5 7l3 3 3-3M3 13h10",
  again: "M13 8a5 5 0 1 1-1.6-3.7M13 2v3h-3",
};

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
