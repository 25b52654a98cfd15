"""Start of a shell on a new terminal, and facts about processes from the system.

The parent's half runs in the keeper, the child's half between fork and exec. Nothing here waits: whether exec worked
is read from a pipe that exec closes. What the shell is and which files it reads is decided by the maker of `argv`
and `env`; this file adds nothing to either.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import glob
import json
import os
import resource
import signal
import struct
import sys
import termios
from collections.abc import Iterator, Sequence
from typing import Any

from blockpty.host import cgroup
from blockpty.host.protocol import Refused

IUTF8 = 0x4000
# What a shell under bubblewrap calls itself (sandbox.py).
INNER_PID = 2
# Processes that are stopped before they are killed; then whatever is there is killed, and looked for again.
STOP_AT_MOST = 1 << 16
# Of the arguments of a process that is reported.
COMMAND_BYTES = 1000
# Of a pipe that a program writes into, which has 64 KiB at first.
PIPE_BYTES = 1 << 18
PTY_LIMIT_ERRORS = (errno.ENOSPC, errno.EAGAIN, errno.ENFILE, errno.EMFILE)


class Spawn:
    """A child between fork and the news of its exec."""

    __slots__ = ("master", "pid", "pidfd", "pipe_r", "pipe_w", "request", "status_fd")

    def __init__(self, request: dict[str, Any], pid: int, fds: Sequence[int], status_fd: int) -> None:
        self.request = request
        self.pid = pid
        self.master, self.pipe_r, self.pipe_w, self.pidfd = fds
        self.status_fd = status_fd

    def outcome(self) -> Refused | None:
        """Read the news: None when the shell runs. Only to be called when `status_fd` is readable."""
        with open(self.status_fd, "rb") as news:
            text = news.read()
        if not text:
            return None
        failure = json.loads(text)
        reason = os.strerror(failure["errno"])
        what = {"chdir": "directory", "sandbox": "sandbox"}.get(failure["stage"], "program")
        return Refused(
            "spawn_failed",
            f"the {what} {failure['path']} cannot be used: {reason}",
            stage=failure["stage"], path=failure["path"], errno=errno.errorcode.get(failure["errno"]),
        )  # fmt: skip

    def close(self) -> None:
        for fd in (self.master, self.pipe_r, self.pipe_w, self.pidfd):
            if fd >= 0:
                os.close(fd)


def start(request: dict[str, Any], limits: tuple[int, int]) -> Spawn:
    """Open a terminal and fork the shell on it.

    Raises:
        Refused: pty_limit (no terminal or descriptor left), spawn_failed (no process left).
    """
    opened: list[int] = []
    try:
        opened += os.openpty()
        opened += os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC) if sys.platform == "linux" else _pipe()
        opened += os.pipe()
        master, slave, pipe_r, pipe_w, status_r, status_w = opened
        os.set_blocking(master, False)
        if request.get("is_piped"):
            # For the program; what the recorder does with it never waits.
            os.set_blocking(pipe_w, True)
            # A user who has many pipes may have none that is larger.
            with contextlib.suppress(OSError):
                fcntl.fcntl(pipe_w, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        prepare(slave, request["cols"], request["rows"])
    except OSError as error:
        for fd in opened:
            os.close(fd)
        if error.errno in PTY_LIMIT_ERRORS:
            raise Refused(
                "pty_limit", f"no terminal is free: {error.strerror}", "close conversations, or raise kernel.pty.max"
            ) from None
        raise Refused("spawn_failed", f"no terminal: {error.strerror}") from None
    try:
        pid = os.fork()
    except OSError as error:
        for fd in opened:
            os.close(fd)
        raise Refused("spawn_failed", f"no process can be started: {error.strerror}") from None
    if pid == 0:
        _become(request, slave, pipe_w, status_w, limits)
    os.close(slave)
    os.close(status_w)
    pidfd = -1
    if hasattr(os, "pidfd_open"):
        with contextlib.suppress(OSError):
            pidfd = os.pidfd_open(pid)
    return Spawn(request, pid, (master, pipe_r, pipe_w, pidfd), status_r)


def _pipe() -> tuple[int, int]:
    ends = os.pipe()
    for fd in ends:
        os.set_blocking(fd, False)
    return ends


def prepare(slave: int, cols: int, rows: int) -> None:
    """Set size and modes before the shell looks: UTF-8 aware erase, and no Ctrl-S that could freeze a conversation.

    Raises OSError.
    """
    set_size(slave, cols, rows)
    try:
        modes = termios.tcgetattr(slave)
        modes[0] = (modes[0] | IUTF8) & ~termios.IXON
        termios.tcsetattr(slave, termios.TCSANOW, modes)
    except termios.error as error:  # is no OSError
        raise OSError(*error.args) from None


def set_size(fd: int, cols: int, rows: int) -> None:
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))


def get_size(fd: int) -> tuple[int, int]:
    """(cols, rows)"""
    rows, cols, _, _ = struct.unpack("HHHH", fcntl.ioctl(fd, termios.TIOCGWINSZ, b"\0" * 8))
    return cols, rows


def _become(request: dict[str, Any], slave: int, pipe_w: int, status_w: int, limits: tuple[int, int]) -> None:
    """The child: turn into the shell, or report why not. Never returns."""
    stage, path = "terminal", "/dev/tty"
    try:
        os.setsid()
        fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        for fd in (0, 1, 2):
            os.dup2(pipe_w if fd == 1 and request.get("is_piped") else slave, fd)
        signal.set_wakeup_fd(-1)
        # Python ignores SIGPIPE and SIGXFSZ, and our starter may have ignored more; ignored signals survive exec.
        for number in signal.valid_signals():
            with contextlib.suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        os.umask(request.get("umask", 0o022))
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        bound_processes(request["cgroup"], request["process_limit"])
        stage, path = "chdir", request["cwd"]
        os.chdir(path)
        env, argv = request["env"], request["argv"]
        if boundary := request.get("sandbox"):
            # Only here: it loads ctypes.
            from blockpty.host import sandbox

            stage, path = "sandbox", str(boundary["program"] or boundary["method"])
            if boundary["method"] == "bwrap":
                sandbox.exec_bwrap(boundary, argv, env, request["cwd"])
            sandbox.restrict(boundary, os.ttyname(0))
        stage, path = "exec", request.get("executable") or argv[0]
        if "/" in path:
            os.execve(path, argv, env)
        os.execvpe(path, argv, env)
    except BaseException as error:  # noqa: BLE001  whatever it is, the parent must get it
        code = error.errno if isinstance(error, OSError) and error.errno else errno.EINVAL
        with contextlib.suppress(BaseException):
            os.write(status_w, json.dumps({"stage": stage, "path": path, "errno": code}).encode())
    os._exit(127)


def bound_processes(path: str | None, limit: int) -> None:
    """Have this process and all that come from it be `limit` at most (0: as many as the system allows).

    By the cgroup where there is one; else by RLIMIT_NPROC, which counts all processes of the user, and not those of
    root.
    """
    if path is not None:
        try:
            cgroup.enter(path)
        except OSError:
            path = None
    if path is None and limit:
        with contextlib.suppress(OSError, ValueError):
            soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
            bounds = [bound for bound in (soft, hard, limit) if bound != resource.RLIM_INFINITY]
            resource.setrlimit(resource.RLIMIT_NPROC, (min(bounds), hard))


# -- asking about processes ---------------------------------------------------------------------------------------


def program_image(pid: int) -> str | None:
    """What changes when a process executes another program; None where unknown (no /proc, or it has ended).

    Its arguments, and the address they lie at, which the kernel chooses anew each time: so `exec bash` is seen in what
    is the same bash already. Where the system shows no addresses (0), the arguments have to do: they stand before
    the last @.
    """
    try:
        with open(f"/proc/{pid}/cmdline", "rb", 0) as file:
            arguments = file.read().decode("latin-1")
        with open(f"/proc/{pid}/stat", "rb", 0) as file:
            # From the third field on; the second, the name, is in parentheses and may hold anything.
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return f"{arguments}@{int(fields[45]):x}" if arguments else None


def is_copy(pid: int, shell: int) -> bool:
    """Return whether a process is a shell's own copy: forked, and not (yet) another program.

    Such are `(...)` and what is about to execute its program, which has no image or no address for a moment. Where the
    system shows no addresses at all, only the latter is known.
    """
    if pid == shell:
        return False
    image, own = program_image(pid), program_image(shell)
    if image is None or own is None or own.endswith("@0"):
        return image is None
    return image == own or image.endswith("@0")


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def process_name(pid: int) -> str | None:
    try:
        with open(f"/proc/{pid}/comm", "rb", 0) as file:
            return file.read().decode("utf-8", "replace").rstrip("\n")
    except OSError:
        return None


_TIOCGPTN = 0x80045430
# read(2) by machine; elsewhere nothing is known.
_READ = {"x86_64": "0", "aarch64": "63", "riscv64": "63", "armv7l": "3", "i686": "3", "ppc64le": "3", "s390x": "3"}
# A pipeline or a wrapper with its child; more are not looked at.
_READERS = 16


def terminal_name(master: int) -> str | None:
    """The path of a master's terminal on Linux (os.ptsname came with Python 3.13); None elsewhere."""
    try:
        (number,) = struct.unpack("I", fcntl.ioctl(master, _TIOCGPTN, b"\0" * 4))
    except OSError:
        return None
    return f"/dev/pts/{number}"


