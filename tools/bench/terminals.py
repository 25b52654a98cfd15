"""A program on a terminal with nothing around it, for the other side of a comparison.

The terminal gets size and modes from the same function that prepares blockpty's, and the program the same
environment. Who reads from the master, and how, is up to the benchmark.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import termios
from collections.abc import Iterator, Sequence
from pathlib import Path

from blockpty.host import spawn
from blockpty.host.shells import clean_environment
from blockpty.host.terminal import LOAD, LOADS

CHUNK = 64 * 1024
SPLICE_NONBLOCK = 2
PROMPT = b"bench$ "
# No program here takes a hundredth of it; a benchmark that waits for ever says nothing of why.
STUCK_SECONDS = 60.0


@contextlib.contextmanager
def on_terminal(argv: Sequence[str], **additions: str) -> Iterator[int]:
    """Run a program on a fresh terminal and yield the master; at the end the program is hung up and collected."""
    master, slave = os.openpty()
    spawn.prepare(slave, 80, 24)
    environment = {**clean_environment(os.environ), **additions}
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
            for number in (0, 1, 2):
                os.dup2(slave, number)
            os.closerange(3, 4096)
            # Python ignores these, and what is ignored stays so over exec.
            for name in (signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(name, signal.SIG_DFL)
            os.execvpe(argv[0], [*argv], environment)
        finally:
            os._exit(127)
    os.close(slave)
    try:
        yield master
    finally:
        os.close(master)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def read_until(master: int, end: bytes) -> bytes:
    """Read, blocking, until what came ends with `end`."""
    data = b""
    while not data.endswith(end):
        data += read_some(master, data)
    return data


def read_some(master: int, before: bytes) -> bytes:
    """Read, blocking, what is there; raises TimeoutError, which shows what came before, when nothing comes any more."""
    ready, _, _ = select.select((master,), (), (), STUCK_SECONDS)
    if not ready:
        raise TimeoutError(f"the program says nothing any more; the last of its {len(before)} bytes: {before[-300:]!r}")
    return os.read(master, CHUNK)


def _load(master: int, pipe_w: int) -> int:
    """Move what the pipe takes; raises BlockingIOError when there is nothing, OSError at the end."""
    left = 0
    for _ in range(LOADS):
        try:
            left += os.splice(master, pipe_w, LOAD, flags=SPLICE_NONBLOCK)
        except OSError:
            if not left:
                raise
            break
    return left


def splice_all(master: int, path: Path) -> int:
    """Move everything that the terminal prints into a file until its end; return the number of bytes.

    This is the least that can be done: wait, master to pipe, pipe to file. Loads and waiting are those of the recorder.
    """
    pipe_r, pipe_w = os.pipe()
    file = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
    os.set_blocking(master, False)
    size = 0
    try:
        with select.epoll() as poller:
            poller.register(master, select.EPOLLIN)
            while True:
                poller.poll()
                with contextlib.suppress(BlockingIOError):
                    while True:
                        left = _load(master, pipe_w)
                        while left:
                            moved = os.splice(pipe_r, file, left, offset_dst=size, flags=SPLICE_NONBLOCK)
                            left, size = left - moved, size + moved
    except OSError:
        # EIO: no process has the terminal open any more.
        return size
    finally:
        for fd in (pipe_r, pipe_w, file):
            os.close(fd)
