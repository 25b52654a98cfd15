"""Approvals that wait for a person: asked, answered by name and digest, and recorded with their answers."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from blockpty.control.approvals import SCOPES, Approval
from blockpty.control.principals import Principal
from blockpty.errors import ApprovalDenied, BadRequest, BlockptyError, Forbidden, NotFound, Stale

if TYPE_CHECKING:
    from blockpty.runtime.controlled import ControlledTerminal

# So many calls that have gone can still be refused.
_MOST_WITHDRAWN: Final = 256
# Of so many questions it is kept what became of them, for who saw them wait.
_MOST_DECIDED: Final = 32


class Answer(Struct, frozen=True):
    """Outcome of an approval.

    Attributes:
        verdict: `approved`, `denied`, `expired` or `withdrawn`.
        by: whose verdict it is.
        scope: how far an approval goes.
        reason: what was said to it.
        problem: what the call that waits raises; None when it may go on.
    """

    verdict: str
    by: str
    scope: str | None = None
    reason: str | None = None
    problem: BlockptyError | None = None

    def to_dict(self, approval_id: str) -> dict[str, Any]:
        """Return what is said of it, as in the event `approval_decided`."""
        return {
            "approval_id": approval_id, "verdict": self.verdict, "scope": self.scope, "reason": self.reason,
            "principal": self.by,
        }  # fmt: skip


class _PendingApproval(Struct, frozen=True):
    approval: Approval
    channel: ControlledTerminal
    answer: asyncio.Future[Answer]
    audit: Callable[[Answer], None]

    def enter(self, decided: Answer) -> None:
        """Enter an answer in the record and in the audit log."""
        self.channel.note(
            {
                **decided.to_dict(self.approval.approval_id),
                "type": "approval_decided",
                "digest": self.approval.digest,
            }
        )
        self.audit(decided)


class ApprovalBook:
    """Pending approvals in the conversations of one engine.

    Args:
        add_rule: adds a rule to the policy of the home.
    """

    def __init__(self, add_rule: Callable[[str], None]) -> None:
        self._add_rule = add_rule
        self._pending: dict[tuple[str, str], _PendingApproval] = {}
        self._withdrawn: OrderedDict[tuple[str, str], _PendingApproval] = OrderedDict()
        self._decided: OrderedDict[tuple[str, str], Answer] = OrderedDict()

    async def ask(
        self, channel: ControlledTerminal, approval: Approval, seconds: float, audit: Callable[[Answer], None]
    ) -> Answer:
        """Enter a question in the record, wait for its answer, and enter that; cancelling withdraws the question.

        `audit`: enters an answer in the audit log.
        """
        key = channel.id, approval.approval_id
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        pending = self._pending[key] = _PendingApproval(approval, channel, answer, audit)
        decided = Answer("withdrawn", approval.principal, reason="the call was cancelled")
        try:
            channel.note(approval.to_note())
            await channel.noted()
            await asyncio.wait((answer,), timeout=seconds)
            decided = answer.result() if answer.done() else _expired(approval, seconds)
            return decided
        finally:
            del self._pending[key]
            if not answer.done() and decided.verdict == "withdrawn":
                self._withdrawn[key] = pending
                if len(self._withdrawn) > _MOST_WITHDRAWN:
                    self._withdrawn.popitem(last=False)
            self._enter(pending, decided)

    def _enter(self, pending: _PendingApproval, decided: Answer) -> None:
        self._decided[pending.channel.id, pending.approval.approval_id] = decided
        if len(self._decided) > _MOST_DECIDED:
            self._decided.popitem(last=False)
        pending.enter(decided)

    def waiting(self, conversation_id: str | None = None) -> list[tuple[Approval, ControlledTerminal]]:
        """Return what has no answer yet, the oldest first."""
        return [
            (one.approval, one.channel)
            for (name, _), one in self._pending.items()
            if conversation_id in (None, name) and not one.answer.done()
        ]

    def decided(self, conversation_id: str) -> list[dict[str, Any]]:
        """Return what became of the last questions of a conversation, the oldest first."""
        answered = [(key, one.answer.result()) for key, one in self._pending.items() if one.answer.done()]
        return [
            answer.to_dict(approval_id)
            for (name, approval_id), answer in (*self._decided.items(), *answered)
            if name == conversation_id
        ]

    def approve(
        self, principal: Principal, conversation_id: str, approval_id: str, digest: str, scope: str = "once"
    ) -> None:
        """Allow what waits. Raises Forbidden for an agent, NotFound, Stale for another digest, BadRequest.

        With the scope `always` its rule is in the policy by the time that anything is typed; raises StorageFull.
        """
        pending = self._found(principal, conversation_id, approval_id, digest)
        if scope not in SCOPES:
            raise BadRequest(f"no scope is called {scope[:20]!r}", hint=f"one of {', '.join(SCOPES)}")
        if scope == "always" and pending.approval.always is None:
            raise BadRequest("there is no rule that would allow this always", hint="approve it once")
        if scope == "always" and pending.approval.always is not None:
            self._add_rule(pending.approval.always)
        pending.answer.set_result(Answer("approved", principal.name, scope))

    def deny(
        self, principal: Principal, conversation_id: str, approval_id: str, digest: str, reason: str | None = None
    ) -> None:
        """Refuse what waits; the agent gets the reason. Raises as `approve` does.

        Where the call has gone meanwhile, the refusal is entered behind its withdrawal.
        """
        if self.is_withdrawn(conversation_id, approval_id):
            _needs_person(principal)
            gone = _of_digest(self._withdrawn[conversation_id, approval_id], digest)
            del self._withdrawn[conversation_id, approval_id]
            self._enter(gone, Answer("denied", principal.name, reason=reason))
            return
        pending = self._found(principal, conversation_id, approval_id, digest)
        said = f": {reason}" if reason else ""
        problem = ApprovalDenied(
            f"{principal.name} does not allow this{said}", hint="do it another way, or ask that person",
            details={"rule": pending.approval.rule, "by": principal.name, "reason": reason},
        )  # fmt: skip
        pending.answer.set_result(Answer("denied", principal.name, reason=reason, problem=problem))

    def is_withdrawn(self, conversation_id: str, approval_id: str) -> bool:
        """Whether the call that asked has gone, and no person has answered since."""
        return (conversation_id, approval_id) in self._withdrawn

    def withdraw(self, problem: BlockptyError, conversation_id: str | None = None) -> None:
        """Have the calls that wait fail with an error."""
        for (name, _), one in self._pending.items():
            if conversation_id in (None, name) and not one.answer.done():
                one.answer.set_result(Answer("withdrawn", "engine", reason=problem.message, problem=problem))

    def _found(self, principal: Principal, conversation_id: str, approval_id: str, digest: str) -> _PendingApproval:
        _needs_person(principal)
        pending = self._pending.get((conversation_id, approval_id))
        if pending is None or pending.answer.done():
            raise NotFound(
                f"no approval {approval_id[:40]!r} is pending in {conversation_id}",
                hint="approvals lists those that are",
            )
        return _of_digest(pending, digest)


def _needs_person(principal: Principal) -> None:
    if not principal.is_person:
        raise Forbidden(
            f"only a person may answer; {principal.name} types as an agent",
            hint="use a token that was made with --types-as user",
        )


def _of_digest(pending: _PendingApproval, digest: str) -> _PendingApproval:
    if pending.approval.digest != digest:
        raise Stale(
            "this verdict is for something other than the pending request", hint="look at approvals again",
            details={"digest": pending.approval.digest},
        )  # fmt: skip
    return pending


def _expired(approval: Approval, seconds: float) -> Answer:
    problem = ApprovalDenied(
        f"no answer came within {seconds:g} seconds: {approval.sentence}", hint="ask again when a person is there",
        details={"rule": approval.rule, "expired": True},
    )  # fmt: skip
    return Answer("expired", "engine", problem=problem)
