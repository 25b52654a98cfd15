import { type Column, setWidth } from "../store/layout.ts";

const STEP = 16;

/** The edge of a column, which is dragged, or moved by arrow keys; twice clicked, the column is as wide as usual. */
export function Splitter({ column, words }: { column: Column; words: string }) {
  const drag = (event: PointerEvent) => {
    const edge = event.currentTarget as HTMLElement;
    if (edge.hasPointerCapture(event.pointerId)) setWidth(column, column === "side" ? event.clientX : innerWidth - event.clientX);
  };
  const key = (event: KeyboardEvent) => {
    const by = event.key === "ArrowRight" ? STEP : event.key === "ArrowLeft" ? -STEP : 0;
    if (!by) return;
    const { width } = document.querySelector(`.${column}`)!.getBoundingClientRect();
    setWidth(column, column === "side" ? width + by : width - by);
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div
      class={`splitter of-${column}`}
      role="separator"
      aria-orientation="vertical"
      aria-label={words}
      aria-valuenow={50}
      tabIndex={0}
      onPointerDown={(event) => (event.currentTarget as HTMLElement).setPointerCapture(event.pointerId)}
      onPointerMove={drag}
      onDblClick={() => setWidth(column, null)}
      onKeyDown={key}
    />
  );
}
