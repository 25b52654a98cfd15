import { useEffect, useState } from "preact/hooks";
import { call, of } from "../api/http.ts";
import type { Conversation } from "../store/conversation.ts";
import { attempt, say } from "../store/notice.ts";
import { Icon } from "./icons.tsx";

/** Interrupt what runs; `to` is the strongest signal to go to. */
export async function stop(id: string, to: "INT" | "TERM" | "KILL" = "INT"): Promise<void> {
  await attempt(async () => {
    const { how } = await call<{ how: string | null }>(of(id, "interrupt"), { up_to: to });
    if (how === "nothing_runs") say("Nothing runs");
    else say(how === "running" ? "It still runs" : `Stopped by ${how}`, how === "running");
  });
}

/** Interrupts at once; what still runs then can be ended by stronger signals, from a menu that goes with it. */
export function Stop({ conversation }: { conversation: Conversation }) {
  const [open, setOpen] = useState(false);
  const runs = conversation.status.value?.mode !== "idle";
  useEffect(() => {
    if (!runs) setOpen(false);
  }, [runs]);
  const choose = (to: "INT" | "TERM" | "KILL") => () => {
    setOpen(runs && to === "INT");
    void stop(conversation.id, to);
  };
  const key = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || !open) return;
    setOpen(false);
    event.stopPropagation();
  };
  const left = (event: FocusEvent) => {
    if (!(event.currentTarget as HTMLElement).contains(event.relatedTarget as Node | null)) setOpen(false);
  };
  return (
    <div class="menu" onKeyDown={key} onFocusOut={left}>
      <button class="button danger" aria-expanded={open} onClick={choose("INT")}>
        <Icon name="square" /> Stop
      </button>
      {open && (
        <div class="choices" role="group" aria-label="If it still runs">
          <p class="muted">Interrupted. If it still runs:</p>
          <button class="button danger" onClick={choose("TERM")}>
            End it <span class="muted">SIGTERM</span>
          </button>
          <button class="button danger" onClick={choose("KILL")}>
            Kill it <span class="muted">SIGKILL</span>
          </button>
        </div>
      )}
    </div>
  );
}
