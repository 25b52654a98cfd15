"""Approvals that wait: answered by name and digest, each once, and recorded with its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from msgspec.structs import replace

from blockpty.control.approvals import Approval
from blockpty.control.principals import LOCAL, Principal
from blockpty.errors import ApprovalDenied, BadRequest, BlockptyError, Forbidden, Halted, NotFound, Stale
from blockpty.runtime.approvals import Answer, ApprovalBook
from blockpty.runtime.controlled import ControlledTerminal
from tests.support.async_tests import async_test

PERSON = LOCAL.as_person()
AGENT = LOCAL.as_agent("bot")
DIGEST = "d" * 64
ONE = Approval("a1.1", "c1", "bot", "run", "asks", "ls", DIGEST, "no-ls", "/", None, 3, 4, "[[rule]]")


@dataclass
class Terminal:
    """What an approval needs of a conversation: its name, and its record."""

    id: str = "c1"
    notes: list[Mapping[str, Any]] = field(default_factory=list)

    def note(self, note: Mapping[str, Any]) -> None:
        self.notes.append(note)

    async def noted(self) -> None:
        await asyncio.sleep(0)


class Asked:
    """A book in which one question waits."""

    def __init__(self, approval: Approval = ONE, seconds: float = 60.0) -> None:
        self.rules: list[str] = []
        self.book = ApprovalBook(self.rules.append)
        self.terminal = Terminal(approval.conversation_id)
        channel = cast("ControlledTerminal", self.terminal)
        self.audited: list[Answer] = []
        self.call = asyncio.ensure_future(self.book.ask(channel, approval, seconds, self.audited.append))

    async def waits(self) -> None:
        # To the note that asks, which the terminal has at once.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert self.book.waiting()

    async def answered(self) -> tuple[Answer, Mapping[str, Any]]:
        answer = await self.call
        first, last = self.terminal.notes
        assert (first["type"], last["type"]) == ("approval_requested", "approval_decided")
        assert not self.book.waiting()
        assert self.audited == [answer]
        return answer, last


@pytest.mark.parametrize(("scope", "rules"), [("once", []), ("conversation", []), ("always", ["[[rule]]"])])
@async_test
async def test_what_is_approved_goes_on(scope: str, rules: list[str]) -> None:
    asked = Asked()
    await asked.waits()
    asked.book.approve(PERSON, "c1", "a1.1", DIGEST, scope)
    answer, note = await asked.answered()
    assert (answer.verdict, answer.by, answer.scope, answer.problem) == ("approved", PERSON.name, scope, None)
    assert (note["verdict"], note["scope"], note["digest"], note["principal"]) == (
        "approved", scope, DIGEST, PERSON.name,
    )  # fmt: skip
    assert asked.rules == rules


@async_test
async def test_what_is_denied_fails_with_the_reason() -> None:
    asked = Asked()
    await asked.waits()
    asked.book.deny(PERSON, "c1", "a1.1", DIGEST, "not today")
    answer, note = await asked.answered()
    assert isinstance(answer.problem, ApprovalDenied) and "not today" in answer.problem.message
    assert (note["verdict"], note["reason"]) == ("denied", "not today")


@async_test
async def test_without_an_answer_it_expires() -> None:
    answer, note = await Asked(seconds=0.0).answered()
    assert isinstance(answer.problem, BlockptyError)
    assert note["verdict"] == answer.verdict == "expired"


@async_test
async def test_a_cancelled_call_is_withdrawn() -> None:
    asked = Asked()
    await asked.waits()
    asked.call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked.call
    assert asked.terminal.notes[-1]["verdict"] == "withdrawn" and not asked.book.waiting()
    assert [one.verdict for one in asked.audited] == ["withdrawn"]


@async_test
async def test_a_refusal_that_comes_after_the_call_has_gone_is_recorded() -> None:
    """A client of MCP 2026-07-28 makes its call again with the answer; until then nothing waits."""
    asked = Asked()
    await asked.waits()
    asked.call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked.call
    with pytest.raises(Forbidden):
        asked.book.deny(AGENT, "c1", "a1.1", DIGEST)
    with pytest.raises(Stale):
        asked.book.deny(PERSON, "c1", "a1.1", "e" * 64)
    with pytest.raises(NotFound):
        asked.book.approve(PERSON, "c1", "a1.1", DIGEST)
    asked.book.deny(PERSON, "c1", "a1.1", DIGEST, "not today")
    note = asked.terminal.notes[-1]
    assert (note["verdict"], note["principal"], note["reason"]) == ("denied", PERSON.name, "not today")
    assert [one.verdict for one in asked.audited] == ["withdrawn", "denied"]
    with pytest.raises(NotFound):
        asked.book.deny(PERSON, "c1", "a1.1", DIGEST)


@async_test
async def test_halting_withdraws_what_waits_there() -> None:
    asked = Asked()
    await asked.waits()
    asked.book.withdraw(Halted("halted"), "c2")
    assert asked.book.waiting()
    asked.book.withdraw(Halted("halted"), "c1")
    answer, note = await asked.answered()
    assert isinstance(answer.problem, Halted) and note["verdict"] == "withdrawn"


@pytest.mark.parametrize(
    ("principal", "place", "digest", "scope", "problem"),
    [
        (AGENT, ("c1", "a1.1"), DIGEST, "once", Forbidden),
        (PERSON, ("c2", "a1.1"), DIGEST, "once", NotFound),
        (PERSON, ("c1", "a1.2"), DIGEST, "once", NotFound),
        (PERSON, ("c1", "a1.1"), "e" * 64, "once", Stale),
        (PERSON, ("c1", "a1.1"), DIGEST, "for ever", BadRequest),
    ],
)
@async_test
async def test_any_other_verdict_is_refused_and_it_waits_on(
    principal: Principal, place: tuple[str, str], digest: str, scope: str, problem: type[BlockptyError]
) -> None:
    asked = Asked()
    await asked.waits()
    with pytest.raises(problem):
        asked.book.approve(principal, *place, digest, scope)
    assert [approval for approval, _ in asked.book.waiting("c1")] == [ONE]
    asked.book.deny(PERSON, "c1", "a1.1", DIGEST)
    assert (await asked.answered())[0].verdict == "denied"


@async_test
async def test_only_one_verdict_counts_and_no_rule_is_made_up() -> None:
    asked = Asked(replace(ONE, always=None))
    await asked.waits()
    with pytest.raises(BadRequest, match="no rule"):
        asked.book.approve(PERSON, "c1", "a1.1", DIGEST, "always")
    asked.book.approve(PERSON, "c1", "a1.1", DIGEST)
    with pytest.raises(NotFound):
        asked.book.deny(PERSON, "c1", "a1.1", DIGEST)
    assert (await asked.answered())[0].verdict == "approved" and asked.rules == []
