import { useEffect, useState } from "preact/hooks";
import { bindings, handled, perform, pressed } from "../keys.ts";
import { go, toConversation } from "../router.ts";
import { inPlace } from "../store/home.ts";

interface Choice {
  id: string;
  words: string;
  hint: string;
  act: () => void;
}

const MOST = 100;
/** So many conversations have a key. */
const PLACES = 9;

const ID = "palette-box";

/** Show the palette and give it the focus, at once. */
export function showPalette(): void {
  const box = document.getElementById(ID) as HTMLInputElement;
  box.closest<HTMLElement>(".overlay")!.hidden = false;
  box.value = "";
  box.focus();
}

export type Shown = "nothing" | "everything" | "conversations";

/** Every command that can be given here, and every conversation, by name; or the conversations alone. */
export function Palette({ shown, close }: { shown: Shown; close: () => void }) {
  const open = shown !== "nothing";
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  useEffect(() => {
    setText("");
    setAt(0);
  }, [shown]);
  const choices: Choice[] = !open ? [] : [
    ...bindings
      .filter((one) => shown === "everything" && handled(one.id) && one.id !== "palette")
      .map((one) => ({ id: one.id, words: one.words, hint: pressed(one.keys[0]), act: () => perform(one.id) })),
    ...inPlace.value.map((one, at) => ({
      id: `conversation ${one.conversation_id}`,
      words: `${at < PLACES ? `${at + 1} ` : ""}go to ${one.conversation_id}`,
      hint: one.running?.cmd.split("\n")[0].slice(0, 40) ?? one.mode,
      act: () => go(toConversation(one.conversation_id)),
    })),
  ];
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = choices.filter((one) => words.every((word) => one.words.toLowerCase().includes(word))).slice(0, MOST);
  const choose = (choice: Choice | undefined) => {
    if (!choice) return;
    close();
    // When the palette is gone, so that what it does can take the focus.
    requestAnimationFrame(choice.act);
  };
  useEffect(() => document.getElementById(`palette-${at}`)?.scrollIntoView({ block: "nearest" }), [at]);
  const key = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") setAt(Math.min(found.length - 1, at + 1));
    else if (event.key === "ArrowUp") setAt(Math.max(0, at - 1));
    else if (event.key === "Enter") choose(found[at]);
    else if (event.key === "Escape") close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div class="overlay top" hidden={!open} onClick={close}>
      <section class="palette" role="dialog" aria-label="Commands" onClick={(event) => event.stopPropagation()}>
        <input
          id={ID}
          role="combobox"
          aria-expanded="true"
          aria-controls="palette"
          aria-activedescendant={found[at] ? `palette-${at}` : undefined}
          aria-label="Command or conversation"
          placeholder="Command or conversation"
          onInput={(event) => {
            setText(event.currentTarget.value);
            setAt(0);
          }}
          onKeyDown={key}
        />
        <div id="palette" role="listbox" aria-label="Commands">
          {found.map((one, index) => (
            <div
              key={one.id}
              id={`palette-${index}`}
              role="option"
              aria-selected={index === at}
              onMouseMove={() => setAt(index)}
              onClick={() => choose(one)}
            >
              <span>{one.words}</span>
              <kbd>{one.hint}</kbd>
            </div>
          ))}
          {found.length === 0 && <p class="muted">Nothing is called that.</p>}
        </div>
      </section>
    </div>
  );
}
