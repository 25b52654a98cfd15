"""Shells inside shells: whose marks are accepted, and what becomes of their blocks."""

from __future__ import annotations

from typing import Any

import pytest

from blockpty.engine.authentication import Shell
from blockpty.engine.machine_state import MachineState
from blockpty.engine.marks import Mark, parse_mark
from blockpty.engine.states import ShellState, Stimulus
from blockpty.model.events import Event
from blockpty.testing import FakePty, derive, every_split
from tests.support.machines import NONCE, play

INNER = "E" * 22
DEEPER = "F" * 22


def running_su(command: str = "su") -> FakePty:
    """Return a terminal in which a command runs that starts another shell."""
    pty = FakePty()
    pty.spawn(nonce=NONCE)
    pty.prompt()
    pty.submit(command)
    pty.begin()
    return pty


def inside() -> FakePty:
    """Return a terminal in which a command has started a shell that was entered and shows its prompt."""
    pty = running_su("ssh far")
    pty.output(b"far$ ")
    pty.enter(INNER)
    pty.end()
    pty.prompt()
    return pty


def blocks(events: list[Event]) -> list[tuple[str, str, int | None, str | None]]:
    ends = [event.fields["block"] for event in events if event.type == "agent_block_end"]
    return [(block["cmd"], block["state"], block["exit_status"], block["degraded"]) for block in ends]


def test_blocks_of_both_shells() -> None:
    pty = inside()
    pty.run("true", b"there\r\n", 4)
    pty.submit("exit 7")
    pty.begin()
    pty.output(b"logout\r\n")
    pty.leave()
    pty.end(7)
    pty.prompt(7)
    pty.run("false", b"", 1)
    machine, events = play(pty)
    assert blocks(events) == [
        ("ssh far", "ended", None, "shell_entered"),
        ("true", "ended", 4, None),
        ("exit 7", "shell_exited", 7, None),
        ("false", "ended", 1, None),
    ]
    assert machine.state.outer == [] and machine.state.shell is ShellState.IDLE
    assert not [event for event in events if event.type in ("anomaly", "spoofed_mark")]


def test_any_chunking_derives_the_same() -> None:
    pty = inside()
    pty.run("true", b"there\r\n", 4)
    pty.leave()
    pty.end(7)
    pty.prompt(7)
    whole = derive(pty.recording, ())
    for cuts in every_split(bytes(pty.recording.stream)):
        assert derive(pty.recording, cuts) == whole


def test_two_levels_left_at_once() -> None:
    pty = inside()
    pty.submit("su")
    pty.begin()
    pty.enter(DEEPER, pid=78)
    pty.prompt()
    pty.submit("sleep 9")
    pty.begin()
    pty.leave()
    pty.leave()
    pty.end(255)
    pty.prompt(255)
    machine, events = play(pty)
    assert blocks(events)[-1] == ("sleep 9", "shell_exited", 255, None)
    assert [event.fields["level"] for event in events if event.type == "shell_left"] == [0]
    assert machine.state.current.nonce == NONCE


@pytest.mark.parametrize("fields", [{"s": 1}, {"s": 9}, {"i": 5}, {"n": "G" * 22}])
def test_only_the_next_mark_of_an_outer_shell_ends_the_inner(fields: dict[str, object]) -> None:
    pty = inside()
    before = play(pty)[1]
    pty.leave()
    pty.seq += 1
    pty.output(pty.mark("END", x=0, **fields))
    machine, events = play(pty)
    assert [event.type for event in events[len(before) :]] == ["spoofed_mark"]
    assert machine.state.current.nonce == INNER


@pytest.mark.parametrize("wrong", [0, 1])
def test_an_outer_shell_says_where_the_output_of_the_inner_one_ends(wrong: int) -> None:
    """zsh does so before END, and what it prints between the two is no output; with another number it is a forgery."""
    pty = inside()
    pty.submit("exit 7")
    pty.begin()
    pty.output(b"logout\r\n")
    end = len(pty.recording.stream)
    pty.leave()
    pty.seq += wrong
    pty.output(pty.mark("OUT_END"))
    pty.seq -= wrong
    pty.output(b"   \r")
    pty.end(7)
    pty.prompt(7)
    _, events = play(pty)
    block = [event.fields["block"] for event in events if event.type == "agent_block_end"][-1]
    assert (block["cmd"], block["state"], block["exit_status"]) == ("exit 7", "shell_exited", 7)
    assert (block["span"][1] == end) is not bool(wrong)
    assert [event.fields["reason"] for event in events if event.type == "spoofed_mark"] == ["nonce"] * wrong


def test_only_who_knows_the_nonce_says_hello() -> None:
    pty = running_su()
    pty.enter(INNER, hello=False)
    pty.output(pty.mark("HELLO", n="H" * 22, i=5))
    pty.output(pty.mark("PROMPT", i=5, p=1, x=0))
    machine, _ = play(pty)
    assert (machine.state.current.mark_id, machine.state.shell) == ("", ShellState.STARTING)
    pty.output(pty.mark("HELLO", f="nofs"))
    pty.output(pty.mark("HELLO", i=6))
    machine, _ = play(pty)
    assert (machine.state.current.mark_id, machine.state.current.features) == ("77", "nofs")


