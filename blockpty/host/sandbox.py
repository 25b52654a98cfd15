"""Sandbox of a shell: bubblewrap's arguments, or Landlock and seccomp rules, put in place between fork and exec.

What may be written, read and reached is decided by the engine; `boundary` is what it sends. Rules of this file: the
standard library only; nothing is retried with less. Where a step fails, the exec fails, and there is no shell.

* bubblewrap runs the shell as process 2 of a PID namespace. Its own process is our child and leads the session; the
  first process of the namespace collects what the shell leaves behind.
* Landlock restricts files (and, from ABI 6 on, signals and abstract sockets). A seccomp filter refuses what it does not
  cover: unix sockets, with which a program could ask others to act for it, and all sockets where there is no network.
* Both have no_new_privs, no capabilities, no keyrings, no way to give a file a setuid or setgid bit, and a terminal
  into which nothing can be injected (TIOCSTI).
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

LEAST_LANDLOCK = 3
"""The first ABI that can refuse to truncate a file."""

_PR_SET_SECCOMP, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 22, 24, 38
_SECCOMP_MODE_FILTER = 2
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_LANDLOCK_VERSION_FLAG = 1
_LANDLOCK_PATH_BENEATH = 1
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_OPENAT2, _IO_URING = 437, (425, 426, 427)
# AF_UNIX, AF_INET, AF_INET6, AF_NETLINK
_FAMILIES = [1, 2, 10, 16]


class _CallNumbers(NamedTuple):
    """Numbers of system calls; `audit` is what seccomp calls the machine.

    `modes`: calls that give a file its mode, and which argument that is. `keys`: those of the kernel's keyrings.
    """

    audit: int
    ioctl: int
    socket: int
    modes: tuple[tuple[int, int], ...]
    keys: tuple[int, ...]


_MACHINES = {
    # open, creat, chmod, fchmod, mknod, openat, mknodat, fchmodat, fchmodat2
    "x86_64": _CallNumbers(
        0xC000003E, 16, 41,
        ((2, 2), (85, 1), (90, 1), (91, 1), (133, 1), (257, 3), (259, 2), (268, 2), (452, 2)),
        (248, 249, 250),
    ),
    # mknodat, fchmod, fchmodat, openat, fchmodat2
    "aarch64": _CallNumbers(0xC00000B7, 29, 198, ((33, 2), (52, 1), (53, 2), (56, 3), (452, 2)), (217, 218, 219)),
}  # fmt: skip

# Rights of Landlock (include/uapi/linux/landlock.h), as bits.
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_SCOPE_ABSTRACT, _SCOPE_SIGNAL = 1 << 0, 1 << 1
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")

Boundary = dict[str, Any]


# -- bubblewrap ---------------------------------------------------------------------------------------------------


def bwrap_arguments(boundary: Boundary, env: dict[str, str], cwd: str) -> list[str]:
    """Return the options of bubblewrap; the environment is among them, so that bwrap itself runs without it."""
    words = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    if boundary["disable_userns"]:
        words.append("--disable-userns")
    if not boundary["network"]:
        words.append("--unshare-net")
    words += ["--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    # Root may write kernel settings without any capability (core_pattern names a program to run outside).
    words += ["--remount-ro", "/proc"]
    covered = []
    for kind, path in boundary["mounts"]:
        if kind == "own":
            words += ["--perms", "1777", "--tmpfs", path]
        elif kind == "hide" and os.path.isdir(path):
            words += ["--perms", "0555", "--tmpfs", path]
            covered.append(path)
        elif kind == "hide":
            words += ["--ro-bind", "/dev/null", path]
        else:
            words += ["--bind" if kind == "rw" else "--ro-bind", path, path]
    for path in covered:
        words += ["--remount-ro", path]
    words.append("--clearenv")
    for name, value in env.items():
        words += ["--setenv", name, value]
    return [*words, "--chdir", cwd]


def exec_bwrap(boundary: Boundary, argv: Sequence[str], env: dict[str, str], cwd: str) -> None:
    """Become bubblewrap around a program; raises OSError."""
    _filter_calls(boundary, unix_sockets=True)
    options = os.memfd_create("bwrap", 0)  # other users see the arguments of a process, and not these
    os.write(options, b"\0".join(os.fsencode(word) for word in bwrap_arguments(boundary, env, cwd)) + b"\0")
    os.lseek(options, 0, os.SEEK_SET)
    program = boundary["program"]
    # Without the environment of the shell: LD_PRELOAD would be at work outside.
    os.execve(program, [program, "--args", str(options), "--", *argv], {"PATH": os.defpath, "LC_ALL": "C"})


# -- Landlock -----------------------------------------------------------------------------------------------------


def landlock_abi() -> int:
    """Return the version of Landlock's interface; 0: the kernel has none, or this machine no seccomp filter here."""
    if not hasattr(os, "memfd_create") or os.uname().machine not in _MACHINES:
        return 0
    return max(0, int(_libc().syscall(_LANDLOCK_CREATE, None, 0, _LANDLOCK_VERSION_FLAG)))


