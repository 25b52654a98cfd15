"""The table: complete where it must be, and every pair it does not list is an anomaly that changes nothing."""

from __future__ import annotations

import itertools

import pytest

from blockpty.engine.states import TRANSITIONS, Action, ShellState, Stimulus, diagram
from blockpty.testing import FakePty
from tests.support.machines import ECHO, NONCE, at_prompt, in_state, play

# The END of a line that never ran means something of its own only where another line was submitted, the note that a
# shell did not take the hooks only while they are awaited, and the PS2 of a submitted line only behind a prompt.
ONLY_IN = {
    Stimulus.OTHER_END: {ShellState.SUBMITTED},
    Stimulus.ENTRY_ABANDONED: {ShellState.STARTING},
    Stimulus.LOADED: {ShellState.IDLE, ShellState.EDITING},
}
PAIRS = [
    (state, stimulus)
    for state, stimulus in itertools.product(ShellState, Stimulus)
    if state in ONLY_IN.get(stimulus, {state})
]


def stimulate(pty: FakePty, stimulus: Stimulus) -> None:
    """Do to a terminal what the stimulus stands for."""
    if stimulus is Stimulus.SPAWN:
        pty.spawn(nonce=NONCE)
    elif stimulus is Stimulus.SUBMIT:
        pty.submit("y")
    elif stimulus is Stimulus.TYPED:
        pty.type(b"z")
    elif stimulus is Stimulus.BEGIN:
        pty.begin()
    elif stimulus in (Stimulus.END, Stimulus.OTHER_END):
        pty.end()
    elif stimulus is Stimulus.LATE_END:
        pty.seq, pty.count = pty.seq + 1, pty.count + 1
        pty.end()
    elif stimulus is Stimulus.PROMPT:
        pty.prompt()
    elif stimulus in (Stimulus.REDRAW, Stimulus.LOADED):
        pty.output(pty.mark("PROMPT", x=0) if stimulus is Stimulus.REDRAW else pty.mark("PS2", l=1))
    elif stimulus is Stimulus.ECHOED:
        pty.output(ECHO)
    elif stimulus is Stimulus.SETTLED:
        pty.silence(icanon=False, echo=False, foreground="shell")
    elif stimulus is Stimulus.ENTER:
        pty.enter("E" * 22, hello=False)
    elif stimulus is Stimulus.LEFT:
        pty.leave()
        pty.end(3)
    elif stimulus is Stimulus.ENTRY_ABANDONED:
        pty.entry("note", note={"type": "leave", "nonce": NONCE})
    elif stimulus is Stimulus.PROGRAM:
        pty.entry("note", note={"type": "no_hooks"})
    else:
        pty.entry("exit", status=0, signal=None)


@pytest.mark.parametrize("state", ShellState)
def test_the_states_can_be_reached(state: ShellState) -> None:
    assert play(in_state(state))[0].state.shell is state


@pytest.mark.parametrize(("state", "stimulus"), PAIRS, ids=lambda item: item.value)
def test_every_pair_is_listed_or_an_anomaly(state: ShellState, stimulus: Stimulus) -> None:
    # Only where no BEGIN will come does the end of the echoed line mean anything.
    pty = in_state(state, inside=stimulus is Stimulus.LEFT, prompt_only=stimulus is Stimulus.ECHOED,
                   key=stimulus in (Stimulus.OTHER_END, Stimulus.LOADED))
    _, before = play(pty)
    stimulate(pty, stimulus)
    machine, events = play(pty)
    fresh = events[len(before) :]
    if stimulus is Stimulus.LEFT and state is not ShellState.EXITED:
        # Known by the END of the shell outside, which moves it on.
        assert [event.type for event in fresh if event.type == "shell_left"] == ["shell_left"]
        assert machine.state.shell is ShellState.RETURNING
        return
    surprises = [event for event in fresh if event.type in ("anomaly", "spoofed_mark")]
    found = TRANSITIONS.get((state, stimulus))
    if found is not None:
        assert machine.state.shell is found[0]
        assert not surprises
    elif stimulus is not Stimulus.SETTLED:
        # A silence means nothing in the other states; a mark or an entry that cannot be is reported.
        accepted = stimulus is not Stimulus.REDRAW or pty.prompts
        assert machine.state.shell is state
        assert surprises or not accepted
        assert not [event for event in fresh if event.type.startswith("agent_")]


@pytest.mark.parametrize("state", ShellState)
def test_spawn_and_exit_are_possible_everywhere(state: ShellState) -> None:
    assert TRANSITIONS.get((state, Stimulus.SPAWN)) == (ShellState.STARTING, Action.START)
    assert TRANSITIONS.get((state, Stimulus.EXIT)) == (ShellState.EXITED, Action.EXIT)


def test_only_a_prompt_or_a_settled_editor_makes_it_idle() -> None:
    ways = {stimulus for (_, stimulus), (after, _) in TRANSITIONS.items() if after is ShellState.IDLE}
    assert ways <= {Stimulus.PROMPT, Stimulus.SETTLED, Stimulus.REDRAW, Stimulus.ECHOED}
    assert all(
        state is ShellState.IDLE
        for (state, stimulus), (after, _) in TRANSITIONS.items()
        if after is ShellState.IDLE and stimulus in (Stimulus.REDRAW, Stimulus.ECHOED)
    )


