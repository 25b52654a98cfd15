"""How an operation takes its parameters, and what it says of wrong ones."""

from __future__ import annotations

from typing import Any

import pytest

from blockpty.errors import BadRequest
from blockpty.ops.table import OPERATIONS


@pytest.mark.parametrize(
    ("name", "params", "message", "hint"),
    [
        ("run", {"conversation_id": "c1"}, "run: command: is missing", "command: "),
        ("run", {"conversation_id": "c1", "command": "ls", "comand": 1}, "comand: no parameter has", "command?"),
        ("status", {"conversation_id": "c1", "zzz": 1}, "zzz: no parameter has this name", "are conversation_id"),
        ("resize", {"conversation_id": "c1", "cols": 80.0, "rows": 24}, "cols: Input should be a valid", "cols"),
        ("resize", {"conversation_id": "c1", "cols": True, "rows": 24}, "cols: Input should be a valid", "cols"),
        ("resize", {"conversation_id": "c1", "cols": 0, "rows": -1}, "(and 1 more)", "cols"),
    ],
)
def test_wrong_parameters(name: str, params: dict[str, Any], message: str, hint: str) -> None:
    with pytest.raises(BadRequest) as raised:
        OPERATIONS[name].parse(params)
    assert message in raised.value.message and hint in raised.value.hint
    assert raised.value.details["operation"] == name and raised.value.details["errors"]


def test_parameters_as_text() -> None:
    parsed = OPERATIONS["read"].parse_text({"conversation_id": "c1", "from_cursor": "12", "max_bytes": "5"})
    assert (parsed.from_cursor, parsed.max_bytes) == (12, 5)  # type: ignore[attr-defined]
    for text in ("80.0", "0x10", "1_000", " 5", "five", ""):
        with pytest.raises(BadRequest):
            OPERATIONS["read"].parse_text({"conversation_id": "c1", "from_cursor": text})


def test_every_operation_says_what_it_does() -> None:
    for operation in OPERATIONS.values():
        first = operation.doc.partition("\n")[0]
        assert first.endswith((".", ":")) and len(first) > 10, operation.name
