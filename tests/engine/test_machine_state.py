"""The machine's state: copies share nothing, and the stored form has the names that records already have."""

from __future__ import annotations

import json

import pytest

from blockpty.engine.authentication import Shell
from blockpty.engine.background import BackgroundText
from blockpty.engine.command_line import CommandLine
from blockpty.engine.machine import Machine
from blockpty.engine.machine_state import MachineState
from blockpty.testing import FakePty
from tests.support.machines import NONCE


def states() -> list[MachineState]:
    """Return the states between the steps of a conversation with everything in it."""
    pty = FakePty()
    pty.spawn(nonce=NONCE)
    pty.prompt()
    pty.submit("echo one")
    pty.output(b"echo one\r\n")
    pty.begin()
    pty.output(b"one\r\n")
    pty.end()
    pty.prompt()
    pty.silence()
    pty.type(b"ls")
    pty.output(b"ls")
    machine, found = Machine(), []
    for step in pty.recording.steps():
        if isinstance(step, bytes):
            machine.feed(step)
        else:
            machine.apply(step)
        found.append(machine.snapshot())
    return found


def test_there_and_back_through_json() -> None:
    for state in states():
        assert MachineState.from_dict(json.loads(json.dumps(state.to_dict()))) == state


def test_a_copy_shares_nothing_that_changes() -> None:
    for state in states():
        twin, before = state.copy(), state.to_dict()
        assert twin == state
        twin.inputs.append((0, b"x", True, True))
        twin.outer.append(Shell())
        if twin.block is not None:
            twin.block.parts += 1
        assert state.to_dict() == before


def test_renamed_fields_are_stored_under_the_names_that_records_have() -> None:
    state = MachineState(line=CommandLine(reported="ls"), unattributed=BackgroundText(undrawn=b"\xff"))
    record = state.to_dict()
    assert (record["told"], record["unasked"]) == ("ls", "\xff")  # words: on disk
    assert not {"reported", "undrawn"} & record.keys()
    assert MachineState.from_dict(record) == state


@pytest.mark.parametrize("missing", ["shell", "seq", "told", "size"])  # words: on disk
def test_what_lacks_a_field_is_refused(missing: str) -> None:
    record = MachineState().to_dict()
    del record[missing]
    with pytest.raises((KeyError, TypeError)):
        MachineState.from_dict(record)


def test_the_beginning_of_an_older_record_lacks_what_came_later() -> None:
    record = MachineState().to_dict()
    for name in ("pictures", "switching", "system", "prompt_depth", "rising"):
        del record[name]
    assert MachineState.from_dict(record) == MachineState()