def unread_bytes(master: int) -> int | None:
    """Return how many typed bytes the programs on a master's terminal have not read; None where it is unknown.

    In canonical mode an unfinished line does not count.
    """
    slave = _open_slave(master)
    if slave is None:
        return None
    try:
        (count,) = struct.unpack("i", fcntl.ioctl(slave, termios.FIONREAD, b"\0" * 4))
    except OSError:
        return None
    finally:
        os.close(slave)
    return int(count)


def flush_input(master: int) -> None:
    """Discard what was typed on a master's terminal and not read; on Linux alone, elsewhere it does nothing."""
    slave = _open_slave(master)
    if slave is None:
        return
    try:
        termios.tcflush(slave, termios.TCIFLUSH)
    except termios.error:
        pass
    finally:
        os.close(slave)


def _open_slave(master: int) -> int | None:
    name = terminal_name(master)
    if name is None:
        return None
    try:
        return os.open(name, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None


def reads_terminal(group: int, terminal: str, shell: int = 0) -> bool | None:
    """Whether the leader of a group, or a child of the shell or a descendant in it, is blocked reading a terminal.

    None where it cannot be known: no /proc, or one that hides it (yama lets only a parent see the system call;
    what is left then, the name of the place in the kernel, is the same for terminals and sockets).
    """
    unsure = False
    for pid in group_members(group, shell):
        found = _blocked_reading(pid, terminal)
        if found:
            return True
        unsure |= found is None
    return None if unsure else False


def group_names(group: int, shell: int) -> list[str]:
    """Names of the processes of a group, as for `reads_terminal`: the leader first, parents before their children."""
    return [name for pid in group_members(group, shell) if (name := process_name(pid)) is not None]


def group_members(group: int, shell: int) -> Iterator[int]:
    """The leader of a group, children of the shell and descendants of both in it; no more than `_READERS`."""
    # The leader of a pipeline may have ended before the others.
    waiting = [group, *_children(shell, group)]
    for _ in range(_READERS):
        if not waiting:
            break
        pid = waiting.pop(0)
        yield pid
        waiting += _children(pid, group)


def _children(pid: int, group: int) -> list[int]:
    """Children of a process that are in a process group, the newest if there are many."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", "rb", 0) as file:
            children = [int(child) for child in file.read().split()[-_READERS:]]
    except (OSError, ValueError):
        return []
    return [child for child in children if child != group and (facts := process_facts(child)) and facts[1] == group]


def _blocked_reading(pid: int, terminal: str) -> bool | None:
    try:
        with open(f"/proc/{pid}/syscall", "rb", 0) as file:
            call = file.read().decode("ascii", "replace").split()
    except OSError:
        try:
            with open(f"/proc/{pid}/wchan", "rb", 0) as file:
                place = file.read().decode("ascii", "replace")
        except OSError:
            return None
        return True if place == "n_tty_read" else None if place in ("0", "", "wait_woken") else False
    if len(call) < 2:
        return False
    number = _READ.get(os.uname().machine)
    if number is None:
        return None
    if call[0] != number:
        return False
    try:
        return os.readlink(f"/proc/{pid}/fd/{int(call[1], 16)}") in (terminal, "/dev/tty")
    except (OSError, ValueError):
        return None


def waiting_depth(pid: int) -> int | None:
    """How many bytes of its stack a process uses while it is blocked in a system call; None where that is unknown.

    The same number each time the process waits at the same place, such as its prompt, for as long as it lives.
    """
    try:
        with open(f"/proc/{pid}/syscall", "rb", 0) as file:
            call = file.read().split()
        with open(f"/proc/{pid}/stat", "rb", 0) as file:
            fields = file.read().rpartition(b")")[2].split()
        # The last but one is the stack pointer; the 28th field of stat, the beginning of the stack, is 0 for strangers.
        depth = int(fields[25]) - int(call[-2], 16) if len(call) > 2 else 0
    except (OSError, IndexError, ValueError):
        return None
    return depth if 0 < depth < 1 << 40 else None


def is_running(group: int, shell: int) -> bool:
    """Return whether a process of a foreground group, or the shell, is not asleep; False where that is unknown."""
    found = (process_facts(pid) for pid in (shell, *group_members(group, shell)))
    return any(facts is not None and facts[0] in "RD" for facts in found)


def is_working(pid: int) -> bool:
    """Whether a process is not asleep, or has a child in its own process group, as a command substitution is.

    False where it cannot be known. Needs no right to trace the process, unlike `waiting_depth`.
    """
    facts = process_facts(pid)
    if facts is None:
        return False
    state, group, _ = facts
    children = (process_facts(child) for child in _children(pid, group))
    return state in "RD" or any(child is not None and child[0] not in "ZX" for child in children)


def process_facts(pid: int | str) -> tuple[str, int, int] | None:
    """(state letter, process group, session) of a process, or None."""
    try:
        with open(f"/proc/{pid}/stat", "rb", 0) as file:
            fields = file.read().rpartition(b")")[2].split()
        return fields[0].decode(), int(fields[2]), int(fields[3])
    except (OSError, IndexError, ValueError):
        return None


def inner_shell(leader: int) -> int | None:
    """Return the shell of a bubblewrap process as it is seen here; None where there is none yet, or none any more."""
    for first in _direct_children(leader):
        for pid in _direct_children(first):
            if is_inner_shell(pid):
                return pid
    return None


def is_inner_shell(pid: int) -> bool:
    """Whether a process is, in the innermost of its PID namespaces, the one that a sandboxed shell is."""
    return _innermost(pid) == INNER_PID


def has_children(pid: int) -> bool:
    """Whether a process has any; False where that is unknown."""
    return bool(_direct_children(pid))


def _direct_children(pid: int) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{pid}/children", "rb", 0) as file:
            return [int(child) for child in file.read().split()]
    except (OSError, ValueError):
        return []


def _innermost(pid: int) -> int | None:
    try:
        with open(f"/proc/{pid}/status", "rb", 0) as file:
            for line in file.read().splitlines():
                if line.startswith(b"NSpid:"):
                    return int(line.split()[-1])
    except (OSError, ValueError):
        pass
    return None


def process_birth(pid: int) -> str | None:
    """When a process was started, in ticks since the machine was; with its number this names it for good."""
    try:
        with open(f"/proc/{pid}/stat", "rb", 0) as file:
            return file.read().rpartition(b")")[2].split()[19].decode()
    except (OSError, IndexError):
        return None


def command_line(pid: int) -> str:
    """The arguments of a process, or its name where they cannot be read; "" when it has ended."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb", 0) as file:
            arguments = file.read(COMMAND_BYTES).rstrip(b"\0").replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        arguments = ""
    return arguments or process_name(pid) or ""


