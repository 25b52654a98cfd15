"""Results of waits, and of input that may wait as well."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from blockpty.model.wait_results import SendResult, WaitResult

WAITED = WaitResult(
    True, "matched", 90, 1, "a", {"0": "a"}, (88, 89), text="x a", text_bytes=3, tty="line", hint="q ends"
)


def test_input_alone_says_nothing_of_a_wait() -> None:
    assert SendResult(12, 3).to_dict() == {"ok": True, "cursor": 12, "accepted_bytes": 3}


@pytest.mark.parametrize(
    ("own", "waited", "hint"),
    [(None, None, None), ("a", None, "a"), (None, "b", "b"), ("a", "b", "a; b")],
)
def test_input_that_waits_says_what_the_wait_does(own: str | None, waited: str | None, hint: str | None) -> None:
    sent = SendResult(12, 3, hint=own).with_wait(replace(WAITED, hint=waited))
    assert (sent.accepted_bytes, sent.cursor, sent.hint) == (3, WAITED.cursor, hint)
    for name in WAITED.__struct_fields__:
        if name not in ("cursor", "hint", "context"):
            assert getattr(sent, name) == getattr(WAITED, name), name


def test_every_field_of_a_wait_is_one_of_such_input() -> None:
    known = set(SendResult.__struct_fields__)
    assert set(WaitResult.__struct_fields__) - known == {"context"}
    assert known - {"cursor", "accepted_bytes"} == SendResult.LEFT_OUT


def test_json_comes_back() -> None:
    assert WaitResult.from_dict(WAITED.to_dict()) == WAITED
    sent = SendResult(12, 3).with_wait(WAITED)
    assert SendResult.from_dict(sent.to_dict()) == sent
