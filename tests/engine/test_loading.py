"""Lines that our key has loaded: which line a mark speaks of, and what of the stream is the shell's own."""

from __future__ import annotations

import pytest

from blockpty.engine.loading import prologue_end
from blockpty.engine.states import ShellState
from blockpty.model.events import Event
from blockpty.testing import FakePty, events_of, every_split, state_of
from tests.support.machines import NONCE, at_prompt
from tests.support.profile import some_of

TITLE = b"\x1b]0;echo hi /home\x07"
NORMAL = b"\x1b[30m\x1b(B\x1b[m"


def blocks(events: list[Event]) -> list[tuple[str, str, str, int | None, list[int]]]:
    return [
        (block["kind"], block["cmd"], block["state"], block["exit_status"], block["span"])
        for block in (event.fields["block"] for event in events if event.type == "agent_block_end")
    ]


def every_way(pty: FakePty) -> list[Event]:
    """Return the events of a recording, which are the same however its bytes come."""
    whole = events_of(pty.recording)
    for cuts in every_split(pty.recording.stream):
        assert events_of(pty.recording, cuts) == whole
    return whole


@pytest.mark.parametrize(
    ("data", "end"),
    [
        (b"\x1b[?2004l" + TITLE + NORMAL + b"\r", "all"), (TITLE + NORMAL + b"\r", "all"),
        (b"\x1b]0;x\x1b\\\x1b[m\r", "all"), (b"\x1b[?2004l" + NORMAL + b"\r", 8 + len(NORMAL)),
        (b"\x1b[?2004lhi", 8), (b"hi", 0), (b"\x1b[32mhi", 0), (TITLE + b"hi", 0),
        (b"\x1b]0;" + b"\x1b[31m" + b"\x07" + NORMAL + b"\r", "all"),
        (TITLE + b"\x1b[30m\x1b[0;10m\r", "all"), (TITLE + b"\x1b[m\x0f$<2>\r", "all"), (TITLE + b"\r", "all"),
    ],
)  # fmt: skip
def test_what_fish_prints_itself(data: bytes, end: object) -> None:
    """The end is the same at whatever byte it is asked for, once it is known."""
    expected = len(data) if end == "all" else end
    rest = data + b"output"
    known = [prologue_end(rest[:length]) for length in range(len(rest) + 1)]
    assert {one for one in known if one is not None} == {expected}


def test_a_loaded_line_is_the_submitted_one() -> None:
    pty = at_prompt()
    pty.submit_key("echo hi")
    pty.output(b"\r\x1b[K$ echo hi\r\n\x1b[?2004l\r")
    pty.begin(l=1)
    pty.output(b"hi\r\n")
    pty.end(0, l=1)
    pty.prompt()
    ((kind, cmd, state, status, span),) = blocks(every_way(pty))
    assert (kind, cmd, state, status) == ("command", "echo hi", "ended", 0)
    assert pty.recording.stream[span[0] : span[1]] == b"hi\r\n"


def test_another_line_comes_first() -> None:
    """However it is drawn, and though it ends with what was submitted: it does not say that our key loaded it."""
    pty = at_prompt()
    pty.submit_key("echo hi")
    pty.output(b"echo hi\r\n")
    pty.begin()
    pty.output(b"theirs\r\n")
    pty.end(0)
    pty.prompt()
    pty.output(b"$ echo hi\r\n")
    pty.begin(l=1)
    pty.output(b"ours\r\n")
    pty.end(3, l=1)
    pty.prompt()
    first, second = blocks(every_way(pty))
    assert first[0] == "user" and second[:4] == ("command", "echo hi", "ended", 3)


def without_begin(pty: FakePty) -> None:
    """Show a prompt that says that no BEGIN will come."""
    pty.prompts += 1
    pty.output(b"$ " + pty.mark("PROMPT", x=0, b=""))


def submit_unmarked(pty: FakePty) -> None:
    """Type the key that loads a staged line, for which no BEGIN will come."""
    pty.submit_key("echo hi")
    pty.recording.entries[-1].fields["submit"].update(unmarked=True, line=" . '/c/commands/1'")