@pytest.mark.parametrize(
    ("silence", "lost"),
    [
        ({"foreground": "shell", "depth": 6000}, True),
        ({"foreground": "shell", "depth": 7000}, False),
        ({"foreground": "shell", "depth": None}, False),
        ({"foreground": "shell"}, False),
        ({"foreground": "child", "depth": 6000}, False),
    ],
    ids=["where the prompt waits", "elsewhere", "unknown", "not written", "a program"],
)
@pytest.mark.parametrize("prompt", [6000, None])
def test_a_shell_that_waits_where_its_prompt_does_has_lost_its_hooks(
    silence: dict[str, Any], lost: bool, prompt: int | None
) -> None:
    pty = FakePty()
    pty.spawn(nonce=NONCE)
    pty.prompt()
    pty.silence(icanon=False, echo=False, foreground="shell", depth=prompt)
    pty.submit("unset PROMPT_COMMAND PS0; PS1='> '")
    pty.begin()
    pty.silence(icanon=False, echo=False, **silence)
    machine, events = play(pty)
    assert machine.state.hooks_lost is (lost and prompt is not None)
    assert [event.fields["reason"] for event in events if event.type == "anomaly"] == ["hooks_lost"] * (
        machine.state.hooks_lost
    )
    pty.spawn(nonce=INNER)
    assert (play(pty)[0].state.prompt_depth, play(pty)[0].state.hooks_lost) == (None, False)


@pytest.mark.parametrize("busy", [True, False])
def test_a_program_that_has_replaced_the_shell_may_be_about_to_end(busy: bool) -> None:
    pty = FakePty()
    pty.spawn(nonce=NONCE)
    pty.prompt()
    pty.submit("exec true")
    pty.begin()
    pty.entry("silence", ms=25, icanon=True, echo=True, foreground="shell", replaced=True, busy=busy)
    assert play(pty)[0].state.hooks_lost is not busy


def test_a_prompt_that_is_marked_shows_that_the_hooks_are_there() -> None:
    pty = FakePty()
    pty.spawn(nonce=NONCE)
    pty.prompt()
    pty.silence(icanon=False, echo=False, foreground="shell", depth=6000)
    pty.submit("read x")
    pty.begin()
    pty.silence(icanon=False, echo=False, foreground="shell", depth=6000)
    assert play(pty)[0].state.hooks_lost
    # END was never written; the prompt says so by its number.
    pty.seq += 1
    pty.prompt()
    machine, _ = play(pty)
    assert (machine.state.hooks_lost, machine.state.shell) == (False, ShellState.IDLE)
    assert (machine.state.current.integrity_reason or "").startswith("end_lost")


def test_a_shell_that_still_computes_its_prompt_has_not_lost_it() -> None:
    pty = FakePty()
    pty.spawn(nonce=NONCE)
    pty.prompt()
    pty.submit("true")
    pty.begin()
    pty.end()
    pty.silence(icanon=False, echo=False, foreground="shell", busy=True)
    machine, _ = play(pty)
    assert (machine.state.shell, machine.state.current.integrity_reason) == (ShellState.RETURNING, None)
    pty.silence(icanon=False, echo=False, foreground="shell")
    machine, _ = play(pty)
    assert machine.state.shell is ShellState.IDLE
    assert (machine.state.current.integrity_reason or "").startswith("prompt_lost")


@pytest.mark.parametrize("nested", [True, False])
def test_hooks_that_did_not_show(nested: bool) -> None:
    pty = running_su()
    pty.enter(INNER, nested=nested, hello=False)
    pty.entry("note", note={"type": "leave", "nonce": INNER})
    machine, _ = play(pty)
    assert machine.state.shell is ShellState.RUNNING
    assert machine.state.hooks_lost is not nested
    assert machine.state.current.nonce == (NONCE if nested else INNER)
    if nested:
        pty.leave()
        pty.end(2)
        pty.prompt(2)
        assert play(pty)[0].state.shell is ShellState.IDLE


def test_a_leave_for_a_shell_that_came_is_too_late() -> None:
    pty = inside()
    pty.entry("note", note={"type": "leave", "nonce": INNER})
    assert play(pty)[0].state.current.nonce == INNER


def test_state_round_trip() -> None:
    state = play(inside())[0].snapshot()
    again = MachineState.from_dict(state.to_dict())
    assert again == state and again.outer is not state.outer
    twin = state.copy()
    twin.outer.clear()
    assert len(state.outer) == 1


def shell(*, gap: bool) -> Shell:
    """Return a shell that has said who it is, and was at its second prompt."""
    return Shell(nonce=NONCE, mark_id="7", name="bash", seq=5, count=2, prompt=2, gap=gap)


def mark(kind: str, seq: int, count: int, prompt: int = 2) -> Mark:
    found = parse_mark(f"__{kind}__;n={NONCE};i=7;s={seq};c={count};p={prompt};x=0".encode())
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("late", "meaning"),
    [
        (mark("END", 11, 5), Stimulus.END),
        (mark("BEGIN", 12, 6), Stimulus.BEGIN),
        (mark("PROMPT", 11, 5, 4), Stimulus.PROMPT),
    ],
)
def test_only_behind_a_gap_any_later_mark_is_the_next_one(late: Mark, meaning: Stimulus) -> None:
    assert shell(gap=False).authenticate(late, ShellState.RUNNING) == "sequence"
    assert shell(gap=True).authenticate(late, ShellState.RUNNING) is meaning


@pytest.mark.parametrize(
    "old", [mark("END", 5, 2), mark("BEGIN", 4, 2), mark("PROMPT", 5, 2, 1), mark("PROMPT", 4, 2, 3)]
)
def test_what_was_used_is_refused_behind_a_gap_too(old: Mark) -> None:
    assert shell(gap=True).authenticate(old, ShellState.RUNNING) == "sequence"
