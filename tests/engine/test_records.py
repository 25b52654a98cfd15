"""Block records, and the fields of timeline entries, which a damaged line may have in any form."""

from __future__ import annotations

from typing import Any

import pytest

from blockpty.engine.machine_state import MachineState, OpenBlock
from blockpty.engine.records import (
    exit_number,
    finished,
    input_bytes,
    is_answer,
    new_nonce,
    nonce_of,
    number,
    open_record,
    pending_record,
    word,
)
from blockpty.model.entries import Entry
from tests.support.machines import NONCE


def block(**changed: Any) -> OpenBlock:
    fields: dict[str, Any] = {
        "seq": 3, "kind": "command", "cmd": "x", "cwd": "/", "cwd_b64": None, "ts_begin": 100, "begin": 10,
        "author": "agent", "session_id": None, "request": None, "ended_at": 30, "ts_end": 150, "state": "ended",
    }  # fmt: skip
    return OpenBlock(**{**fields, **changed})


def test_a_finished_block() -> None:
    record = finished(block(exit_status=0))
    values = [record[name] for name in ("block_id", "span", "duration_ms", "state")]
    assert values == ["b3", [10, 30], 50, "ended"]
    assert finished(block(exit_status=130))["signal"] == "SIGINT"
    assert finished(block(exit_status=148))["state"] == "stopped"
    assert finished(block(exit_status=138), "darwin")["signal"] == "SIGBUS"


def test_no_span_and_no_duration_is_negative() -> None:
    record = finished(block(ended_at=5, ts_end=90))
    assert (record["span"], record["duration_ms"]) == ([10, 10], 0)


def test_blocks_that_run_or_wait() -> None:
    record = open_record(block(), MachineState(classified=17))
    assert (record.span, record.state, record.out_bytes) == ((10, None), "running", 7)
    waiting = MachineState(next_block=4, classified=77, submission={"kind": "session", "cmd": "sh", "ts": 5})
    record = pending_record(waiting)
    assert (record.block_id, record.session_id, record.span, record.ts_begin) == ("b4", "s4", (77, None), 5)


@pytest.mark.parametrize(
    ("fields", "data"),
    [({"data": "é"}, "é".encode()), ({"data_b64": "/w=="}, b"\xff"), ({}, b""), ({"data_b64": 5}, b""),
     ({"data": 5, "data_b64": "*"}, b"")],
)  # fmt: skip
def test_bytes_of_an_input(fields: dict[str, Any], data: bytes) -> None:
    assert input_bytes(fields) == data


@pytest.mark.parametrize(("value", "expected"), [(5, 5), (0, 0), (True, 9), ("5", 9), (None, 9), (2**60, 9), (1.5, 9)])
def test_numbers(value: Any, expected: int) -> None:
    assert number({"n": value}, "n", 9) == expected


def test_statuses_and_words() -> None:
    assert [exit_number({"status": status}) for status in (0, 255, 256, -1, None)] == [0, 255, None, None, None]
    assert (word({"w": "x"}, "w"), word({"w": 1}, "w"), word({}, "w")) == ("x", None, None)


def test_nonces() -> None:
    assert nonce_of({"nonce": NONCE}) == NONCE
    assert nonce_of({"nonce": "short"}) == nonce_of({}) == ""
    assert new_nonce(Entry(0, 0, "spawn", {"nonce": NONCE})) == NONCE
    assert new_nonce(Entry(0, 0, "note", {"note": {"type": "enter", "nonce": NONCE}})) == NONCE
    assert new_nonce(Entry(0, 0, "note", {"note": {"type": "leave", "nonce": NONCE}})) == ""


@pytest.mark.parametrize(
    ("author", "data", "expected"),
    [
        ("engine", b"\x1b[0n", True), ("engine", b"\x1b[12;40R", True), ("engine", b"\x1bP>|blockpty\x1b\\", True),
        ("engine", b"\x1b]11;rgb:0000/0000/0000\x07", True), ("agent", b"\x1b[0n", False), ("engine", b"ls\r", False),
        ("engine", b"\x1b[0nx", False),
    ],
)  # fmt: skip
def test_answers_of_the_terminal(author: str, data: bytes, expected: bool) -> None:
    assert is_answer(author, data) is expected
