import { useRef } from "preact/hooks";

interface Filter {
  name: string;
  words: string;
  kind: "text" | "number" | "time" | "choice";
  choices?: [string, string][];
}

/** Those of the operation `search`, by their names, which stand in the address as well. */
const FILTERS: Filter[] = [
  { name: "conversation_id", words: "Conversation", kind: "text" },
  { name: "part", words: "Looked for in", kind: "choice", choices: [["", "output and command"], ["output", "output"], ["command", "command"]] },
  { name: "author", words: "Submitted by", kind: "choice", choices: [["", "anyone"], ["agent", "an agent"], ["user", "a person"], ["engine", "the engine"]] },
  {
    name: "kind", words: "Kind of block", kind: "choice",
    choices: [["", "any"], ["command", "command"], ["session", "session"], ["user", "typed by a person"], ["background", "background output"]],
  },
  { name: "cwd", words: "Directory, or below", kind: "text" },
  { name: "exit_status", words: "Exit status", kind: "number" },
  { name: "min_duration_ms", words: "Took at least (ms)", kind: "number" },
  { name: "since", words: "Began at or after", kind: "time" },
  { name: "until", words: "Began before", kind: "time" },
  { name: "ignore_case", words: "Upper and lower case", kind: "choice", choices: [["", "as usual"], ["true", "the same"], ["false", "different"]] },
];
const PAUSE_MS = 150;

/** Put the filters of an address into a question. */
export function ask(question: URLSearchParams, params: URLSearchParams): void {
  for (const { name } of FILTERS) if (params.get(name)) question.set(name, params.get(name)!);
}

export const chosenFilters = (params: URLSearchParams): number => FILTERS.filter(({ name }) => params.get(name)).length;

/** A time in ms as an input has it: local, without seconds. */
function local(ms: string): string {
  const at = new Date(Number(ms));
  if (!ms || Number.isNaN(at.getTime())) return "";
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

export function SearchFilters({ params, change }: { params: URLSearchParams; change: (name: string, value: string) => void }) {
  const timer = useRef(0);
  const soon = (name: string, value: string) => {
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => change(name, value), PAUSE_MS);
  };
  return (
    <div class="filters">
      {FILTERS.map(({ name, words, kind, choices }) => {
        const value = params.get(name) ?? "";
        return (
          <label key={name}>
            <span>{words}</span>
            {choices ? (
              <select value={value} onChange={(event) => change(name, event.currentTarget.value)}>
                {choices.map(([one, said]) => (
                  <option key={one} value={one}>
                    {said}
                  </option>
                ))}
              </select>
            ) : kind === "time" ? (
              <input
                type="datetime-local"
                defaultValue={local(value)}
                onChange={({ currentTarget: { value: at } }) => change(name, at && `${new Date(at).getTime()}`)}
              />
            ) : (
              <input inputMode={kind === "number" ? "numeric" : "text"} defaultValue={value} onInput={(event) => soon(name, event.currentTarget.value)} />
            )}
          </label>
        );
      })}
    </div>
  );
}
