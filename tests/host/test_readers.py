"""Which process waits for input, found from the system calls of real programs on a real terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from blockpty.host import readers
from tests.support.terminal_readers import skip_where_unknown

pytestmark = [pytest.mark.linux, skip_where_unknown()]

THREAD: Final = "import sys, threading; t = threading.Thread(target=sys.stdin.read); t.start(); t.join()"
SELECT: Final = "import select, os; r, w = os.pipe(); select.select([0{more}], [], []{limit})"
POLL: Final = "import select; p = select.{kind}(); p.register(0, 1); p.poll({limit})"
PIPE: Final = "import os, select; r = os.open('/dev/tty', os.O_RDONLY); select.select([0, r], [], [])"
# What a program does, whether that is sure at once, and whether it is accepted after a while.
WAYS: Final[dict[str, tuple[str, bool, bool]]] = {
    "read": ("import os; os.read(0, 1)", True, True),
    "read of /dev/tty": ("import os; os.read(os.open('/dev/tty', os.O_RDONLY), 1)", True, True),
    "select": (SELECT.format(more="", limit=""), True, True),
    "select for a time": (SELECT.format(more="", limit=", 1000"), False, True),
    "select of more": (SELECT.format(more=", r", limit=""), False, True),
    "poll": (POLL.format(kind="poll", limit=""), True, True),
    "poll for a time": (POLL.format(kind="poll", limit="1000000"), False, True),
    "epoll": (POLL.format(kind="epoll", limit=""), False, True),
    "another thread": (THREAD, False, True),
    "sleep": ("import time; time.sleep(1000)", False, False),
    "write only": ("import select; p = select.poll(); p.register(1, 0); p.poll()", False, False),
    "something else": ("import os; r, w = os.pipe(); os.read(r, 1)", False, False),
    "a relay": ("import pty; pty.spawn(['sleep', '1000'])", False, False),
}


class Terminal:
    """A terminal with one program in its foreground."""

    def __init__(self, code: str, stdin: int | None = None) -> None:
        self.master, slave = pty.openpty()
        self.name = os.ttyname(slave)
        ready, writer = os.pipe()
        take = "import fcntl, os, signal, termios; os.setsid() if os.getsid(0) != os.getpid() else 0; "
        take += f"fcntl.ioctl(1, termios.TIOCSCTTY, 0); os.write({writer}, b'x'); os.close({writer}); "
        self.program = subprocess.Popen(
            [sys.executable, "-c", take + code], stdin=slave if stdin is None else stdin, stdout=slave, stderr=slave,
            start_new_session=True, pass_fds=(writer,),
        )  # fmt: skip
        os.close(slave)
        os.close(writer)
        assert os.read(ready, 1) == b"x"
        os.close(ready)

    def reader(self, *, patient: bool, canonical: bool = False) -> int | None:
        return readers.find_reader(self.program.pid, self.name, canonical=canonical, patient=patient)

    def settle(self) -> None:
        """Return when the program is blocked for good."""
        place = Path(f"/proc/{self.program.pid}/syscall")
        same, last = 0, ""
        while same < 200:
            now = place.read_text()
            same = same + 1 if now == last and now != "running\n" else 0
            last = now
            os.sched_yield()

    def close(self) -> None:
        self.program.kill()
        self.program.wait()
        os.close(self.master)


@pytest.mark.parametrize("way", WAYS)
def test_what_is_waiting_for_input(way: str) -> None:
    code, sure, likely = WAYS[way]
    terminal = Terminal(code)
    try:
        if likely:
            while terminal.reader(patient=True) is None:
                assert terminal.program.poll() is None
        terminal.settle()
        assert (terminal.reader(patient=False) is not None, terminal.reader(patient=True) is not None) == (sure, likely)
    finally:
        terminal.close()


def test_standard_input_from_elsewhere_is_what_a_program_waits_for() -> None:
    """As a pager that fills its first page, and could be interrupted by a key."""
    source, sink = os.pipe()
    terminal = Terminal(PIPE, stdin=source)
    try:
        terminal.settle()
        assert terminal.reader(patient=True) is None
    finally:
        terminal.close()
        os.close(source)
        os.close(sink)


def test_a_program_that_passes_keys_on_counts_where_it_reads_a_line_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("blockpty.host.spawn.process_name", lambda pid: "ssh")
    terminal = Terminal("import os; os.read(0, 1)")
    try:
        while terminal.reader(patient=False, canonical=True) is None:
            assert terminal.program.poll() is None
        assert terminal.reader(patient=True, canonical=False) is None
    finally:
        terminal.close()


def test_nothing_is_known_of_a_process_that_is_gone() -> None:
    terminal = Terminal("pass")
    terminal.program.wait()
    try:
        assert terminal.reader(patient=True) is None
    finally:
        terminal.close()