@pytest.mark.parametrize("late", [False, True], ids=["typed before the end of the other line", "and behind it"])
@pytest.mark.parametrize("typed", [b"", b"x"], ids=["alone", "with a key of a person"])
@pytest.mark.parametrize("seen", [b" . '/c/commands/1'\r\n\x1b[?2004l\r", b"\r\n"], ids=["drawn", "not recognised"])
def test_another_line_comes_before_one_without_a_begin(seen: bytes, typed: bytes, late: bool) -> None:
    pty = FakePty()
    pty.spawn(nonce=NONCE)
    without_begin(pty)
    pty.type(b"echo a . b\r")
    if not late:
        submit_unmarked(pty)
    pty.output(b"echo a . b\r\na . b\r\n")
    pty.end(5)
    if late:
        submit_unmarked(pty)
    without_begin(pty)
    if typed:
        pty.type(typed)
    pty.output(b"\r\x1b[K$ " + seen + b"ours\r\n")
    pty.end(3, l=1)
    without_begin(pty)
    ((kind, cmd, state, status, span),) = blocks(every_way(pty))
    assert (kind, cmd, state, status) == ("command", "echo hi", "ended", 3)
    output = pty.recording.stream[span[0] : span[1]]
    assert output == (b"ours\r\n" if len(seen) > 2 else b"\r\x1b[K$ \r\nours\r\n")


@pytest.mark.parametrize("key", [True, False], ids=["loaded", "typed"])
@pytest.mark.parametrize("broken", [b"", b" \r", b"\r\n\r"], ids=["whole", "in two rows", "on an old terminal"])
def test_the_output_of_a_command_without_a_begin(broken: bytes, key: bool) -> None:
    pty = FakePty()
    pty.spawn(nonce=NONCE)
    without_begin(pty)
    submit_unmarked(pty)
    pty.recording.entries[-1].fields["submit"]["key"] = key
    pty.output(b" . '/c/com" + broken + b"mands/1'\r\n\x1b[?2004l\rours\r\n")
    pty.end(3, l=int(key))
    without_begin(pty)
    ((_, _, state, status, span),) = blocks(every_way(pty))
    assert (state, status, pty.recording.stream[span[0] : span[1]]) == ("ended", 3, b"ours\r\n")


def test_a_command_without_a_begin_that_was_lost_behind_another_line() -> None:
    """Its key was read by the program of that line: a silence at the prompt says that nothing comes."""
    pty = FakePty()
    pty.spawn(nonce=NONCE)
    without_begin(pty)
    pty.type(b"read x\r")
    submit_unmarked(pty)
    pty.output(b"read x\r\n")
    pty.end(0)
    without_begin(pty)
    assert state_of(pty.recording).submission is not None
    pty.silence(icanon=False, echo=False, foreground="shell")
    state = state_of(pty.recording)
    assert (state.shell, state.submission) == (ShellState.IDLE, None)
    assert blocks(every_way(pty)) == []


def test_an_empty_line_comes_first() -> None:
    pty = at_prompt()
    pty.submit_key("echo hi")
    pty.output(b"\r\n")
    pty.end(0)
    pty.prompt()
    pty.output(b"$ echo hi\r\n")
    pty.begin(l=1)
    pty.end(0, l=1)
    pty.prompt()
    assert [block[:4] for block in blocks(every_way(pty))] == [("command", "echo hi", "ended", 0)]


def test_a_rejected_line_has_the_message_of_the_shell() -> None:
    pty = at_prompt()
    pty.submit_key("echo )")
    pty.output(b"\r\x1b[K$ echo )\r\n\x1b[?2004l\rbash: syntax error\r\n")
    pty.end(2, l=1)
    pty.prompt()
    ((_, cmd, state, status, span),) = blocks(every_way(pty))
    assert (cmd, state, status) == ("echo )", "rejected", 2)
    assert pty.recording.stream[span[0] : span[1]] == b"bash: syntax error\r\n"


def test_a_rejected_line_of_zsh_that_was_highlighted() -> None:
    """Its text is drawn in pieces, and once more when the paste mode has ended."""
    pty = FakePty()
    pty.spawn(nonce=NONCE, shell="zsh")
    pty.prompt()
    pty.submit_key("echo )")
    pty.output(b"\x07\x1b[32mec\x1b[39mho )\x08\x08\x1b[?2004l\x1b[32mecho\x1b[39m \x1b[31m)\x1b[39m\r\r\n")
    pty.output(b"zsh: parse error\r\n")
    pty.output(pty.mark("OUT_END"))
    pty.end(1, l=1)
    pty.prompt()
    ((_, _, state, _, span),) = blocks(every_way(pty))
    assert state == "rejected" and pty.recording.stream[span[0] : span[1]] == b"zsh: parse error\r\n"


