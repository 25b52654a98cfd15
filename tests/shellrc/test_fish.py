"""fish 3.6 and later: the marks, and what is peculiar to a shell that redraws its prompt as it likes."""

from __future__ import annotations

import fcntl
import os
import struct
import termios
from collections.abc import Callable
from pathlib import Path

import pytest

from blockpty.host import shells

from .conftest import NONCE, Run, Terminal, check_cycle, kinds

Open = Callable[..., Terminal]

pytestmark = pytest.mark.needs("fish")


def test_first_prompt(open_terminal: Open) -> None:
    terminal = open_terminal("fish")
    marks = terminal.start()
    assert kinds(marks) == ["HELLO", "END", "CWD", "PROMPT"]
    hello, end, cwd, prompt = marks
    assert [hello.number(name) for name in "scp"] == [0, 0, 0]
    assert (hello.fields["v"], hello.fields["sh"], hello.fields["f"]) == ("1", "fish", "preexec,postexec,prompt,key")
    assert [end.number(name) for name in "scx"] == [1, 0, 0]
    assert terminal.reported_directory([cwd]) == os.fsencode(terminal.home)
    assert [prompt.number(name) for name in "scpx"] == [1, 0, 1, 0]
    assert b"ready> " in terminal.data[cwd.end : prompt.start]


def test_command(open_terminal: Open) -> None:
    terminal = open_terminal("fish")
    before = terminal.start()[-1]
    for command, output, status in (
        ("echo hi", b"hi\r\n", 0), ("printf x", b"x", 0), ("false", b"", 1), ("sh -c 'exit 7'", b"", 7),
        ("echo one\necho two\n", b"one\r\ntwo\r\n", 0), ("printf '\\n\\nx\\n\\n'", b"\r\n\r\nx\r\n\r\n", 0),
    ):  # fmt: skip
        run = terminal.run(command)
        check_cycle(run.marks, terminal.pid, before=before)
        assert (run.output, run.status, run.one("END").number("x")) == (output, status, status)
        before = run.prompt


def test_counters_go_past_the_table(open_terminal: Open) -> None:
    terminal = open_terminal("fish")
    before = terminal.start()[-1]
    for _ in range(120):
        run = terminal.run(":")
        check_cycle(run.marks, terminal.pid, before=before)
        before = run.prompt
    assert (before.number("s"), before.number("c"), before.number("p")) == (241, 120, 121)


def test_statuses_are_left_alone(open_terminal: Open) -> None:
    terminal = open_terminal("fish")
    terminal.start()
    terminal.line("false | true | sh -c 'exit 4'")
    begin = terminal.line("echo $status / $pipestatus")[0]
    assert b"4 / 1 0 4" in terminal.data[begin.end :]
    terminal.line("sh -c 'exit 5'")
    assert terminal.run("echo $status").output == b"5\r\n"


def test_prompt_sees_the_status(open_terminal: Open) -> None:
    terminal = open_terminal("fish", "function fish_prompt\n echo -n \"<$status|$pipestatus> \"\nend")
    terminal.start()
    terminal.line("false | sh -c 'exit 3'")
    assert b"<3|1 3> " in terminal.data


@pytest.mark.parametrize("typed", ["", "   ", "# only a comment"])
def test_nothing_to_run(open_terminal: Open, typed: str) -> None:
    terminal = open_terminal("fish")
    terminal.start()
    before = terminal.run("false").prompt
    marks = terminal.line(typed)
    assert "BEGIN" not in kinds(marks)
    assert marks[-1].number("p") == before.number("p") + 1
    assert (marks[-1].number("c"), marks[-1].number("x")) == (before.number("c"), 1)


def test_typed_command(open_terminal: Open) -> None:
    terminal = open_terminal("fish")
    before = terminal.start()[-1]
    command, *marks = terminal.line("echo 'typed'")
    assert (command.kind, command.fields["d"]) == ("__CMD__", "echo%20%27typed%27")
    check_cycle(marks, terminal.pid, before=before)
    assert b"typed\r\n" in terminal.data[marks[0].end : marks[1].start]


def test_syntax_error_in_a_submitted_text(open_terminal: Open) -> None:
    terminal = open_terminal("fish")
    before = terminal.start()[-1]
    run = terminal.run("echo one\necho )\n")
    check_cycle(run.marks, terminal.pid, before=before)
    assert run.status != 0 and b"Unexpected ')'" in run.output and b"one\r\n" not in run.output


def test_here_document(open_terminal: Open) -> None:
    """fish has none: an error, in the block, and nothing is left on the line."""
    terminal = open_terminal("fish")
    before = terminal.start()[-1]
    run = terminal.run("cat <<END\ntext\nEND")
    check_cycle(run.marks, terminal.pid, before=before)
    assert run.status != 0 and b"<<" in run.output
    assert terminal.run("echo clean").output == b"clean\r\n"


