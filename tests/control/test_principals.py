"""Principals: who may claim to type as what, and which one a call acts for."""

from __future__ import annotations

import asyncio

import pytest

from blockpty.control.principals import ENGINE, LOCAL, OWNER, Principal, Scope, acting, current
from blockpty.errors import Forbidden
from tests.support.async_tests import async_test

BOT = Principal("bot", Scope.WRITE)
ANN = Principal("ann", Scope.WRITE, types_as="user")


@pytest.mark.parametrize(
    ("principal", "claimed", "author"),
    [
        (BOT, None, "agent"), (BOT, "agent", "agent"), (ANN, None, "user"), (ANN, "user", "user"),
        (OWNER, None, "agent"), (OWNER, "user", "user"), (LOCAL, "agent", "agent"), (ENGINE, None, "engine"),
    ],
)  # fmt: skip
def test_an_author_follows_from_the_principal(principal: Principal, claimed: str | None, author: str) -> None:
    assert principal.author(claimed) == author


@pytest.mark.parametrize(
    ("principal", "claimed"), [(BOT, "user"), (ANN, "agent"), (OWNER, "engine"), (BOT, "engine"), (OWNER, "x" * 99)]
)
def test_and_cannot_be_claimed(principal: Principal, claimed: str) -> None:
    with pytest.raises(Forbidden):
        principal.author(claimed)


def test_a_program_of_a_person_can_only_become_less() -> None:
    agent = OWNER.as_agent("codex")
    assert (agent.name, agent.types_as, agent.scope) == ("owner/codex", "agent", Scope.ADMIN)
    assert not agent.is_person and OWNER.is_person and ANN.is_person and not BOT.is_person
    assert OWNER.as_agent("a\n\x1b[2J\u202eb").name == "owner/a??[2J?b"
    assert len(OWNER.as_agent("x" * 1000).name) == len("owner/") + 64 and OWNER.as_agent("").name == "owner"
    with pytest.raises(Forbidden):
        agent.as_person()
    with pytest.raises(Forbidden):
        BOT.as_person()
    assert OWNER.as_person().author() == "user"


@async_test
async def test_calls_at_once_act_each_for_its_own() -> None:
    async def one(principal: Principal) -> list[str]:
        with acting(principal):
            seen = []
            for _ in range(3):
                seen.append(current().name)
                await asyncio.sleep(0)
            return seen

    assert await asyncio.gather(one(BOT), one(ANN)) == [["bot"] * 3, ["ann"] * 3]
    assert current() is LOCAL
