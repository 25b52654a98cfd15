"""Conditions: every wire form there and back, and a hint for what is none."""

from __future__ import annotations

from typing import Any

import pytest

from blockpty.errors import BadCondition
from blockpty.model.conditions import (
    EOF,
    INPUT,
    MAX_PATTERN,
    MAX_TEXT,
    PROMPT,
    Changed,
    Condition,
    Eof,
    Idle,
    Prompt,
    Regex,
    Screen,
    Text,
    condition_to_wire,
    match_to_wire,
    parse_conditions,
)

FORMS: list[tuple[Any, Condition]] = [
    ("done", Text("done")),
    ("\udc80", Text("\udc80")),  # a byte that is no UTF-8
    ({"regex": "a+$"}, Regex("a+$")),
    ({"token": "PROMPT"}, Prompt()),
    ({"token": "EOF"}, Eof()),
    ({"idle_ms": 500}, Idle(500)),
    ({"screen": "^> "}, Screen("^> ")),
    ({"changed": "0123abcd-0-"}, Changed("0123abcd-0-")),
]


@pytest.mark.parametrize(("wire", "condition"), FORMS)
def test_there_and_back(wire: Any, condition: Condition) -> None:
    assert parse_conditions(wire) == (condition,)
    assert parse_conditions(condition) == (condition,)
    assert condition_to_wire(condition) == wire


def test_alternatives_keep_their_order() -> None:
    wires, conditions = zip(*FORMS, strict=True)
    assert parse_conditions(list(wires)) == conditions


@pytest.mark.parametrize(
    "wrong",
    [
        "", [], {}, 5, None, b"bytes", {"regex": ""}, {"regex": "x" * (MAX_PATTERN + 1)}, "x" * (MAX_TEXT + 1),
        "\ud800",
        {"token": "prompt"}, {"idle_ms": 0}, {"idle_ms": True}, {"idle_ms": 3_600_001}, {"changed": "--"},
        {"changed": "xyz"}, {"regex": "a", "screen": "b"}, [["nested"]],
    ],
)  # fmt: skip
def test_what_is_none_is_refused(wrong: Any) -> None:
    with pytest.raises(BadCondition):
        parse_conditions(wrong)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"token": "PROMT"}, "no token is called 'PROMT' (did you mean PROMPT?)"),
        ({"token": "prompt"}, "no token is called 'prompt' (did you mean PROMPT?)"),
        ({"token": "xyz"}, "no token is called 'xyz' (one of PROMPT, EOF, INPUT)"),
        ({"regx": "a"}, "no condition is called 'regx' (did you mean regex?)"),
        ({"idle": 5}, "no condition is called 'idle' (did you mean idle_ms?)"),
        ({5: 5}, "no condition is called '5' (one of regex, token, idle_ms, screen, changed, text)"),
    ],
)
def test_a_misspelt_condition_is_named_with_what_was_meant(wrong: Any, message: str) -> None:
    with pytest.raises(BadCondition) as raised:
        parse_conditions(wrong)
    assert str(raised.value) == message


def test_what_goes_to_a_server_is_the_wire_form() -> None:
    wires, conditions = zip(*FORMS, strict=True)
    assert match_to_wire(list(conditions)) == list(wires) == match_to_wire(list(wires))
    assert match_to_wire(PROMPT) == {"token": "PROMPT"} and match_to_wire((EOF,)) == [{"token": "EOF"}]
    assert match_to_wire({"regx": 1}) == {"regx": 1} and match_to_wire(INPUT) == {"token": "INPUT"}
