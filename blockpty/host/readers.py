"""Processes that wait for input from a terminal, found from the system calls in which their threads are blocked.

Rules of this file: what cannot be known is never taken for waiting. What a program has printed does not count. Linux
only; elsewhere nothing is ever found.

A thread that is blocked in a read of the terminal, or in a poll of nothing else and without a time limit, can only be
woken by a key: that is sure at once. One that polls other things as well, or from time to time, or that is not the
first of its process, may just as well be at work for a moment; so a caller asks for such threads only when nothing has
been printed for a while (`patient`).
"""

from __future__ import annotations

import enum
import os
import struct
from typing import Final

from blockpty.host import spawn

# Programs that pass the keys on, and cannot tell whether anything at their other end waits for them.
RELAYS: Final = frozenset(
    {
        "ssh", "mosh-client", "telnet", "docker", "podman", "kubectl", "oc", "nerdctl", "lxc", "incus", "machinectl",
        "tmux", "tmux: client", "screen", "zellij", "dtach", "abduco", "script", "nc", "ncat", "socat", "virsh",
        "blockpty-bridge",
    }
)  # fmt: skip

_THREADS: Final = 64
_DESCRIPTORS: Final = 1024
_FD_BYTES: Final = 8
_POLLIN: Final = 0x1 | 0x40
_EPOLLIN: Final = 0x1


class _Syscall(enum.Enum):
    """System calls that wait for input, by what their arguments are."""

    READ = enum.auto()
    POLL = enum.auto()
    PPOLL = enum.auto()
    SELECT = enum.auto()
    EPOLL = enum.auto()


_GENERIC: Final = {
    63: _Syscall.READ, 65: _Syscall.READ, 73: _Syscall.PPOLL, 72: _Syscall.SELECT,
    22: _Syscall.EPOLL, 441: _Syscall.EPOLL,
}  # fmt: skip
_CALLS: Final = {
    "x86_64": {
        0: _Syscall.READ, 19: _Syscall.READ, 7: _Syscall.POLL, 271: _Syscall.PPOLL, 23: _Syscall.SELECT,
        270: _Syscall.SELECT, 232: _Syscall.EPOLL, 281: _Syscall.EPOLL, 441: _Syscall.EPOLL,
    },
    "aarch64": _GENERIC,
    "riscv64": _GENERIC,
}  # fmt: skip
# Where the kernel has a thread wait, for a program that may not see the call itself (yama).
_READING_PLACES: Final = frozenset({"n_tty_read"})
_POLLING_PLACES: Final = ("do_select", "do_sys_poll", "do_poll", "poll_schedule_timeout", "ep_poll", "do_epoll_wait")


class _Certainty(enum.Enum):
    """How sure it is that a thread waits for a key."""

    SURE = enum.auto()
    LIKELY = enum.auto()


def find_reader(group: int, terminal: str, shell: int = 0, *, canonical: bool, patient: bool) -> int | None:
    """Return a process of a foreground group that waits for input from a terminal; None where none does, or is known.

    Args:
        group: the process group that has the terminal; its leader, children of `shell` in it, and what comes from them
            are looked at.
        terminal: the terminal's path, such as /dev/pts/3.
        shell: the shell of this terminal.
        canonical: whether the terminal is read in lines.
        patient: accept as well what is only likely; the caller has seen no output for a while.
    """
    for pid in spawn.group_members(group, shell):
        found = _waiting(pid, terminal, canonical, patient)
        if found is None or (found is _Certainty.LIKELY and not patient):
            continue
        if _is_relay(pid) and not (canonical and found is _Certainty.SURE):
            continue
        return pid
    return None


def sleeps(pid: int) -> int | None:
    """Return how often the first thread of a process has gone to sleep; None where that is unknown."""
    try:
        with open(f"/proc/{pid}/task/{pid}/status", "rb", 0) as file:
            fields = file.read()
    except OSError:
        return None
    _, name, rest = fields.partition(b"\nvoluntary_ctxt_switches:")
    return int(rest.split(maxsplit=1)[0]) if name else None