def test_syntax_error_stays_on_the_line(open_terminal: Open) -> None:
    """No fresh prompt until the text is cancelled; then the next command is itself again."""
    terminal = open_terminal("fish")
    before = terminal.start()[-1]
    terminal.type("echo )\r")
    again = terminal.until("__PROMPT__")
    assert kinds(again) == ["PROMPT"] and again[0].fields == before.fields
    terminal.type(shells.clear_keys("fish").decode())
    fresh = terminal.until("__PROMPT__", lambda mark: mark.number("p") == before.number("p") + 1)
    assert set(kinds(fresh)) == {"PROMPT"} and fresh[-1].fields["x"] == "0"
    assert terminal.run("echo clean").output == b"clean\r\n"


@pytest.mark.parametrize("typed", ["echo something", "echo 'open\r", "(a\r", "echo a\x1b\re", "echo half\x1b\x1bb", ""])
@pytest.mark.parametrize("rc", ["", "fish_vi_key_bindings"])
def test_cleared_line(open_terminal: Open, rc: str, typed: str) -> None:
    """The engine's key empties the line at once, however soon it comes, and a fresh prompt says so."""
    terminal = open_terminal("fish", rc)
    before = terminal.start()[-1]
    for _ in range(10):
        terminal.type(typed + shells.clear_keys("fish").decode())
        number = before.number("p") + 1
        marks = terminal.until("__PROMPT__", lambda mark, number=number: mark.number("p") == number)  # type: ignore[misc]
        assert set(kinds(marks)) == {"PROMPT"}
        # What was drawn in between is the old prompt again.
        assert all(mark.number("s") == before.number("s") for mark in marks)
        run = terminal.run("echo clean")
        assert run.output == b"clean\r\n"
        before = run.prompt


def test_cancelled_line(open_terminal: Open) -> None:
    terminal = open_terminal("fish")
    before = terminal.start()[-1]
    terminal.type("echo something")
    terminal.until_text(b"something")
    # The old prompt is drawn first. A Ctrl-C during the second drawing would be lost, the mark with it.
    shown = terminal.interrupt()[-1]
    if shown.number("p") == before.number("p"):
        shown = terminal.until("__PROMPT__")[-1]
    assert shown.number("p") == before.number("p") + 1
    assert "BEGIN" not in kinds(terminal.marks(before.end))
    assert terminal.run("echo clean").output == b"clean\r\n"


def test_redraw_repeats_the_count(open_terminal: Open) -> None:
    terminal = open_terminal("fish")
    before = terminal.start()[-1]
    terminal.type("\x0c")
    again = terminal.until("__PROMPT__")
    assert kinds(again) == ["PROMPT"] and again[0].fields == before.fields
    check_cycle(terminal.run(":").marks, terminal.pid, before=before)


def test_interrupt(open_terminal: Open) -> None:
    terminal = open_terminal("fish")
    terminal.start()
    terminal.submit("sh -c 'echo started; exec sleep 600'\necho after")
    begin = terminal.until("__BEGIN__")[-1]
    terminal.until_text(b"started\r\n")
    assert terminal.interrupt()[-1].number("x") == 130
    assert b"after\r\n" not in terminal.data[begin.end :]


def test_several_lines_are_one_block(open_terminal: Open) -> None:
    terminal = open_terminal("fish")
    before = terminal.start()[-1]
    run = terminal.run("function shout\n echo LOUD $argv\nend\nshout now\nset -g kept yes\nfor i in 1 2\n echo $i\nend")
    check_cycle(run.marks, terminal.pid, before=before)
    assert run.output == b"LOUD now\r\n1\r\n2\r\n"
    assert terminal.run("echo $kept; shout").output == b"yes\r\nLOUD\r\n"


@pytest.mark.parametrize(
    "name", ["a b", "semi;colon", "ünïcödé-🙂", "per%cent~", "new\nline", "x" * 200 + "/" + "ö" * 90]
)
def test_directory(open_terminal: Open, name: str) -> None:
    terminal = open_terminal("fish")
    terminal.start()
    path = terminal.home / name
    path.mkdir(parents=True)
    run = terminal.run("true", cwd=str(path))
    assert terminal.reported_directory(run.marks) == os.fsencode(path)
    assert all(len(mark.raw) <= 512 for mark in run.marks)
    assert "CWD" not in terminal.run("true").kinds


def test_nothing_is_exported(open_terminal: Open) -> None:
    terminal = open_terminal("fish")
    terminal.start()
    assert terminal.run("set -x PATH $PATH; env | grep -c __bpty_").output == b"0\r\n"
    environment = Path(f"/proc/{terminal.pid}/environ")
    if environment.exists():
        assert NONCE.encode() not in environment.read_bytes()
    assert NONCE not in " ".join(terminal.plan.argv)
    assert not (terminal.directory / "rc").joinpath("1").exists()


