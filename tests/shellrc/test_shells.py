"""What shells have in common: no forks at the prompt, who they are and where, and the marks that bash and zsh print."""

from __future__ import annotations

import os
import pwd
import re
import signal
import socket
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from .conftest import NONCE, Terminal, as_string_version, check_cycle, kinds

Open = Callable[..., Terminal]

NAMES = [
    b"a b", b"a\nb", "ünï ✓".encode(), b"100%", b"a;b", b"esc\x1b[31m", b"bel\x07", b"\xff\xfe", b"it's", b"a:b,c=d",
    b"-dash", b"$HOME", b"\\", b"*", b"x" * 200, "é".encode() * 100,
]  # fmt: skip


@pytest.fixture(params=["bash", "bash, string", "zsh"])
def shell(request: pytest.FixtureRequest, open_terminal: Open) -> Open:
    """Open zsh, or bash with either kind of PROMPT_COMMAND."""
    name, _, string = request.param.partition(", ")
    return partial(open_terminal, name, **({"edit": as_string_version} if string else {}))


@pytest.mark.linux
@pytest.mark.needs("strace")
@pytest.mark.parametrize(
    ("shell", "rc"),
    [("bash", "PROMPT_COMMAND='PS1=\"$PWD> \"'"), ("zsh", ""), ("fish", ""), ("dash", "")],
    ids=["bash", "zsh", "fish", "dash"],
)
def test_a_prompt_forks_nothing(open_terminal: Open, shell: str, rc: str, tmp_path: Path) -> None:
    terminal = open_terminal(shell, rc)
    terminal.start()
    trace = tmp_path / "trace"
    calls = "trace=clone,clone3,fork,vfork"
    command = ["strace", "-f", "-p", str(terminal.pid), "-e", calls, "-o", str(trace)]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as tracer:
        assert tracer.stderr is not None
        if b"attached" not in tracer.stderr.readline():
            pytest.skip("this system does not allow tracing")
        terminal.run("cd /tmp")
        terminal.run("/bin/true")
        terminal.run(":")
        tracer.send_signal(signal.SIGINT)
    # A thread of the shell's own is no process.
    made = [line for line in trace.read_text().splitlines() if re.search(r"\b(?:clone3?|v?fork)\(", line)]
    assert len([line for line in made if "CLONE_THREAD" not in line]) == 1, "only /bin/true is a process"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "dash", "ksh93", "mksh"])
def test_a_shell_says_once_who_it_is_and_where(open_terminal: Open, shell: str) -> None:
    user, host = pwd.getpwuid(os.getuid()).pw_name, socket.gethostname()
    terminal = open_terminal(shell, additions={"USER": user, "LOGNAME": user})
    hello, *others = terminal.start()
    assert (hello.fields["u"], hello.fields["h"]) == (user, host)
    assert len(hello.raw) <= 512 and not any("u" in mark.fields for mark in others)


@pytest.mark.parametrize("shell", ["dash", "mksh", "ksh93"])
@pytest.mark.parametrize("name", ["K\u00f6nig", "a;x=1", "DOMAIN\\user", "u" * 65, "a b"])
def test_a_name_that_a_mark_cannot_hold_is_left_out(
    open_terminal: Open, shell: str, name: str
) -> None:
    terminal = open_terminal(shell, additions={"USER": name, "LOGNAME": name})
    hello = terminal.start()[0]
    assert hello.kind == "__HELLO__" and hello.fields["u"] == "" and "x" not in hello.fields


def test_foreign_terminals_get_their_zones(shell: Open) -> None:
    terminal = shell()
    terminal.start()
    run = terminal.run("echo hi; false")
    assert terminal.data[: run.one("BEGIN").start].endswith(b"\x1b]133;C\x07")
    assert terminal.data[run.one("END").end :].startswith(b"\x1b]133;D;1\x07\x1b]133;A\x07")
    assert terminal.data[: run.prompt.start].endswith(b"\x1b]133;B\x07")


def test_interrupt_aborts_the_rest(shell: Open) -> None:
    terminal = shell()
    terminal.start()
    terminal.submit("sh -c 'echo started; exec sleep 600'\necho after")
    terminal.until("__BEGIN__")
    start = terminal.position
    terminal.until_text(b"started\r\n")
    assert terminal.interrupt()[-1].fields["x"] == "130"
    assert b"after" not in terminal.data[start:]


def test_several_lines_are_one_block(shell: Open) -> None:
    terminal = shell()
    before = terminal.start()[-1]
    run = terminal.run("alias shout='echo LOUD'\nshout\ncat <<EOF\n$((1+1))\nEOF\ndeclare kept=yes\nfalse\n\techo $?")
    check_cycle(run.marks, terminal.pid, before=before)
    assert run.output == b"LOUD\r\n2\r\n1\r\n"
    assert terminal.run("echo $kept").output == b"yes\r\n"


def test_continuation_prompt(shell: Open) -> None:
    terminal = shell()
    terminal.start()
    terminal.type("echo 'a\r")
    mark = terminal.until("__PS2__")[-1]
    in_zsh = terminal.plan.name == "zsh"
    assert (mark.fields["n"], mark.number("s")) == (NONCE, 1)
    assert not in_zsh or mark.number("p") == 1
    expected = ["CMD", "BEGIN", "OUT_END", "END", "PROMPT"] if in_zsh else ["BEGIN", "END", "PROMPT"]
    assert kinds(terminal.line("b'")) == expected


@pytest.mark.parametrize("redirection", ["exec >/dev/null", "exec 1>&-", "exec >plain_file"])
def test_output_elsewhere(shell: Open, redirection: str) -> None:
    terminal = shell()
    before = terminal.start()[-1]
    run = terminal.run(redirection)
    check_cycle(run.marks, terminal.pid, before=before)
    run2 = terminal.run("echo hi; (exit 3)")
    check_cycle(run2.marks, terminal.pid, before=run.prompt)
    assert run2.status == 3
    assert b"hi" not in run2.output


def test_directories(shell: Open) -> None:
    terminal = shell()
    terminal.start()
    for name in NAMES:
        path = os.fsencode(terminal.home) + b"/" + name
        os.mkdir(path)
        run = terminal.run(":", os.fsdecode(path))
        assert run.status == 0
        assert terminal.reported_directory(run.marks) == path
        assert all(len(mark.raw) <= 512 for mark in run.marks)
    assert terminal.run("x=é; echo ${#x}").output == b"1\r\n"


def test_directory_of_two_thousand_bytes(shell: Open) -> None:
    terminal = shell()
    terminal.start()
    path = os.fsencode(terminal.home)
    while len(path) < 2000:
        path += b"/" + "é;".encode() * 60
        os.mkdir(path)
    run = terminal.run(":", os.fsdecode(path))
    assert terminal.reported_directory(run.marks) == path
    assert all(len(mark.raw) <= 512 for mark in run.marks)
    assert "CWD" not in terminal.run(":").kinds


def test_missing_directory_runs_nothing(shell: Open) -> None:
    terminal = shell()
    terminal.start()
    run = terminal.run("echo never", "/does/not/exist")
    assert run.status == 1
    assert b"never" not in run.output
