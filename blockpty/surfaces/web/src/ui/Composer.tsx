import { useRef, useState } from "preact/hooks";
import { isPerson, mayType } from "../api/auth.ts";
import { call, of } from "../api/http.ts";
import type { Conversation } from "../store/conversation.ts";
import { attempt } from "../store/notice.ts";
import { Icon } from "./icons.tsx";

/** Runs a command as a block. What is typed here stays when it could not be run. */
export function Composer({ conversation }: { conversation: Conversation }) {
  const box = useRef<HTMLTextAreaElement>(null);
  const [busy, setBusy] = useState(false);
  const status = conversation.status.value;
  if (!mayType()) return <div class="composer muted">This browser may only look.</div>;
  if (status?.mode === "exited") return <div class="composer muted">The shell has ended.</div>;
  const live = conversation.state.value === "live";
  const running = status !== null && status.mode !== "idle";
  const run = async () => {
    const command = box.current!.value;
    if (!command.trim() || !live || busy) return;
    setBusy(true);
    const body = { command, queue: isPerson() && running };
    if (await attempt(() => call(of(conversation.id, "exec_block"), body))) box.current!.value = "";
    setBusy(false);
  };
  const key = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    void run();
  };
  const hint = !live ? "Not connected" : running ? "Runs when what runs now has ended" : "Run a command here";
  return (
    <div class="composer">
      <Icon name="prompt" />
      <textarea
        ref={box}
        rows={1}
        placeholder={hint}
        aria-label="Command"
        autocomplete="off"
        spellcheck={false}
        readOnly={busy}
        onKeyDown={key}
      />
      <kbd>Enter</kbd>
    </div>
  );
}
