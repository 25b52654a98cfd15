"""Blocks from events: by their number, so that one that comes twice changes nothing."""

from __future__ import annotations

from typing import Any

from blockpty.model.block import Block, ListedBlock
from blockpty.model.events import Event
from blockpty.surfaces.view.blocks import FILTERS, Blocks
from blockpty.surfaces.view.words import age, ending, sign


def block(number: int, **changes: Any) -> Block:
    values: dict[str, Any] = {
        "block_id": f"b{number}", "seq": number, "kind": "command", "cmd": f"echo {number}", "cwd": "/",
        "cwd_b64": None, "ts_begin": 1, "ts_end": 2, "duration_ms": 1, "state": "ended", "exit_status": 0,
        "signal": None, "span": (0, 5), "out_path": None, "out_bytes": 5, "parts": 1, "author": "agent",
    }  # fmt: skip
    return Block(**{**values, **changes})


def event(seq: int, type_: str, **fields: Any) -> Event:
    return Event(seq, 1, 10, type_, fields)


def begin(seq: int, number: int) -> Event:
    return event(
        seq, "agent_block_begin", block_id=f"b{number}", block_seq=number, kind="command", cmd="x", cwd="/",
        author="agent",
    )  # fmt: skip


def test_a_block_begins_grows_and_ends() -> None:
    blocks = Blocks(next=5)
    assert blocks.take(begin(5, 1)) == "b1"
    assert [(one.state, one.span) for one in blocks.list] == [("running", (10, None))]
    assert blocks.take(event(6, "agent_block_delta", block_id="b1", span=[10, 30])) == "b1"
    assert blocks.list[0].out_bytes == 20
    assert blocks.take(event(7, "agent_block_end", block_id="b1", block=block(1).to_dict())) == "b1"
    assert blocks.list == [block(1)] and blocks.next == 8


def test_an_event_that_comes_twice_changes_nothing() -> None:
    blocks = Blocks()
    first, ended = begin(0, 1), event(1, "agent_block_end", block_id="b1", block=block(1).to_dict())
    for one in (first, ended):
        blocks.take(one)
    assert [blocks.take(one) for one in (first, ended)] == [None, None]
    assert blocks.list == [block(1)]


def test_a_beginning_does_not_undo_an_end_that_was_read_already() -> None:
    blocks = Blocks()
    blocks.put([block(2), block(1)])
    blocks.take(begin(0, 2))
    assert [(one.block_id, one.state) for one in blocks.list] == [("b1", "ended"), ("b2", "ended")]


def test_filters() -> None:
    found = [
        block(1), block(2, exit_status=1), block(3, duration_ms=10_000), block(4, author="user"),
        block(5, state="running", exit_status=None, duration_ms=None), block(6, kind="session"),
        ListedBlock(**{**block(7).to_dict(), "span": (0, 5)}, screen=True),
        ListedBlock(**{**block(8).to_dict(), "span": (0, 5)}, screen=False),
    ]  # fmt: skip
    assert {name: [one.seq for one in found if passes(one)] for name, passes in FILTERS.items()} == {
        "all": [1, 2, 3, 4, 5, 6, 7, 8], "failed": [2], "slow": [3], "agent": [1, 2, 3, 5, 6, 7, 8], "you": [4],
        "screen": [6, 7],
    }  # fmt: skip


def test_states_in_words() -> None:
    cases = [
        (block(1), "ok", ""), (block(1, exit_status=2), "fail", "exit 2"),
        (block(1, exit_status=137, signal="SIGKILL"), "fail", "killed (SIGKILL)"),
        (block(1, exit_status=130, signal="SIGINT", state="interrupted"), "stop", "interrupted"),
        (block(1, exit_status=None), "unknown", "unknown"), (block(1, state="running", exit_status=None), "run", ""),
        (block(1, state="stopped", exit_status=148, signal="SIGTSTP"), "stop", "stopped"),
    ]  # fmt: skip
    assert [(sign(one), ending(one)) for one, _, _ in cases] == [(mark, words) for _, mark, words in cases]
    assert [age(ms) for ms in (0, 5_000, 130_000, 7_200_000, 200_000_000)] == ["now", "5 s", "2 m", "2 h", "2 d"]