@pytest.mark.parametrize(
    ("typed", "tty", "ready"),
    [
        (b"x\x03", {}, False),
        (b"\x03\x03", {}, True),
        (b"\x03", {}, True),
        (b"x", {}, False),
        (b"\x03x", {}, False),
        (b"\x03", {"icanon": True}, False),
        (b"\x03", {"foreground": "child"}, False),
    ],
)
def test_an_abandoned_line_is_a_prompt_though_none_is_drawn(typed: bytes, tty: dict[str, object], ready: bool) -> None:
    pty = in_state(ShellState.SUBMITTED)
    pty.begin()
    pty.end()
    pty.prompt()
    before = play(pty)[1]
    pty.type(typed, echo=False, icanon=False)
    pty.silence(**{"icanon": False, "echo": False, "foreground": "shell", **tty})
    machine, events = play(pty)
    assert (machine.state.shell is ShellState.IDLE) is ready
    assert [event.type for event in events[len(before) :]] == ["input", *["prompt"] * ready]
    assert machine.state.current.integrity_reason is None


@pytest.mark.parametrize("busy", [True, False])
def test_a_busy_shell_may_not_have_read_what_was_typed_behind_another_line(busy: bool) -> None:
    pty = in_state(ShellState.SUBMITTED, key=True)
    pty.end()
    pty.prompt()
    pty.silence(icanon=False, echo=False, foreground="shell", **({"busy": True} if busy else {}))
    state = play(pty)[0].state
    assert state.shell is ShellState.IDLE
    assert (state.submission is not None) is busy


def test_a_busy_shell_has_not_answered_ctrl_c_yet() -> None:
    pty = in_state(ShellState.SUBMITTED)
    pty.begin()
    pty.end()
    pty.prompt()
    pty.type(b"\x03", echo=False, icanon=False)
    for busy in ({"busy": True}, {}):
        pty.silence(icanon=False, echo=False, foreground="shell", **busy)
        assert (play(pty)[0].state.shell is ShellState.IDLE) is (not busy)


def test_a_prompt_that_is_drawn_late_is_not_the_next_command_s() -> None:
    pty = in_state(ShellState.RETURNING)
    pty.silence(icanon=False, echo=False, foreground="shell")
    pty.submit("two")
    pty.prompt(0)
    pty.begin()
    pty.output(b"2\r\n")
    pty.end(3)
    pty.prompt(3)
    blocks = [event.fields["block"] for event in play(pty)[1] if event.type == "agent_block_end"]
    assert [(block["cmd"], block["kind"], block["exit_status"]) for block in blocks] == [
        ("x", "command", 0), ("two", "command", 3),
    ]  # fmt: skip


def test_an_abandoned_line_that_got_its_prompt_has_only_that() -> None:
    pty = in_state(ShellState.EDITING)
    pty.prompt()
    before = play(pty)[1]
    pty.silence(icanon=False, echo=False, foreground="shell")
    assert play(pty)[1] == before


def test_only_at_a_prompt_is_a_command_submitted() -> None:
    assert {state for state, stimulus in TRANSITIONS if stimulus is Stimulus.SUBMIT} == {
        ShellState.IDLE, ShellState.EDITING,
    }  # fmt: skip


def test_end_never_closes_a_block() -> None:
    closing = {Action.CLOSE, Action.CLOSE_UNSEEN, Action.CLOSE_DEGRADED, Action.EXIT, Action.START}
    assert not [
        pair
        for pair, (_, action) in TRANSITIONS.items()
        if pair[1] in (Stimulus.END, Stimulus.LATE_END) and action in closing
    ]


def test_end_without_begin_leaves_no_block() -> None:
    pty = at_prompt()
    for _ in range(5):
        pty.end(1)
        pty.prompt(1)
    machine, events = play(pty)
    assert machine.state.next_block == 1
    assert not [event for event in events if event.type.startswith("agent_")]


@pytest.mark.parametrize("state", ShellState)
def test_no_submission_is_forgotten(state: ShellState) -> None:
    # Whatever ends the shell after a command was submitted: there is one block for it, and it ended.
    pty = in_state(state)
    submitted = state in (ShellState.SUBMITTED, ShellState.RUNNING, ShellState.RETURNING)
    pty.spawn(nonce=NONCE)
    machine, events = play(pty)
    assert [event.type for event in events].count("agent_block_end") == submitted
    assert machine.state.block is None
    assert machine.state.submission is None


def test_the_diagram_is_the_table_s() -> None:
    lines = diagram().splitlines()
    assert lines[0] == "stateDiagram-v2"
    for (state, stimulus), (after, _) in TRANSITIONS.items():
        if state is not after and stimulus not in (Stimulus.SPAWN, Stimulus.EXIT, Stimulus.ENTER, Stimulus.LEFT):
            assert f"    {state.value} --> {after.value}: {stimulus.value}" in lines
