"""A line that the shell read before the one that was submitted: it takes nothing of the submission."""

from __future__ import annotations

import pytest

from blockpty.testing import FakePty, derive, every_split, state_of
from tests.support.machines import at_prompt, blocks_of


def other_line(pty: FakePty, how: str) -> None:
    """Another command runs, of which the shell says so: zsh by its text, fish by a key of BEGIN."""
    if how == "zsh":
        pty.output(pty.mark("CMD", d="echo%20stuffed"))
        pty.begin()
    else:
        pty.seq, pty.count = pty.seq + 1, pty.count + 1
        pty.output(pty.mark("BEGIN", o=1))
    pty.output(b"stuffed\r\n")
    pty.end()
    pty.prompt()


def summaries(pty: FakePty) -> list[tuple[str, str, str, str | None]]:
    expected = derive(pty.recording)
    for cuts in every_split(pty.recording.stream):
        assert derive(pty.recording, cuts) == expected
    return [
        (block["author"], block["cmd"], expected.outputs[f"blocks/{block['seq']}_{block['ts_begin']}.out"].decode(),
         block["degraded"])
        for block in blocks_of(pty.recording)
    ]  # fmt: skip


@pytest.mark.parametrize(("how", "text"), [("zsh", "echo stuffed"), ("fish", "")])
@pytest.mark.parametrize("lines", [1, 2])
def test_it_is_a_block_of_its_own_and_ours_comes_next(how: str, text: str, lines: int) -> None:
    pty = at_prompt()
    pty.submit("echo real")
    for _ in range(lines):
        other_line(pty, how)
    pty.begin()
    pty.output(b"real\r\n")
    pty.end()
    pty.prompt()
    other = ("user", text, "stuffed\n", None)
    assert summaries(pty) == [other] * lines + [("agent", "echo real", "real\n", None)]
    assert state_of(pty.recording).submission is None


def test_a_submission_that_a_program_has_read_is_no_command() -> None:
    pty = at_prompt()
    pty.submit("echo real")
    other_line(pty, "zsh")
    assert state_of(pty.recording).submission is not None
    pty.silence(icanon=False, echo=False, foreground="shell")
    assert state_of(pty.recording).submission is None
    pty.output(pty.mark("CMD", d="ls"))
    pty.begin()
    pty.end()
    pty.prompt()
    assert [block[:2] for block in summaries(pty)] == [("user", "echo stuffed"), ("user", "ls")]


@pytest.mark.parametrize(
    ("drawn", "echoed", "degraded"),
    [
        (b"", b" . /c/1\r\n", None),
        (b"", b" . /c\r\n/1\r\n", "other_input"),
        (b"echo st", b"uffed\r\n", "other_input"),
        (b"", b" . /c/1\r\necho stuffed\r\n", None),
        # Behind the end of readline's line it is the kernel that echoes, and bash that will read it next.
        (b"", b"echo stuffed\r\n\x1b[?2004l\r . /c/1\r\n", "other_input"),
        (b"", b" . /c/1\r\n\x1b[?2004l\r", None),
        (b"", b"\r\n", None),
        (b"", b"", None),
        (b"noise", b"", None),
        (b"", b"x" * 5000 + b"\r\n", None),
    ],
)
def test_what_bash_draws_is_doubted_when_it_is_another_line(drawn: bytes, echoed: bytes, degraded: str | None) -> None:
    pty = at_prompt()
    pty.output(drawn)
    pty.submit("echo real")
    pty.recording.stream = pty.recording.stream.removesuffix(b" . /c/1\r\n") + echoed
    pty.begin()
    pty.output(b"out\r\n")
    pty.end()
    pty.prompt()
    assert summaries(pty) == [("agent", "echo real", "out\n", degraded)]
