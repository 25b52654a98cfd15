"""Real programs: the screen of what they printed is the one that tmux shows, given the same bytes.

tmux runs the program in a pane, copies what it prints into a file (pipe-pane) and tells what it shows (capture-pane).
Both come to rest when the program has, so a case waits until the two agree and fails with what differs if they do not.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from blockpty.screen import Emulator
from tests.support.emulators import fed, text

COLS, ROWS = 80, 24
_PATIENCE_S = 20.0


def shown_by_tmux(captured: str, cols: int, rows: int) -> list[str]:
    """Return the rows of a capture; line drawing comes as SO, letters, SI, so it takes a terminal to read them."""
    return text(fed("\x1b)0" + captured.removesuffix("\n").replace("\n", "\r\n"), cols, rows))


class Pane:
    """A pane of a tmux server of its own, and an emulator that is fed the same bytes."""

    def __init__(self, place: Path) -> None:
        self._tmux = ["tmux", "-S", str(place / "s"), "-f", os.devnull]
        self._copy = place / "printed"
        self._copy.touch()
        self._taken = 0
        self.emulator = Emulator(COLS, ROWS)

    def __call__(self, *arguments: str) -> str:
        return subprocess.run([*self._tmux, *arguments], capture_output=True, text=True, check=True, timeout=30).stdout

    def start(self, command: str) -> None:
        gate = "stty -echo; echo ready; read -r line; stty echo; clear; "
        self("new-session", "-d", "-x", str(COLS), "-y", str(ROWS), gate + command + "; exec cat")
        self("set", "-g", "status", "off")
        self.shows("ready")
        self("pipe-pane", f"cat >> {self._copy}")
        self.type("Enter")

    def type(self, *keys: str) -> None:
        self("send-keys", *keys)

    def shows(self, part: str) -> None:
        """Wait until tmux shows this text."""
        self._wait(lambda: part in self("capture-pane", "-p"), part)

    def resize(self, cols: int, rows: int, *, filled: bool = True) -> None:
        """Change the size of both, at rest; `filled`: the program draws the last row."""
        self.agree()
        self("resize-window", "-x", str(cols), "-y", str(rows))
        self.emulator.resize(cols, rows)
        # A key that comes while less handles the signal is lost, so wait for the new last row.
        self.agree(filled=filled)

    def agree(self, *shown: str, filled: bool = False, alt: bool | None = None) -> None:
        """Wait until tmux shows these texts (something in the last row; that screen), and the emulator the same."""
        last: list[object] = []

        def agreed() -> bool:
            printed = self._copy.read_bytes()
            self.emulator.feed(printed[self._taken :])
            self._taken = len(printed)
            theirs = shown_by_tmux(self("capture-pane", "-e", "-p"), self.emulator.cols, self.emulator.rows)
            cursor = self("display-message", "-p", "#{cursor_x},#{cursor_y},#{alternate_on}").strip()
            ours = f"{self.emulator.x},{self.emulator.y},{int(self.emulator.alt)}"
            last[:] = [text(self.emulator), theirs, ours, cursor]
            if (filled and len(theirs) < self.emulator.rows) or (alt is not None and cursor[-1] != str(int(alt))):
                return False
            return all(any(part in line for line in theirs) for part in shown) and last[0] == theirs and ours == cursor

        self._wait(agreed, last)

    def _wait(self, done: object, what: object) -> None:
        assert callable(done)
        deadline = time.monotonic() + _PATIENCE_S
        while not done():
            assert time.monotonic() < deadline, what
            # tmux has nothing to wait on for "the program is at rest".
            time.sleep(0.02)


@pytest.fixture
def pane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pane]:
    made = Pane(tmp_path_factory.mktemp("p"))
    yield made
    with contextlib.suppress(subprocess.CalledProcessError):
        made("kill-server")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "text"
    made.write_text("".join(f"line {number} {'word ' * (number % 25)}\n" for number in range(200)))
    return made


@pytest.mark.needs("tmux", "vim")
def test_vim(pane: Pane, file: Path) -> None:
    # A long path would not fit into vim's last line, which then asks for Enter.
    pane.start(f"cd {file.parent}; vim -u NONE -c 'syntax on' -c 'set number ruler' {file.name}")
    pane.agree("line 0")
    pane.type("C-d", "C-d", "C-u", "j", "j")
    pane.type("i", "edited 漢字", "Escape")
    pane.agree("edited 漢字")
    pane.resize(60, 15)
    pane.type("d", "d", "G")
    pane.agree("line 199")
    pane.type(":wq", "Enter")
    pane.agree(alt=False)
    assert "line 199" in file.read_text()


@pytest.mark.needs("tmux", "less")
def test_less(pane: Pane, file: Path) -> None:
    pane.start(f"less {file}")
    pane.agree("line 0")
    pane.type("Space", "j", "j", "k", "b")
    pane.type("/line 150", "Enter")
    pane.agree("line 150")
    pane.resize(100, 30)
    pane.type("G")
    pane.agree("line 199")
    pane.type("q")
    pane.agree(alt=False)


@pytest.mark.needs("tmux", "nano")
def test_nano(pane: Pane, file: Path) -> None:
    pane.start(f"nano {file}")
    pane.agree("line 0")
    pane.type("C-v", "new text", "Enter")
    pane.agree("new text")
    pane.resize(60, 15)
    pane.agree()


@pytest.mark.needs("tmux", "top")
def test_top(pane: Pane) -> None:
    pane.start("top -d 0.3")
    pane.shows("PID")
    # What draws on and on is not seen twice in the same state by a busy machine: it comes to rest first.
    pane.type("d", "1000", "Enter")
    pane.agree("PID")
    pane.resize(100, 30, filled=False)
    pane.type("q")
    pane.agree("PID")


@pytest.mark.needs("tmux", "gdb")
def test_gdb(pane: Pane) -> None:
    pane.start("gdb -q -nx")
    pane.agree("(gdb)")
    pane.type("tui enable", "Enter")
    pane.agree("No Source Available")
    pane.resize(100, 30, filled=False)
    pane.type("print 6 * 7", "Enter")
    # tmux shows parts of the alternate screen after `tui disable`, because of the resize; so this is the end.
    pane.agree("$1 = 42")


@pytest.mark.needs("tmux", "gdb", "gcc")
def test_gdb_on_a_program(pane: Pane, tmp_path: Path) -> None:
    (tmp_path / "small.c").write_text(
        "#include <stdio.h>\n\nint main(void)\n{\n    int sum = 0;\n"
        "    for (int n = 1; n < 10; n++)\n        sum += n;\n"
        '    printf("%d\\n", sum);\n    return 0;\n}\n'
    )
    subprocess.run(["gcc", "-g", "-o", tmp_path / "small", tmp_path / "small.c"], check=True, timeout=60)
    pane.start(f"cd {tmp_path}; gdb -q -nx small")
    pane.agree("(gdb)")
    pane.type("list main", "Enter")
    pane.agree("int main")
    pane.type("tui enable", "Enter")
    pane.agree("small.c", "sum += n")
    pane.resize(100, 30, filled=False)
    pane.type("info line main", "Enter")
    pane.agree("starts at address")


@pytest.mark.needs("tmux", "man", "less")
def test_man(pane: Pane, tmp_path: Path) -> None:
    page = tmp_path / "thing.1"
    page.write_text(".TH THING 1\n.SH NAME\nthing \\- a \\fBbold\\fR word\n.SH TEXT\n" + "words and words\n.PP\n" * 40)
    pane.start(f"MANPAGER=less man -l {page}")
    pane.agree("THING", "NAME")
    pane.type("Space", "k", "/TEXT", "Enter")
    pane.agree()
    pane.resize(70, 20)
    pane.type("q")
    pane.agree(alt=False)


@pytest.mark.needs("tmux", "watch")
def test_watch(pane: Pane) -> None:
    pane.start("watch -n 0.2 -c 'printf \"\\033[31mred\\033[m %s\\n\" 1 2 3'")
    pane.agree("red 3")
    pane.resize(60, 15, filled=False)
    pane.type("C-c")
    pane.agree(alt=False)


@pytest.mark.needs("tmux", "whiptail")
def test_whiptail(pane: Pane) -> None:
    pane.start("whiptail --yesno 'Shall it be?' 10 40")
    pane.agree("Shall it be?")
    pane.type("Tab")
    pane.resize(100, 30, filled=False)
    pane.type("Tab")
    pane.agree("Shall it be?")


@pytest.mark.needs("tmux", "python3")
def test_python(pane: Pane) -> None:
    pane.start("python3 -q")
    pane.agree(">>>")
    pane.type("for n in range(40): print(n, 'x' * n * 3)", "Enter", "Enter")
    pane.agree("39 xxx")
    pane.resize(100, 30, filled=False)
    pane.type("print('after')", "Enter")
    pane.agree("after")


@pytest.mark.needs("tmux")
def test_tmux_inside(pane: Pane, tmp_path_factory: pytest.TempPathFactory) -> None:
    socket = tmp_path_factory.mktemp("q") / "s"
    pane.start(f"TMUX= tmux -S {socket} -f {os.devnull} new-session 'seq 100; exec cat'")
    pane.agree("100")
    subprocess.run(["tmux", "-S", str(socket), "split-window", "-h", "seq 50; exec cat"], check=True, timeout=30)
    pane.agree("50")
    pane.resize(100, 30)
    pane.agree("50")
    subprocess.run(["tmux", "-S", str(socket), "kill-server"], check=True, timeout=30)
    pane.agree()


@pytest.mark.needs("tmux")
def test_wrapping_colours_and_wide_characters(pane: Pane, tmp_path: Path) -> None:
    printed = tmp_path / "output"
    printed.write_text(
        "\033[31;44mred\033[K\033[0m\n"
        + "漢字" * 30
        + "\n"
        + "x" * 200
        + "\n"
        + "\033[5;10Hhere\033[3;7r\033[7;1H\n\n\nin\033[r"
        "\033[20;1H\033[1;4mend\033[m \033(0lqk\033(B e\u0301\t|\n"
    )
    pane.start(f"cat {printed}")
    pane.agree("end", "┌─┐")