def has_open(pid: int, path: str) -> bool:
    """Whether a process has a file open; not where another user's may not be looked at."""
    for link in glob.iglob(f"/proc/{pid}/fd/*"):
        with contextlib.suppress(OSError):
            if os.readlink(link) == path:
                return True
    return False


def descendants(pids: Sequence[int]) -> list[int]:
    """The children of some processes, and all that come from these; nothing where the system does not say."""
    found: dict[int, None] = {}
    waiting = [*pids]
    while waiting:
        pid = waiting.pop()
        for path in glob.iglob(f"/proc/{pid}/task/*/children"):
            with contextlib.suppress(OSError), open(path, "rb", 0) as file:
                new = [child for child in map(int, file.read().split()) if child not in found]
                found.update(dict.fromkeys(new))
                waiting += new
    return [*found]


def session_members(session: int, path: str | None = None) -> Iterator[tuple[int, int]]:
    """(pid, process group) of every process of a session that is not yet dead; nothing where there is no /proc.

    `path` is the cgroup that its shell was put into: only what is in it is looked at, which is quick where there are
    thousands of sessions. What went to another cgroup by itself (a service manager does that) is then not seen.
    Zombies do not count: they cannot be killed, and are gone only after another process's wait().
    """
    names = cgroup.members(path) if path is not None else None
    try:
        names = os.listdir("/proc") if names is None else names
    except OSError:
        return
    for name in names:
        if name.isdigit():
            facts = process_facts(name)
            if facts is not None and facts[2] == session and facts[0] not in "ZXx":
                yield int(name), facts[1]


