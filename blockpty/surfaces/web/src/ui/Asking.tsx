import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { asked, type Asked, REL } from "../store/asking.ts";
import { number, visible } from "../words.ts";

/** A long text is shown in pieces: a browser takes seconds for ten megabytes. */
const PIECE = 100_000;

/** Shows a text whole, with what can be done with it. */
export function Asking() {
  const what = asked.value;
  return what && <Sheet key={what} what={what} />;
}

function Sheet({ what: { title, note, text, href, actions } }: { what: Asked }) {
  const box = useRef<HTMLElement>(null);
  const [shown, setShown] = useState(PIECE);
  useLayoutEffect(() => {
    const before = document.activeElement;
    box.current!.querySelector<HTMLElement>(".button")!.focus();
    return () => before instanceof HTMLElement && before.focus({ preventScroll: true });
  }, []);
  const close = () => {
    asked.value = null;
  };
  const key = (event: KeyboardEvent) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    close();
  };
  return (
    <div class="overlay" onClick={close} onKeyDown={key}>
      <section ref={box} class="asking" role="alertdialog" aria-modal="true" aria-label={title} onClick={(event) => event.stopPropagation()}>
        <h2>{title}</h2>
        {note && <p class="muted">{note}</p>}
        <pre tabIndex={0}>{visible(text.slice(0, shown))}</pre>
        <div class="answers">
          {href && (
            <a class="button primary" href={href} rel={REL} target="_blank" onClick={close}>
              Open
            </a>
          )}
          {actions.map(({ words, act }) => (
            <button
              key={words}
              class="button"
              onClick={() => {
                close();
                act();
              }}
            >
              {words}
            </button>
          ))}
          {text.length > shown && (
            <button class="button" onClick={() => setShown(shown + PIECE)}>
              {number(Math.min(PIECE, text.length - shown))} more characters
            </button>
          )}
          <button class="button plain" onClick={close}>
            Close
          </button>
        </div>
      </section>
    </div>
  );
}
