import { useEffect, useRef, useState } from "preact/hooks";
import { isPerson } from "../api/auth.ts";
import { call, of } from "../api/http.ts";
import type { ApprovalRequest } from "../api/types.ts";
import { now } from "../store/clock.ts";
import { attempt } from "../store/notice.ts";
import { visible } from "../words.ts";
import { Icon } from "./icons.tsx";

const DEAD_MS = 400;

/** What waits for a person. It never takes the focus, and its buttons do nothing in its first moment. */
export function Approval({ asked, link }: { asked: ApprovalRequest; link?: preact.ComponentChildren }) {
  const [armed, setArmed] = useState(false);
  const [refusing, setRefusing] = useState(false);
  const [widening, setWidening] = useState(false);
  const reason = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const timer = setTimeout(() => setArmed(true), DEAD_MS);
    return () => clearTimeout(timer);
  }, []);
  const decide = (operation: string, more: object) => {
    if (!armed || !document.hasFocus()) return;
    const { approval_id, digest } = asked;
    void attempt(() => call(of(asked.conversation_id, operation), { approval_id, digest, ...more }));
  };
  const approve = (scope: string) => decide("approve", { scope });
  const key = (event: KeyboardEvent) => {
    if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || !isPerson() || refusing || widening) return;
    if (event.key === "y") approve("once");
    else if (event.key === "x") decide("deny", {});
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const left = Math.max(0, Math.round((asked.expires_ts - now.value) / 1000));
  return (
    <section class="ask" role="alertdialog" aria-label="Approval wanted" tabIndex={-1} onKeyDown={key}>
      <header>
        <Icon name="warn" />
        <b>The agent wants to {asked.operation.startsWith("send") ? "type" : "run a command"}</b>
        {link}
        <span class="muted">
          refused in {Math.floor(left / 60)}:{String(left % 60).padStart(2, "0")} without an answer
        </span>
      </header>
      <p>
        {visible(asked.sentence)} Rule <b>{visible(asked.rule)}</b>
        {asked.cwd && (
          <>
            {" · in "}
            <code>{visible(asked.cwd)}</code>
          </>
        )}
      </p>
      <pre>{asked.text === null ? "(a secret, which is not shown)" : visible(asked.text)}</pre>
      {isPerson() && !refusing && !widening && (
        <div class="answers">
          <button class="button primary" disabled={!armed} onClick={() => approve("once")}>
            Approve once <kbd aria-hidden="true">y</kbd>
          </button>
          <button class="button" disabled={!armed} onClick={() => approve("conversation")}>
            For this conversation
          </button>
          {asked.always !== null && (
            <button class="button" disabled={!armed} onClick={() => setWidening(true)}>
              Always…
            </button>
          )}
          <span class="space" />
          <button class="button danger" disabled={!armed} onClick={() => decide("deny", {})}>
            Refuse <kbd aria-hidden="true">x</kbd>
          </button>
          <button class="button" disabled={!armed} onClick={() => setRefusing(true)}>
            Refuse, and say why…
          </button>
        </div>
      )}
      {widening && (
        <>
          <p>Approving it always adds this rule to the policy, for every conversation and agent:</p>
          <pre>{visible(asked.always ?? "").trimEnd()}</pre>
          <div class="answers">
            <button class="button primary" onClick={() => approve("always")}>
              Add the rule and approve
            </button>
            <button class="button" onClick={() => setWidening(false)}>
              Back
            </button>
          </div>
        </>
      )}
      {refusing && (
        <form
          class="answers"
          onSubmit={(event) => {
            event.preventDefault();
            decide("deny", { reason: reason.current!.value });
          }}
        >
          <input ref={reason} maxLength={2000} placeholder="Why? The agent gets it." aria-label="Reason" autofocus />
          <button class="button danger">Refuse</button>
          <button type="button" class="button" onClick={() => setRefusing(false)}>
            Back
          </button>
        </form>
      )}
    </section>
  );
}
