"""What a request refuses, and how it says so."""

from __future__ import annotations

from typing import Any

import pytest

from blockpty.errors import BadRequest
from blockpty.ops.table import OPERATIONS
from tests.support.operations import C1, PARAMS, REFUSED


@pytest.mark.parametrize(("name", "params", "named"), REFUSED)
def test_what_is_refused_names_the_parameter(name: str, params: dict[str, Any], named: str) -> None:
    with pytest.raises(BadRequest) as caught:
        OPERATIONS[name].parse(params)
    error = caught.value
    assert error.message.startswith(f"{name}: {named}: ")
    assert error.hint
    assert error.details["errors"][0]["parameter"] == named


@pytest.mark.parametrize("name", OPERATIONS)
def test_what_is_right_is_taken(name: str) -> None:
    assert OPERATIONS[name].parse(PARAMS[name]).model_dump() == PARAMS[name]


@pytest.mark.parametrize("name", ["a", "c-1", "A.b_c-9", "0", "x" * 128])
def test_names_of_conversations(name: str) -> None:
    OPERATIONS["status"].parse({"conversation_id": name})


def test_defaults_are_those_of_the_contract() -> None:
    opened = OPERATIONS["open"].parse({}).model_dump()
    assert (opened["cols"], opened["rows"], opened["persist"], opened["login"]) == (80, 24, None, False)
    assert OPERATIONS["wait_for"].parse({**C1, "match": "x"}).model_dump() == {
        "conversation_id": "c1",
        "match": "x",
        "session_id": None,
        "from_cursor": None,
        "timeout_ms": 30_000,
        "max_bytes": None,
        "stop": None,
        "view": "text",
        "echo": False,
        "context": 0,
    }
    assert OPERATIONS["kill"].parse(C1).model_dump()["signal"] == "TERM"


@pytest.mark.parametrize("signal", ["KILL", "kill", "SIGKILL", "sigkill", "SigTerm", "quit"])
def test_a_signal_may_be_named_either_way(signal: str) -> None:
    assert OPERATIONS["kill"].parse({**C1, "signal": signal}) and OPERATIONS["interrupt"].parse({**C1, "up_to": signal})


def test_a_misspelled_parameter_gets_a_suggestion() -> None:
    with pytest.raises(BadRequest) as caught:
        OPERATIONS["run"].parse({**C1, "command": "x", "timeout": 5})
    assert caught.value.hint == "did you mean timeout_ms?"


def test_several_mistakes_are_all_in_the_details() -> None:
    with pytest.raises(BadRequest, match=r"and 1 more") as caught:
        OPERATIONS["resize"].parse({**C1, "cols": 0, "rows": 0})
    assert [item["parameter"] for item in caught.value.details["errors"]] == ["cols", "rows"]


def test_a_refusal_never_repeats_a_value() -> None:
    with pytest.raises(BadRequest) as caught:
        OPERATIONS["send"].parse({**C1, "data": ["hunter2"], "author": "hunter2", "hunter": "hunter2"})
    assert "hunter2" not in str(caught.value.to_dict())
