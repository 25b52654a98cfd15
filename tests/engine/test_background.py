"""What comes at an idle prompt, or after the shell: a block of its own, and never part of the next."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from blockpty.engine.machine import Machine
from blockpty.testing import FakePty, Recording, derive, events_of, every_split, state_of
from tests.support.machines import NONCE, at_prompt, blocks_of, through_json

AT_EDITOR = {"icanon": False, "echo": False, "foreground": "shell"}


def settled() -> tuple[FakePty, int]:
    """Return a terminal whose prompt has been drawn, and the place from which output belongs to no command."""
    pty = at_prompt()
    pty.silence(**AT_EDITOR)
    return pty, len(pty.recording.stream)


def outputs(recording: Recording) -> list[tuple[str, int, int, bytes]]:
    """Return kind, span and `.out` bytes of all finished blocks, after deriving them with every cut."""
    expected = derive(recording)
    for cuts in every_split(recording.stream):
        assert derive(recording, cuts) == expected
    return [
        (block["kind"], *block["span"], expected.outputs[f"blocks/{block['seq']}_{block['ts_begin']}.out"])
        for block in blocks_of(recording)
    ]


def test_a_burst_at_the_prompt_is_a_block() -> None:
    pty, begin = settled()
    pty.output(b"late\r\nlater")
    end = len(pty.recording.stream)
    pty.silence(**AT_EDITOR)
    assert outputs(pty.recording) == [("background", begin, end, b"late\nlater")]
    (block,) = blocks_of(pty.recording)
    assert (block["cmd"], block["author"], block["exit_status"], block["state"]) == ("", "engine", None, "ended")


def test_it_begins_with_its_first_line_and_ends_with_the_burst() -> None:
    pty, begin = settled()
    pty.output(b"late")
    assert state_of(pty.recording).background is None
    pty.output(b"\nmore")
    machine_state = state_of(pty.recording)
    assert machine_state.background is not None
    assert (machine_state.background.begin, machine_state.block) == (begin, None)
    assert [event.type for event in events_of(pty.recording)][-2:] == ["agent_block_begin", "agent_block_delta"]


@pytest.mark.parametrize(
    "text",
    [
        b"\x1b[?2004l\r\x1b[?2004h\x1b[?2004l\r\r\n",
        b"\r\n\x1b>\x1b[?1l\x1b[r\r\n",
        b"\r\n" * 32,
    ],
    ids=["bash hung up", "modes", "blank lines"],
)
def test_a_shell_that_resets_its_terminal_prints_nothing(text: bytes) -> None:
    pty, _ = settled()
    pty.output(text)
    pty.silence(**AT_EDITOR)
    pty.entry("exit", status=None, signal="SIGHUP")
    pty.entry("eof")
    assert outputs(pty.recording) == []


@pytest.mark.parametrize(
    "text", [b"\r\n\x1b[?25l\r\nlate\r\n", b"\r\n" * 40, b"\x1b[?25l\x1b[1mx\n", b"\n\x1b[2\n5l\n"]
)
def test_what_can_be_seen_is_a_block_with_what_stands_before_it(text: bytes) -> None:
    pty, begin = settled()
    pty.output(text)
    end = len(pty.recording.stream)
    pty.silence(**AT_EDITOR)
    assert [found[:3] for found in outputs(pty.recording)] == [("background", begin, end)]


@pytest.mark.parametrize(
    "text", [b"no line end", b"\r\x1b[Kredrawn $ ", b""], ids=["no line end", "redrawn", "nothing"]
)
def test_what_has_no_line_end_is_in_the_stream_only(text: bytes) -> None:
    pty, _ = settled()
    pty.output(text)
    pty.silence(**AT_EDITOR)
    pty.run("echo", b"x\r\n")
    assert [(kind, out) for kind, _, _, out in outputs(pty.recording)] == [("command", b"x\n")]


# Two lines, as zsh, and as fish, which repeats its mark, draws them again.
DRAWN_AGAIN = b"\r\x1b[A\x1b[0m\x1b[Juser@host ~ main\r\n\x1b[35m$\x1b[39m \x1b[K"


@pytest.mark.parametrize("text", [
    DRAWN_AGAIN, DRAWN_AGAIN * 3, b"\x1b[2Aone\r\ntwo\r\n$ ", b"\x1b[?25l\x1b[1A" + b"x" * 100 + b"\r\n$ ",
], ids=["once", "three times", "three lines", "a long line"])  # fmt: skip
def test_a_prompt_drawn_again_is_no_output(text: bytes) -> None:
    pty, _ = settled()
    for _ in range(2):
        pty.output(text)
        pty.silence(**AT_EDITOR)
    assert outputs(pty.recording) == []
    pty.output(text)
    redraw(pty)
    pty.silence(**AT_EDITOR)
    assert outputs(pty.recording) == []


def test_output_behind_a_prompt_that_was_drawn_again() -> None:
    """Each line end down to where the cursor was is drawn, the next one is printed."""
    pty, begin = settled()
    pty.output(DRAWN_AGAIN + b"late\r\nlater")
    end = len(pty.recording.stream)
    pty.silence(**AT_EDITOR)
    assert outputs(pty.recording) == [
        ("background", begin + DRAWN_AGAIN.index(b"\n") + 1, end, b"\x1b[35m$\x1b[39m \x1b[Klate\nlater"),
    ]  # fmt: skip


def test_lines_that_were_gone_up_are_forgotten_at_a_silence() -> None:
    pty, _ = settled()
    pty.output(b"\x1b[20A")
    pty.silence(**AT_EDITOR)
    begin = len(pty.recording.stream)
    pty.output(b"late\r\n")
    end = len(pty.recording.stream)
    pty.silence(**AT_EDITOR)
    assert outputs(pty.recording) == [("background", begin, end, b"late\n")]


def test_no_more_lines_can_be_gone_up_than_there_are() -> None:
    pty, _ = settled()
    pty.output(b"\x1b[999A" + b"x\r\n" * 25)
    pty.silence(**AT_EDITOR)
    assert [kind for kind, *_ in outputs(pty.recording)] == ["background"]


def test_before_the_silence_the_shell_may_still_draw() -> None:
    pty = at_prompt()
    pty.output(b"a prompt\r\nof two lines $ ")
    pty.silence(**AT_EDITOR)
    assert outputs(pty.recording) == []


def redraw(pty: FakePty) -> None:
    pty.output(pty.mark("PROMPT", x=0))


def resize(pty: FakePty) -> None:
    pty.entry("resize", cols=100, rows=30)


def typed(pty: FakePty) -> None:
    pty.type(b"x", echo=False, icanon=False)


def spawn(pty: FakePty) -> None:
    pty.spawn(nonce=NONCE)


def shell_exit(pty: FakePty) -> None:
    pty.entry("exit", status=0, signal=None)


@pytest.mark.parametrize("closing", [redraw, resize, typed, spawn, shell_exit])
def test_what_closes_it(closing: Callable[[FakePty], None]) -> None:
    pty, begin = settled()
    pty.output(b"late\r\n")
    end = len(pty.recording.stream)
    closing(pty)
    assert outputs(pty.recording) == [("background", begin, end, b"late\n")]


@pytest.mark.parametrize("drawing", [redraw, resize, typed])
def test_after_that_it_takes_a_silence(drawing: Callable[[FakePty], None]) -> None:
    pty, _ = settled()
    drawing(pty)
    pty.output(b"drawn\r\n")
    assert not [event for event in events_of(pty.recording) if event.type == "agent_block_begin"]


def test_a_busy_shell_has_not_drawn_its_prompt_again_yet() -> None:
    pty, _ = settled()
    pty.entry("note", note={"type": "interrupt", "signal": "SIGINT"})
    pty.silence(**AT_EDITOR, busy=True)
    pty.output(b"^C\r\n")
    redraw(pty)
    pty.silence(**AT_EDITOR)
    assert outputs(pty.recording) == []
    # What a job prints in the background is output, also while the shell is busy.
    pty.silence(**AT_EDITOR, busy=True)
    pty.output(b"job\r\n")
    pty.silence(**AT_EDITOR)
    assert [block[3] for block in outputs(pty.recording)] == [b"job\n"]


def test_it_takes_the_next_number_and_leaves_the_command_alone() -> None:
    pty, _ = settled()
    pty.run("one", b"1\r\n")
    pty.output(b"late\r\n")
    pty.run("two", b"2\r\n")
    pty.output(b"end\r\n")
    pty.silence(**AT_EDITOR)
    made = outputs(pty.recording)
    assert [(kind, out) for kind, _, _, out in made] == [
        ("command", b"1\n"), ("background", b"late\n"), ("command", b"2\n"), ("background", b"end\n"),
    ]  # fmt: skip
    assert [block["seq"] for block in blocks_of(pty.recording)] == [1, 2, 3, 4]
    # A caller that asks late finds the block of its request, whatever was opened since.
    state = state_of(pty.recording)
    assert [state.opened_by(request)[0] for request in ("1.1", "1.2")] == [1, 3] and state.opened_by("1.3") is None


def test_after_the_shell_everything_is_background() -> None:
    pty, _ = settled()
    pty.submit("exit")
    pty.begin()
    pty.output(b"bye\r\n")
    pty.entry("exit", status=3, signal=None)
    begin = len(pty.recording.stream)
    pty.output(b"still\r\nopen")
    pty.silence()
    pty.output(b"no line end")
    pty.entry("eof")
    assert outputs(pty.recording)[1:] == [
        ("background", begin, begin + 11, b"still\nopen"),
        ("background", begin + 11, begin + 22, b"no line end"),
    ]
    types = [event.type for event in events_of(pty.recording)]
    assert types.index("shell_exit") < types.index("agent_block_begin", types.index("shell_exit")) < types.index("eof")


def test_a_flood_is_cut_into_deltas() -> None:
    pty, begin = settled()
    pty.output(b"x" * 100_000 + b"\n" + b"y\n" * 50_000)
    pty.silence(**AT_EDITOR)
    spans = [event.fields["span"] for event in events_of(pty.recording) if event.type == "agent_block_delta"]
    assert spans[0][0] == begin
    assert all(before[1] == after[0] for before, after in itertools.pairwise(spans))
    assert spans[-1][1] == len(pty.recording.stream)
    cursors = [event.cursor for event in events_of(pty.recording)]
    assert cursors == sorted(cursors)
    assert derive(pty.recording, range(0, 200_000, 777)) == derive(pty.recording)


def test_the_open_block_survives_a_checkpoint() -> None:
    pty, _ = settled()
    pty.output(b"late\r\n")
    state = state_of(pty.recording)
    assert through_json(state) == state
    assert Machine(through_json(state)).snapshot() == state
