import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { isMeant } from "../presses.ts";
import { lines, visible } from "../words.ts";

/** Whether a text is shown before it is pasted: it would press Enter, or has what cannot be seen. */
export const showsFirst = (text: string): boolean => /[\t\n\r]/.test(text) || visible(text) !== text;

/** Asks before a text is pasted that has several lines or control characters, with those visible. */
export function Paste({ text, answer }: { text: string; answer: (wanted: boolean) => void }) {
  const yes = useRef<HTMLButtonElement>(null);
  const [since] = useState(() => performance.now());
  useLayoutEffect(() => yes.current!.focus(), []);
  const count = text.split(/\r\n|\r|\n/).length;
  const key = (event: KeyboardEvent) => {
    if (event.key === "Escape") answer(false);
    event.stopPropagation();
  };
  return (
    <div class="overlay">
      <section class="paste" role="dialog" aria-modal="true" aria-labelledby="paste-title" onKeyDown={key}>
        <h2 id="paste-title">Paste {lines(count)}?</h2>
        <pre>{visible(text.replaceAll("\r\n", "\n")).replaceAll("\t", "<tab>\t")}</pre>
        <p class="muted">Control characters but tabs and line ends are replaced by their pictures.</p>
        <div class="answers">
          <button ref={yes} class="button primary" onClick={(event) => isMeant(since, event) && answer(true)}>
            Paste
          </button>
          <button class="button" onClick={() => answer(false)}>
            Cancel
          </button>
        </div>
      </section>
    </div>
  );
}