def signal_session(session: int, master: int, *numbers: int, path: str | None = None, sandboxed: bool = False) -> bool:
    """Send signals to every process group of a session. Return whether any process was left in it.

    The shell's own group is first: a shell that sees its command die of the signal before it gets the signal itself
    ends that command's block and shows one more prompt.

    `sandboxed`: the leader is bubblewrap around the shell. It gets none: it ends with the shell, and with its status.
    """
    members = list(session_members(session, path))
    groups = {group for _, group in members}
    if not os.path.isdir("/proc/self"):
        groups = {session}
        with contextlib.suppress(OSError):
            groups.add(os.tcgetpgrp(master))
    found = bool(members)
    groups -= {0, 1, os.getpgrp(), session if sandboxed else 0}
    shell = inner_shell(session) if sandboxed else session
    own = next((group for pid, group in members if pid == shell), shell)
    for group in sorted(groups, key=lambda group: group != own):
        for number in numbers:
            with contextlib.suppress(OSError):
                os.killpg(group, number)
                found = True
    return found


def kill_session(session: int, path: str | None = None) -> bool:
    """SIGKILL every process of a session (`path`: as for `session_members`). Return whether any process was left in it.

    Without a cgroup its processes can still start others, so they are stopped first, until no new one is found.
    """
    if path is not None:
        cgroup.freeze_forks(path)
    found = False
    stopped: set[int] = set()
    while path is None and len(stopped) < STOP_AT_MOST:
        running = {pid for pid, _ in session_members(session)} - stopped
        if not running:
            break
        for pid in running:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGSTOP)
        stopped |= running
    for pid, _ in session_members(session, path):
        found = True
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    if not os.path.isdir("/proc/self"):
        with contextlib.suppress(OSError):
            os.killpg(session, signal.SIGKILL)
    return found


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        first = getattr(signal, "SIGRTMIN", number + 1)
        return f"SIGRTMIN+{number - first}" if number > first else f"SIG{number}"