def _waiting(pid: int, terminal: str, canonical: bool, patient: bool) -> _Certainty | None:
    found = _thread(pid, pid, terminal, canonical)
    if found is not None or not patient:
        return found
    try:
        threads = [int(name) for name in os.listdir(f"/proc/{pid}/task")[:_THREADS]]
    except OSError:
        return None
    for thread in threads:
        if thread != pid and (found := _thread(pid, thread, terminal, canonical)) is not None:
            # In lines a thread beside the others may always read, as that of a build tool which passes lines on.
            return found
    return None


def _is_relay(pid: int) -> bool:
    """Whether a process passes on what is typed: it is known for that, or has a terminal of its own making open."""
    if spawn.process_name(pid) in RELAYS:
        return True
    return any(link in ("/dev/ptmx", "/dev/pts/ptmx") for link in _links(pid))


def _links(pid: int) -> list[str]:
    links = []
    try:
        for name in os.listdir(f"/proc/{pid}/fd")[:_DESCRIPTORS]:
            links.append(os.readlink(f"/proc/{pid}/fd/{name}"))
    except OSError:
        pass
    return links


def _thread(pid: int, thread: int, terminal: str, canonical: bool) -> _Certainty | None:
    """Return whether a thread waits for a terminal."""
    try:
        with open(f"/proc/{pid}/task/{thread}/syscall", "rb", 0) as file:
            words = file.read().split()
    except OSError:
        return _by_place(pid, thread, terminal, canonical)
    if len(words) < 7:
        return None  # it runs, or is blocked elsewhere
    call = _CALLS.get(os.uname().machine, {}).get(int(words[0]))
    if call is None:
        return None
    try:
        arguments = [int(word, 16) for word in words[1:7]]
        watched, limited = _watched(pid, call, arguments)
        wanted = [_is_terminal(pid, number, terminal) for number in watched]
    except (OSError, ValueError, struct.error):
        return None
    if not any(wanted) or (0 in watched and not wanted[watched.index(0)]):
        # It waits for what comes in at its standard input, and would only be interrupted by a key.
        return None
    return _Certainty.SURE if all(wanted) and not limited and thread == pid else _Certainty.LIKELY


def _is_terminal(pid: int, number: int, terminal: str) -> bool:
    return os.readlink(f"/proc/{pid}/fd/{number}") in (terminal, "/dev/tty")


def _watched(pid: int, call: _Syscall, arguments: list[int]) -> tuple[list[int], bool]:
    """Return the descriptors that a call waits to read from, and whether it does so for a limited time."""
    first, second = arguments[:2]
    if call is _Syscall.READ:
        return [first], False
    if call is _Syscall.EPOLL:
        # Event loops watch things of their own as well.
        return _in_epoll(pid, first), True
    if call is _Syscall.SELECT:
        bits = _memory(pid, second, (min(first, _DESCRIPTORS) + 7) // 8) if second else b""
        numbers = [number for number in range(min(first, 8 * len(bits))) if bits[number // 8] >> number % 8 & 1]
        return numbers, arguments[4] != 0
    entries = struct.iter_unpack("=ihh", _memory(pid, first, _FD_BYTES * min(second, _DESCRIPTORS)))
    numbers = [number for number, events, _ in entries if number >= 0 and events & _POLLIN]
    limit = arguments[2]
    return numbers, limit != 0 if call is _Syscall.PPOLL else limit & 0x80000000 == 0


def _memory(pid: int, address: int, length: int) -> bytes:
    fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(fd, length, address)
    finally:
        os.close(fd)


def _in_epoll(pid: int, number: int) -> list[int]:
    watched = []
    with open(f"/proc/{pid}/fdinfo/{number}", "rb", 0) as file:
        for line in file.read().splitlines():
            words = line.split()
            if len(words) > 3 and words[0] == b"tfd:" and int(words[3], 16) & _EPOLLIN:
                watched.append(int(words[1]))
    return watched


def _by_place(pid: int, thread: int, terminal: str, canonical: bool) -> _Certainty | None:
    try:
        with open(f"/proc/{pid}/task/{thread}/wchan", "rb", 0) as file:
            place = file.read().decode("ascii", "replace")
    except OSError:
        return None
    if place in _READING_PLACES:
        return _Certainty.SURE if thread == pid else _Certainty.LIKELY
    if not canonical and place.startswith(_POLLING_PLACES) and {terminal, "/dev/tty"} & {*_links(pid)}:
        # A program that takes single keys and sleeps in a poll: what else it watches is not shown.
        return _Certainty.LIKELY
    return None
