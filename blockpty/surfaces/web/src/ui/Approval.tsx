import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { isPerson } from "../api/auth.ts";
import { Problem } from "../api/http.ts";
import type { ApprovalRequest } from "../api/types.ts";
import { DEAD_MS, isMeant } from "../presses.ts";
import { now } from "../store/clock.ts";
import { answer, dismiss, verdicts } from "../store/verdicts.ts";
import { visible } from "../words.ts";
import { Icon } from "./icons.tsx";
import { Mini } from "./Mini.tsx";

interface ApprovalProps {
  asked: ApprovalRequest;
  /** All that are shown: when others come and go, this one moves. */
  among: ApprovalRequest[];
  link?: preact.ComponentChildren;
  /** Whether a picture of the screen that it concerns belongs to it, which is not seen beside it. */
  pictured?: boolean;
}

/** What waits for a person. It never takes the focus, and does nothing for a key or a click that was not meant for it. */
export function Approval({ asked, among, link, pictured = false }: ApprovalProps) {
  const [step, setStep] = useState<"first" | "always" | "why">("first");
  const [armed, setArmed] = useState(0);
  const [problem, setProblem] = useState("");
  const places = among.map((one) => `${one.conversation_id}/${one.approval_id}`).join();
  // A second tap is not meant for what took the place of the first.
  const turned = useMemo(() => performance.now(), [step]);
  const moved = useMemo(() => performance.now(), [places]);
  const reason = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const timer = setTimeout(() => setArmed(turned), DEAD_MS);
    return () => clearTimeout(timer);
  }, [turned]);
  const decide = async (by: Event, operation: "approve" | "deny", more: { scope?: string; reason?: string } = {}) => {
    if (!isMeant(Math.max(turned, moved), by)) return setProblem("That came too soon, or while a key was down. Press again.");
    setProblem("");
    try {
      await answer(asked, operation, more);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      setProblem(`${error.message}. ${error.hint}`);
    }
  };
  const approve = (scope: string) => (event: Event) => decide(event, "approve", { scope });
  const refuse = (event: Event) => decide(event, "deny");
  const key = (event: KeyboardEvent) => {
    if (event.repeat || event.ctrlKey || event.metaKey || event.altKey || !isPerson() || step !== "first") return;
    if (event.key === "y") void approve("once")(event);
    else if (event.key === "x") void refuse(event);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const isDead = armed !== turned;
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
      <pre tabIndex={0}>{asked.text === null ? "(a secret, which is not shown)" : visible(asked.text)}</pre>
      {pictured && <Mini id={asked.conversation_id} />}
      {problem && (
        <p role="alert" class="refusal">
          {problem}
        </p>
      )}
      {isPerson() && step === "first" && (
        <div class="answers">
          <button class="button primary" disabled={isDead} onClick={approve("once")}>
            Approve once <kbd aria-hidden="true">y</kbd>
          </button>
          <button class="button" disabled={isDead} onClick={approve("conversation")}>
            For this conversation
          </button>
          {asked.always !== null && (
            <button class="button" disabled={isDead} onClick={() => setStep("always")}>
              Always…
            </button>
          )}
          <span class="space" />
          <button class="button danger" disabled={isDead} onClick={refuse}>
            Refuse <kbd aria-hidden="true">x</kbd>
          </button>
          <button class="button" disabled={isDead} onClick={() => setStep("why")}>
            Refuse, and say why…
          </button>
        </div>
      )}
      {step === "always" && (
        <>
          <p>Approving it always adds this rule to the policy, for every conversation and agent:</p>
          <pre>{visible(asked.always ?? "").trimEnd()}</pre>
          <div class="answers">
            <button class="button primary" disabled={isDead} onClick={approve("always")}>
              Add the rule and approve
            </button>
            <button class="button" onClick={() => setStep("first")}>
              Back
            </button>
          </div>
        </>
      )}
      {step === "why" && (
        <form
          class="answers"
          onSubmit={(event) => {
            event.preventDefault();
            void decide(event, "deny", { reason: reason.current!.value });
          }}
        >
          <input ref={reason} maxLength={2000} placeholder="Why? The agent gets it." aria-label="Reason" autofocus />
          <button class="button danger" disabled={isDead}>
            Refuse
          </button>
          <button type="button" class="button" onClick={() => setStep("first")}>
            Back
          </button>
        </form>
      )}
    </section>
  );
}

/** The last verdict of a conversation, where it was asked for. */
export function VerdictNote({ conversation, link }: { conversation: string; link?: preact.ComponentChildren }) {
  const verdict = verdicts.value.get(conversation);
  if (!verdict) return null;
  const { asked, words, approved } = verdict;
  return (
    <section class="verdict" aria-label="Verdict">
      <Icon name={approved ? "tick" : "cross"} />
      <b>{words}</b>
      {link}
      <code>{visible(asked.text ?? asked.sentence).split("\n")[0]}</code>
      <button class="quiet" aria-label="Dismiss" onClick={() => dismiss(conversation)}>
        <Icon name="cross" />
      </button>
    </section>
  );
}