def test_history_is_not_saved(open_terminal: Open) -> None:
    terminal = open_terminal("fish")
    terminal.start()
    terminal.line("echo remembered")
    assert terminal.run("history | head -n 1").output == b"echo remembered\r\n"
    terminal.type("exit\r")
    terminal.until_end()
    written = [path for path in terminal.home.rglob("*history*") if path.is_file()]
    assert [path for path in written if b"remembered" in path.read_bytes()] == []


@pytest.mark.parametrize("change", ["function fish_prompt; printf 'mine> '; end", "functions -e fish_prompt"])
def test_new_prompt_function(open_terminal: Open, change: str) -> None:
    """A prompt that was defined anew, or taken away, is marked at once."""
    terminal = open_terminal("fish")
    before = terminal.start()[-1]
    run = terminal.run(change)
    check_cycle(run.marks, terminal.pid, before=before)
    shown = terminal.data[run.one("END").end : run.prompt.start]
    assert b"ready> " not in shown and (b"mine> " in shown or "mine" not in change)
    check_cycle(terminal.run(":").marks, terminal.pid, before=run.prompt)


def test_prompt_that_keeps_the_old_one(open_terminal: Open) -> None:
    """As a Python environment does it: the new prompt calls a copy of the old one, which is given back later."""
    terminal = open_terminal("fish")
    before = terminal.start()[-1]
    for _ in range(3):
        run = terminal.run(
            "functions -c fish_prompt _old\nfunction fish_prompt\n  set -l kept $status\n  printf '(venv %s) ' $kept\n"
            "  _old\nend\nfalse"
        )
        assert run.status == 1
        # The copy has the old mark, and the new function has another.
        assert {mark.number("p") for mark in run.marks if mark.kind == "__PROMPT__"} == {before.number("p") + 1}
        terminal.until("__PROMPT__")
        assert b"(venv 1) ready> " in terminal.data[run.marks[0].end : terminal.position]
        before = run.prompt
        terminal.line(":")
        before = terminal.until("__PROMPT__")[-1]
        assert before.number("c") == run.prompt.number("c") + 1
        given_back = terminal.run("functions -e fish_prompt; functions -c _old fish_prompt; functions -e _old")
        check_cycle(given_back.marks, terminal.pid, before=before)
        before = terminal.run("echo usable").prompt
        assert before.number("c") == given_back.prompt.number("c") + 1


def test_three_columns(open_terminal: Open) -> None:
    """fish draws nothing in so narrow a terminal; the mark comes all the same."""
    terminal = open_terminal("fish")
    before = terminal.start()[-1]
    for columns, rows in ((3, 24), (1, 1), (80, 24)):
        fcntl.ioctl(terminal.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        terminal.submit("stty size; sh -c 'exit 3'")
        count = before.number("c") + 1
        # Before it comes the old prompt, drawn again for the new size.
        run = Run(terminal, terminal.until("__PROMPT__", lambda mark, count=count: mark.number("c") == count))  # type: ignore[misc]
        assert (run.output, run.status) == (f"{rows} {columns}\r\n".encode(), 3)
        before = run.prompt


def test_terminal_is_raw_at_the_prompt(open_terminal: Open) -> None:
    """Nothing typed after PROMPT is echoed by the terminal or cut by it."""
    terminal = open_terminal("fish")
    terminal.start()
    for _ in range(20):
        terminal.run(":")
        local = termios.tcgetattr(terminal.fd)[3]
        assert not local & (termios.ICANON | termios.ECHO)
    long = "x" * 6000
    assert terminal.run(f"echo {long} | wc -c").output.strip() == b"6001"
    terminal.type("echo " + long + " | wc -c\r")
    marks = terminal.until("__PROMPT__", lambda mark: mark.number("c") > 21)
    begin = next(mark for mark in marks if mark.kind == "__BEGIN__")
    assert b"6001" in terminal.data[begin.end :]


def test_osc_133_is_not_doubled(open_terminal: Open) -> None:
    terminal = open_terminal("fish")
    terminal.start()
    run = terminal.run("echo hi; false")
    zone = terminal.data[run.marks[0].start - 10 : run.prompt.end]
    assert zone.count(b"\x1b]133;C") == 1 and zone.count(b"\x1b]133;D;1") == 1


def test_exit_and_user_configuration(open_terminal: Open) -> None:
    terminal = open_terminal("fish", "set -g from_config yes\nalias greet 'echo hello'")
    terminal.start()
    assert terminal.run("echo $from_config; greet").output == b"yes\r\nhello\r\n"
    # In a sourced file, fish 3 ends only the file.
    terminal.type("exit 5\r")
    assert terminal.until_end() == 5


def test_hooks_are_read_back_as_they_are() -> None:
    content = shells.plan(
        "fish", directory="/d", instance=1, nonce=NONCE, login=False, inherited={"PATH": os.environ["PATH"]}
    ).files[0][1]
    assert content.endswith((shells.shellrc_directory() / "fish" / "blockpty.fish").read_bytes())
