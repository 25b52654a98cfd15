"""Results about who may type: control, halts, approvals, and the audit log."""

from __future__ import annotations

from typing import Any

from blockpty.model.result import Result


class ControlResult(Result, frozen=True):
    """Control of a conversation: who may type into it.

    Attributes:
        control: `agent`, `user` or `shared`, as in `status`.
        who: name of the person who has control; null when there is none.
        since: ms since 1970 of the last change; null when there was none.
        halted: who halted agents in it; null when they may type.
    """

    conversation_id: str
    control: str
    who: str | None
    since: int | None
    halted: str | None
    cursor: int


class HaltResult(Result, frozen=True):
    """Agents were halted, or released.

    Attributes:
        everywhere: whether that holds for all conversations of the home, those that are opened later too.
        conversations: {"conversation_id", "how"} for each that something was done to; `how` as `interrupt` says it,
            "released", or the code of the error that kept it from being done.
    """

    everywhere: bool
    conversations: list[dict[str, Any]]


class UserInputResult(Result, frozen=True):
    """Outcome of a request to a person: `done`, `cancelled` or `timeout`."""

    outcome: str
    cursor: int


class ApprovalsResult(Result, frozen=True):
    """Pending approvals, the oldest first.

    Attributes:
        approvals: each with `approval_id`, `conversation_id`, `principal`, `operation`, `sentence`, `text` (the exact
            input, made visible; null for a secret), `digest`, `rule`, `cwd`, `block_id`, `requested_ts`, `expires_ts`,
            and `always`: the rule that approving it always would add to the policy.
    """

    approvals: list[dict[str, Any]]


class VerdictResult(Result, frozen=True):
    """An approval was given or refused."""

    approval_id: str
    verdict: str
    scope: str | None = None


class AuditResult(Result, frozen=True):
    """Entries of the audit log, newest first, and on request what checking all of it showed.

    Attributes:
        entries: each with `format`, `seq`, `ts` (ms since 1970), `type`, `principal`, `conversation_id` and fields of
            its type.
        next: `page` of the entries before these; null: there are none.
        findings: {"line", "message"} for each place at which the log is not what was written; null when not asked for.
        head: digest of the whole log; keep it elsewhere to know this log again. Null when not asked for.
        unwritten: entries that this engine keeps in memory, because they could not be written yet.
        dropped: entries that it could not even keep.
    """

    entries: list[dict[str, Any]]
    next: int | None = None
    findings: list[dict[str, Any]] | None = None
    head: str | None = None
    unwritten: int = 0
    dropped: int = 0