def test_an_incomplete_line_is_no_block() -> None:
    """Nothing of it has run; the engine hands it over again."""
    pty = at_prompt()
    pty.submit_key("echo 'x")
    pty.output(b"echo 'x\r\n> " + pty.mark("PS2", l=1))
    pty.type(b"\x03", echo=False, icanon=False)
    pty.end(130, l=1)
    pty.prompt()
    assert blocks(every_way(pty)) == []


def test_fish_prints_around_the_output() -> None:
    pty = FakePty()
    pty.spawn(nonce=NONCE, shell="fish")
    pty.prompt()
    pty.submit_key("echo hi")
    pty.output(b"echo hi\r\n")
    pty.begin(l=1)
    pty.output(b"\x1b[?2004l" + TITLE + NORMAL + b"\rhi\r\n")
    pty.output(b"\x1b]133;D;0\x07")
    pty.end(0, d=1)
    pty.prompt()
    ((_, _, state, _, span),) = blocks(every_way(pty))
    assert state == "ended" and pty.recording.stream[span[0] : span[1]] == b"hi\r\n"


@pytest.mark.parametrize("cut", some_of(range(len(b"\x1b[?2004l" + TITLE + NORMAL) + 1)))
def test_fish_is_slow_with_its_title(cut: int) -> None:
    """A silence in its midst does not end it, although the terminal has the modes of commands already."""
    before = b"\x1b[?2004l" + TITLE + NORMAL
    pty = FakePty()
    pty.spawn(nonce=NONCE, shell="fish")
    pty.prompt()
    pty.submit_key("echo hi")
    pty.begin(l=1)
    pty.output(before[:cut])
    pty.silence(icanon=True, echo=True, foreground="shell")
    pty.output(before[cut:] + b"\rhi\r\n")
    pty.end(0)
    pty.prompt()
    ((*_, span),) = blocks(every_way(pty))
    assert pty.recording.stream[span[0] : span[1]] == b"hi\r\n"


@pytest.mark.parametrize("cut", some_of(range(len(TITLE + NORMAL))))
def test_fish_is_slow_with_a_line_that_was_loaded_behind_another(cut: int) -> None:
    """Nothing that it prints at a prompt while it has yet to read is output of the background."""
    before = b"\x1b[?2004l" + TITLE + NORMAL
    slow = {"icanon": False, "echo": False, "foreground": "shell", "busy": True}
    pty = FakePty()
    pty.spawn(nonce=NONCE, shell="fish")
    pty.prompt()
    pty.submit_key("echo hi")
    pty.begin(o=1)
    pty.output(b"stuffed\r\n")
    pty.end(0)
    pty.prompt()
    pty.silence(**slow)
    pty.output(b"echo hi\r\n")
    pty.silence(**slow)
    pty.begin(l=1)
    pty.output(before[:cut])
    pty.silence(**slow)
    pty.output(before[cut:] + b"\rhi\r\n")
    pty.end(0)
    pty.prompt()
    found = blocks(every_way(pty))
    assert [pty.recording.stream[span[0] : span[1]] for *_, span in found] == [b"stuffed\r\n", b"hi\r\n"]


@pytest.mark.parametrize("before", [b"", b"\x1b[?2004l"])
def test_a_quiet_command_of_fish_has_begun_when_its_program_has_the_terminal(before: bytes) -> None:
    pty = FakePty()
    pty.spawn(nonce=NONCE, shell="fish")
    pty.prompt()
    pty.submit_key("sleep 100")
    pty.begin(l=1)
    pty.output(before)
    pty.silence(icanon=True, echo=True, foreground="child")
    assert [event.type for event in every_way(pty)][-1] == "agent_block_begin"


def test_a_dumb_terminal_gets_no_title_of_fish() -> None:
    pty = FakePty()
    pty.spawn(nonce=NONCE, shell="fish")
    pty.prompt()
    pty.submit_key("echo hi")
    pty.begin(l=1, t=0)
    pty.output(b"\r\rhi\r\n")
    pty.end(0)
    pty.prompt()
    ((*_, span),) = blocks(every_way(pty))
    assert pty.recording.stream[span[0] : span[1]] == b"\rhi\r\n"


def test_a_mark_of_a_program_in_front_of_the_end_is_output() -> None:
    pty = at_prompt()
    pty.submit_key("x")
    pty.begin(l=1)
    pty.output(b"\x1b]133;D;0\x07")
    pty.end(0, l=1)
    pty.prompt()
    ((*_, span),) = blocks(every_way(pty))
    assert pty.recording.stream[span[0] : span[1]] == b"\x1b]133;D;0\x07"
