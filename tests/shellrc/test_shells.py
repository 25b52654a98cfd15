"""What every shell does at its prompt: no forks, and one word about who it is and where."""

from __future__ import annotations

import os
import pwd
import re
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.shellrc.conftest import Terminal


@pytest.mark.linux
@pytest.mark.needs("strace")
@pytest.mark.parametrize(
    ("shell", "rc"),
    [("bash", "PROMPT_COMMAND='PS1=\"$PWD> \"'"), ("zsh", ""), ("fish", ""), ("dash", "")],
    ids=["bash", "zsh", "fish", "dash"],
)
def test_a_prompt_forks_nothing(open_terminal: Callable[..., Terminal], shell: str, rc: str, tmp_path: Path) -> None:
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
def test_a_shell_says_once_who_it_is_and_where(open_terminal: Callable[..., Terminal], shell: str) -> None:
    user, host = pwd.getpwuid(os.getuid()).pw_name, socket.gethostname()
    terminal = open_terminal(shell, additions={"USER": user, "LOGNAME": user})
    hello, *others = terminal.start()
    assert (hello.fields["u"], hello.fields["h"]) == (user, host)
    assert len(hello.raw) <= 512 and not any("u" in mark.fields for mark in others)


@pytest.mark.parametrize("shell", ["dash", "mksh", "ksh93"])
@pytest.mark.parametrize("name", ["K\u00f6nig", "a;x=1", "DOMAIN\\user", "u" * 65, "a b"])
def test_a_name_that_a_mark_cannot_hold_is_left_out(
    open_terminal: Callable[..., Terminal], shell: str, name: str
) -> None:
    terminal = open_terminal(shell, additions={"USER": name, "LOGNAME": name})
    hello = terminal.start()[0]
    assert hello.kind == "__HELLO__" and hello.fields["u"] == "" and "x" not in hello.fields
