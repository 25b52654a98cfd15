"""A real shell on a real PTY with a throw-away HOME, and the marks it prints.

Nothing here sleeps: every step reads until a named mark or text has come, with one deadline.
"""

from __future__ import annotations

import fcntl
import os
import re
import select
import shutil
import signal
import struct
import termios
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote_to_bytes

import pytest

from blockpty.host import shells

NONCE = "AbCdEfGhIjKlMnOpQrSt_-"
DEADLINE = 20.0
MARK = re.compile(rb"\x1b\]7717;([A-Z_0-9]+);([^\x07\x1b]*)\x07")


@dataclass(frozen=True)
class Mark:
    kind: str
    fields: dict[str, str]
    start: int
    end: int
    raw: bytes

    def number(self, name: str) -> int:
        return int(self.fields[name])


class Terminal:
    """One shell under test. `data` is everything it printed; `position` is what `until` has consumed."""

    def __init__(self, home: Path, shell: str, *, login: bool = False, edit: Callable[[bytes], bytes] | None = None,
                 additions: dict[str, str] | None = None, bare: bool = False, nonce: str = NONCE) -> None:  # fmt: skip
        self.home = home
        self.directory = home / "conversation"
        self.directory.mkdir(mode=0o700, exist_ok=True)
        inherited = {"HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8", "USER": "someone"}
        self.plan = shells.plan(
            shell, directory=str(self.directory), instance=1, nonce=nonce, login=login, inherited=inherited,
            additions=additions,
        )  # fmt: skip
        for name, content in self.plan.files:
            path = self.directory / name
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.write_bytes(edit(content) if edit else content)
            path.chmod(0o600)
        argv = self.plan.argv if not bare else (self.plan.argv[0], "-i")
        env = self.plan.env if not bare else {**self.plan.env, "ZDOTDIR": str(home)}
        self.data = b""
        self.position = 0
        self.count = 0
        self.unlinked = False
        self.pid, self.fd = os.forkpty()
        if self.pid == 0:
            try:
                # A test run in the background of a shell has them ignored, and so would every child.
                for ignored in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP):
                    signal.signal(ignored, signal.SIG_DFL)
                # Before the shell is there: one that has begun draws its prompt again for another size.
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
                os.chdir(home)
                os.execve(argv[0], argv, env)
            finally:
                os._exit(127)
        os.set_blocking(self.fd, False)
        os.set_inheritable(self.fd, False)

    # -- reading ------------------------------------------------------------------------------------------------------

    def _read_some(self, deadline: float) -> bool:
        ready, _, _ = select.select([self.fd], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise AssertionError(f"deadline passed; the terminal showed {self.data[self.position :][-3000:]!r}")
        try:
            chunk = os.read(self.fd, 65536)
        except OSError:
            return False
        self.data += chunk
        if not self.unlinked and NONCE.encode() in chunk:
            self.unlinked = True
            for name in self.plan.secret_files:
                path = self.directory / name
                if path.is_dir():
                    path.rmdir()
                elif path.exists():
                    path.unlink()
        return bool(chunk)

    def marks(self, since: int = 0) -> list[Mark]:
        found = []
        for match in MARK.finditer(self.data, since):
            fields = dict(part.split("=", 1) for part in match[2].decode("ascii").split(";"))
            found.append(Mark(match[1].decode(), fields, match.start(), match.end(), match[0]))
        return found

    def until(self, kind: str = "__PROMPT__", where: Callable[[Mark], bool] = lambda mark: True) -> list[Mark]:
        """Read until the next mark of `kind` after `position`; consume and return all marks up to and with it."""
        deadline = time.monotonic() + DEADLINE
        while True:
            seen: list[Mark] = []
            for mark in self.marks(self.position):
                seen.append(mark)
                if mark.kind == kind and where(mark):
                    self.position = mark.end
                    return seen
            if not self._read_some(deadline):
                raise AssertionError(f"the shell ended; it showed {self.data[self.position :][-3000:]!r}")

    def until_text(self, text: bytes) -> bytes:
        deadline = time.monotonic() + DEADLINE
        while (found := self.data.find(text, self.position)) < 0:
            if not self._read_some(deadline):
                raise AssertionError(f"the shell ended; it showed {self.data[self.position :][-3000:]!r}")
        taken = self.data[self.position : found + len(text)]
        self.position = found + len(text)
        return taken

    def until_end(self) -> int:
        """Read to end of file; return the wait status as an exit code (negative: signal)."""
        deadline = time.monotonic() + DEADLINE
        while self._read_some(deadline):
            pass
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        return os.waitstatus_to_exitcode(status)

    # -- writing ------------------------------------------------------------------------------------------------------

    def type(self, text: str | bytes) -> None:
        data = text.encode() if isinstance(text, str) else text
        while data:
            select.select([], [self.fd], [], DEADLINE)
            data = data[os.write(self.fd, data) :]

    def interrupt(self) -> list[Mark]:
        """Press Ctrl-C until a prompt comes.

        Both shells, also without our hooks, now and then lose a SIGINT that arrives within microseconds of what they
        print (about 1 in 100 here); a person, and the engine, presses again.
        """
        for _ in range(int(DEADLINE)):
            self.type("\x03")
            deadline = time.monotonic() + 1.0
            while not any(mark.kind == "__PROMPT__" for mark in self.marks(self.position)):
                if not select.select([self.fd], [], [], max(0.0, deadline - time.monotonic()))[0]:
                    break
                self._read_some(deadline + 1.0)
            else:
                return self.until("__PROMPT__")
        raise AssertionError(f"no prompt came; the terminal showed {self.data[-3000:]!r}")

    def start(self) -> list[Mark]:
        return self.until("__PROMPT__")

    def submit(self, command: str, cwd: str | None = None) -> None:
        self.count += 1
        path = self.directory / "commands" / str(self.count)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(shells.stage(command, cwd, self.plan.name))
        self.type(shells.submit_line(str(path), self.plan.name) + "\r")

    def line(self, text: str) -> list[Mark]:
        """Type a line and wait for the next prompt."""
        self.type(text + "\r")
        return self.until("__PROMPT__")

    def run(self, command: str, cwd: str | None = None) -> Run:
        self.submit(command, cwd)
        return Run(self, self.until("__PROMPT__"))

    def reported_directory(self, marks: list[Mark]) -> bytes:
        """Decode the __CWD__ marks among `marks`."""
        pieces = [mark.fields["d"] for mark in marks if mark.kind == "__CWD__"]
        if len(pieces) == 1 and ":" not in pieces[0]:
            return unquote_to_bytes(pieces[0])
        heads = [piece.split(":", 1)[0] for piece in pieces]
        assert heads == [f"{k}/{len(pieces)}" for k in range(1, len(pieces) + 1)]
        return unquote_to_bytes("".join(piece.split(":", 1)[1] for piece in pieces))

    def close(self) -> None:
        os.close(self.fd)
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


class Run:
    """The marks of one submitted command, from the echo to the next prompt."""

    def __init__(self, terminal: Terminal, marks: list[Mark]) -> None:
        self.marks = marks
        self.kinds = [mark.kind.strip("_") for mark in marks]
        begin = next((mark for mark in marks if mark.kind == "__BEGIN__"), None)
        self.output = b""
        if begin is not None:
            after = marks[marks.index(begin) + 1 :]
            end = next(mark for mark in after if mark.kind in ("__OUT_END__", "__END__", "__PROMPT__"))
            self.output = terminal.data[begin.end : end.start]
        self.prompt = marks[-1]
        self.status = int(self.prompt.fields["x"])

    def one(self, kind: str) -> Mark:
        found = [mark for mark in self.marks if mark.kind == f"__{kind}__"]
        assert len(found) == 1, (kind, self.kinds)
        return found[0]


def kinds(marks: list[Mark]) -> list[str]:
    return [mark.kind.strip("_") for mark in marks]


def check_cycle(marks: list[Mark], pid: int, *, before: Mark) -> None:
    """BEGIN, END, PROMPT with the right numbers, all of one instance."""
    kept = [mark for mark in marks if mark.kind not in ("__OUT_END__", "__CWD__", "__LINE__")]
    assert [mark.kind for mark in kept] == ["__BEGIN__", "__END__", "__PROMPT__"]
    assert [mark.number("s") - before.number("s") for mark in kept] == [1, 2, 2]
    assert [mark.number("c") - before.number("c") for mark in kept] == [1, 1, 1]
    assert kept[2].number("p") == before.number("p") + 1
    for mark in marks:
        assert mark.fields["n"] == NONCE
        assert mark.fields["i"] == str(pid)
        assert len(mark.raw) <= 512


def as_string_version(content: bytes) -> bytes:
    """Make a newer bash take the branch for 4.4 and 5.0, where PROMPT_COMMAND is a string."""
    changed = content.replace(b">= 501))", b">= 9901))")
    assert changed != content
    return changed


@pytest.fixture
def open_terminal(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def open_one(shell: str, rc: str = "", **options: object) -> Terminal:
        if shutil.which(shell) is None:
            pytest.skip(f"{shell} is not installed")
        home = tmp_path / f"home{len(opened)}"
        home.mkdir()
        if shell == "fish":
            (home / ".config" / "fish").mkdir(parents=True)
            # Or it would read all manual pages in the background, and hold the terminal open for that long.
            for folder in (".local/share", ".cache"):
                (home / folder / "fish" / "generated_completions").mkdir(parents=True)
            prompt = "function fish_prompt\n    printf 'ready> '\nend\nset -g fish_greeting\n"
            (home / ".config" / "fish" / "config.fish").write_text(prompt + rc + "\n")
        else:
            name = {"bash": ".bashrc", "zsh": ".zshrc"}.get(shell, ".shrc")
            (home / name).write_text(f"PS1='ready> '\n{rc}\n")
        terminal = Terminal(home, shell, **options)  # type: ignore[arg-type]
        opened.append(terminal)
        return terminal

    yield open_one
    for terminal in opened:
        terminal.close()
