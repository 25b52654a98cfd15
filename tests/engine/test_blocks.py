"""The block builder: events and signals of a block that opens, prints and ends."""

from __future__ import annotations

import pytest

from blockpty.engine.blocks import BlockBuilder
from blockpty.engine.hints import MAX_HINTS, PROMPT_BEGINS, Hint
from blockpty.engine.machine_state import MachineState
from blockpty.engine.states import ShellState
from blockpty.model.entries import Entry


@pytest.fixture
def builder() -> BlockBuilder:
    return BlockBuilder(MachineState(shell=ShellState.RUNNING, ts=100))


def types(builder: BlockBuilder) -> list[str]:
    return [event.type for event in builder.taken()[0]]


def test_a_block_from_open_to_close(builder: BlockBuilder) -> None:
    builder.state.submission = {"kind": "command", "cmd": "make", "ts": 90, "author": "agent", "request": "r1"}
    builder.open(10)
    assert builder.state.submission is None
    builder.cut(25)
    builder.cut(25)  # nothing has come since
    builder.state.ts = 150
    builder.end_output(40, 2)
    builder.close(45)
    events, signals = builder.taken()
    assert [event.type for event in events] == [
        "agent_block_begin", "agent_block_delta", "agent_block_delta", "agent_block_end",
    ]  # fmt: skip
    assert [event.fields["span"] for event in events[1:3]] == [[10, 25], [25, 40]]
    record = events[-1].fields["block"]
    assert (record["cmd"], record["exit_status"], record["span"], record["duration_ms"]) == ("make", 2, [10, 40], 60)
    assert [(signal.kind, signal.offset, signal.value) for signal in signals] == [
        ("region", 10, "output"), ("region", 40, None),
    ]  # fmt: skip
    assert builder.state.block is None
    assert builder.taken() == ([], [])


def test_a_session_has_events_of_its_own(builder: BlockBuilder) -> None:
    builder.state.submission = {"kind": "session", "cmd": "sh", "ts": 90, "author": "agent"}
    builder.open(10)
    builder.close(20, status=0)
    assert types(builder) == [
        "agent_block_begin", "agent_session_begin", "agent_block_delta", "agent_session_end", "agent_block_end",
    ]  # fmt: skip
    assert builder.state.session_over


def test_an_interrupted_block_says_so(builder: BlockBuilder) -> None:
    builder.open(10)
    builder.state.interrupted = True
    builder.close(20, status=130)
    assert builder.taken()[0][-1].fields["state"] == "interrupted"


def test_a_second_part_reopens_the_block(builder: BlockBuilder) -> None:
    builder.open(10)
    builder.end_output(20, 1)
    builder.add_part(25, 30)
    builder.end_output(40, 0)
    builder.close(40)
    record = builder.taken()[0][-1].fields["block"]
    assert (record["parts"], record["exit_status"], record["span"]) == (2, 0, [10, 40])


def test_closing_nothing_emits_nothing(builder: BlockBuilder) -> None:
    builder.close(10)
    builder.close_background()
    assert builder.taken() == ([], [])


def test_hints_are_events_of_the_output_up_to_a_number(builder: BlockBuilder) -> None:
    builder.hinted(5, 9, PROMPT_BEGINS)
    assert types(builder) == []
    builder.open(10)
    builder.taken()
    for at in range(MAX_HINTS + 5):
        builder.hinted(20 + at, 21 + at, Hint("133", "C"))
    events, _ = builder.taken()
    assert [event.type for event in events] == ["hint"] * (MAX_HINTS + 1)
    assert [event.fields.get("more") for event in events[-2:]] == [None, True]


def test_notes_of_an_imported_recording_open_and_close_blocks(builder: BlockBuilder) -> None:
    builder.take_imported(Entry(10, 100, "note"), {"type": "imported", "cmd": "ls"})
    builder.take_imported(Entry(30, 200, "note"), {"type": "imported", "status": 3})
    events, _ = builder.taken()
    assert [event.type for event in events] == ["agent_block_begin", "agent_block_delta", "agent_block_end"]
    record = events[-1].fields["block"]
    assert (record["cmd"], record["exit_status"], record["span"], record["author"]) == ("ls", 3, [10, 30], "user")