def restrict(boundary: Boundary, terminal: str) -> None:
    """Put this process, and all that come from it, behind Landlock and seccomp; raises OSError.

    `terminal`: the path of its terminal, which may be opened again.
    """
    abi = landlock_abi()
    if abi < LEAST_LANDLOCK:
        raise OSError(errno.ENOSYS, "Landlock is missing")
    rights = (1 << (15 if abi < 5 else 16)) - 1
    attributes = struct.pack("QQQ", rights, 0, _SCOPE_ABSTRACT | _SCOPE_SIGNAL if abi >= 6 else 0)
    ruleset = _syscall(_LANDLOCK_CREATE, attributes[: 24 if abi >= 6 else 8], 24 if abi >= 6 else 8, 0)
    readable = _EXECUTE | _READ_FILE | _READ_DIR
    closed = [path for kind, path in boundary["mounts"] if kind in ("hide", "own")]
    fixed = [path for kind, path in boundary["mounts"] if kind == "ro"]
    written = [path for kind, path in boundary["mounts"] if kind == "rw"]
    # The names in a directory can be read everywhere: else none above a hidden one could be listed.
    _allow(ruleset, "/", _READ_DIR & rights)
    for path in _beside("/", closed):
        _allow(ruleset, path, readable & rights)
    for path in fixed:
        _allow(ruleset, path, readable & rights)
    for path in written:
        for part in _beside(path, [one for one in (*closed, *fixed) if one.startswith(path + "/")]):
            _allow(ruleset, part, rights)
    for path in (*_DEVICES, terminal):
        _allow(ruleset, path, (_READ_FILE | _WRITE_FILE | _TRUNCATE | _IOCTL_DEV) & rights)
    for number in range(64):
        _libc().prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)
    _no_new_privileges()
    _syscall(_LANDLOCK_RESTRICT, ruleset, 0)
    os.close(ruleset)
    _filter_calls(boundary, unix_sockets=False)


def _beside(path: str, excluded: list[str]) -> Iterator[str]:
    """The path, or what is in it where something in it is excluded, without that."""
    if path in excluded:
        return
    inside = path.rstrip("/") + "/"
    if not any(one.startswith(inside) for one in excluded):
        yield path
        return
    try:
        names = os.listdir(path)
    except OSError:
        return
    for name in names:
        child = inside + name
        # What a link leads to is allowed, or not, at its own place.
        if not os.path.islink(child):
            yield from _beside(child, excluded)


def _allow(ruleset: int, path: str, rights: int) -> None:
    """Add a rule; what is not there, or cannot be opened, stays closed."""
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        if not os.path.isdir(path):
            rights &= _OF_FILES
        _syscall(_LANDLOCK_ADD, ruleset, _LANDLOCK_PATH_BENEATH, struct.pack("=Qi", rights, fd), 0)
    finally:
        os.close(fd)


# -- system calls -------------------------------------------------------------------------------------------------


def _filter_calls(boundary: Boundary, *, unix_sockets: bool) -> None:
    """Have the kernel refuse system calls of this process and its children; raises OSError.

    Calls of another architecture than the machine's own are refused as a whole: their numbers mean something else.
    """
    machine = _MACHINES.get(os.uname().machine)
    if machine is None:
        return
    program = _filter_program(machine, network=boundary["network"], unix_sockets=unix_sockets)
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *one) for one in program))
    head = ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(code)))
    _no_new_privileges()
    if _libc().prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, head, 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp was refused")


def _filter_program(machine: _CallNumbers, *, network: bool, unix_sockets: bool) -> list[tuple[int, int, int, int]]:
    """Return the filter: (code, jump if true, jump if false, value) each, as in linux/filter.h."""
    load, equal, at_least, any_bit, give = 0x20, 0x15, 0x35, 0x45, 6
    allow, refuse, absent = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS
    program = [(load, 0, 0, 4), (equal, 1, 0, machine.audit), (give, 0, 0, absent), (load, 0, 0, 0)]
    # x32 has the numbers of x86_64 with this bit.
    program += [(at_least, 0, 1, 0x40000000), (give, 0, 0, absent)]

    def rule(number: int, argument: int, tests: list[tuple[int, int]], otherwise: int, hit: int) -> None:
        """`hit` where a test on the argument (its low word) is true, else `otherwise`."""
        block = [(load, 0, 0, 16 + 8 * argument)]
        for left, (code, value) in enumerate(reversed(tests)):
            block.insert(1, (code, left + 1, 0, value))
        program.extend([(equal, 0, len(block) + 2, number), *block, (give, 0, 0, otherwise), (give, 0, 0, hit)])

    rule(machine.ioctl, 1, [(equal, _TIOCSTI), (equal, _TIOCLINUX)], allow, refuse)
    for number, argument in machine.modes:
        rule(number, argument, [(any_bit, stat.S_ISUID | stat.S_ISGID)], allow, refuse)
    # What openat2 and io_uring are to do is in memory, which a filter cannot look at; keyrings know no namespace.
    for number in (_OPENAT2, *_IO_URING, *machine.keys):
        program += [(equal, 0, 1, number), (give, 0, 0, absent)]
    if not unix_sockets:
        families = [] if not network else _FAMILIES[1:]
        rule(machine.socket, 0, [(equal, one) for one in families], refuse, allow)
    elif not network:
        # The others (vsock, for one) belong to no network namespace.
        rule(machine.socket, 0, [(equal, one) for one in _FAMILIES], refuse, allow)
    return [*program, (give, 0, 0, allow)]


def _no_new_privileges() -> None:
    if _libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "no_new_privs was refused")


def _syscall(number: int, *arguments: Any) -> int:
    found = int(_libc().syscall(number, *arguments))
    if found < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return found


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
