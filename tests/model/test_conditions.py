"""Conditions: every wire form there and back, and a hint for what is none."""

from __future__ import annotations

from typing import Any

import pytest

from blockpty.errors import BadCondition
from blockpty.model.conditions import (
    MAX_PATTERN,
    MAX_TEXT,
    Changed,
    Condition,
    Eof,
    Idle,
    Pattern,
    Prompt,
    Screen,
    Text,
    condition_to_wire,
    parse_conditions,
)

FORMS: list[tuple[Any, Condition]] = [
    ("done", Text("done")),
    ("\udc80", Text("\udc80")),  # a byte that is no UTF-8
    ({"regex": "a+$"}, Pattern("a+$")),
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
