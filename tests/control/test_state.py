"""Who may type: every state against every kind of caller."""

from __future__ import annotations

import itertools

import pytest
from msgspec.structs import asdict

from blockpty.control.principals import ENGINE, Principal, Scope
from blockpty.control.state import AGENT, STATES, ControlState
from blockpty.errors import Halted, UserInControl

BOT = Principal("bot", Scope.WRITE)
ANN = Principal("ann", Scope.WRITE, types_as="user")
BOB = Principal("bob", Scope.WRITE, types_as="user")


def verdict(state: ControlState, principal: Principal) -> str:
    try:
        state.check(principal, principal.author())
    except (Halted, UserInControl) as problem:
        return problem.code
    return "types"


@pytest.mark.parametrize(("state", "halted"), [*itertools.product(STATES, (None, "ann"))])
def test_who_may_type(state: str, halted: str | None) -> None:
    who = None if state == "agent" else "ann"
    one = ControlState(state, who, who, 3, halted)
    agent = "halted" if halted else "user_in_control" if state == "user" else "types"
    others = "types" if state == "agent" else "user_in_control"
    assert [verdict(one, who) for who in (BOT, ANN, BOB, ENGINE)] == [agent, "types", others, "types"]


def test_a_person_who_is_only_asked_for_has_not_taken_control() -> None:
    asked = ControlState("user")
    assert [verdict(asked, who) for who in (BOT, ANN, BOB)] == ["user_in_control", "types", "types"]


def test_it_comes_back_from_the_record() -> None:
    one = ControlState("shared", "ann", "owner", 7, "bob", lease=True)
    assert ControlState.from_record(asdict(one)) == one
    assert ControlState.from_record(None) is AGENT
