"""Checks of `doctor`: the machine. Every check returns a finding, whatever it meets, and changes nothing that lasts."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct, field, to_builtins

_MIB: Final = 1024 * 1024
# Per conversation the host holds four descriptors in each of two processes, beside its own few.
_FEW_FILES, _TOO_FEW_FILES = 256, 64
_FEW_PROCESSES, _FEW_TERMINALS = 50, 16
_LITTLE_SPACE, _TOO_LITTLE_SPACE = 1024 * _MIB, 64 * _MIB
# sun_path of unix sockets, with its final NUL: 108 bytes on Linux, 104 on macOS.
_SOCKET_PATH_BYTES: Final = 107 if sys.platform == "linux" else 103
_LIBRARIES: Final = ("ahocorasick_rs", "click", "orjson", "pydantic", "pyte", "regex", "rich", "watchfiles")
_PROMPT_ONLY: Final = ("dash", "ksh", "mksh", "busybox")
_SECONDS: Final = 3.0


class Finding(Struct, frozen=True):
    """Result of one check; `remedy` says what to do about it."""

    name: str
    status: Literal["ok", "warning", "failed"]
    message: str
    remedy: str = field(default="", name="mend")  # words: on the wire

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        found: dict[str, Any] = to_builtins(self)
        return found


# Programs


def check_python() -> Finding:
    """Which Python this is; one that is too old does not get here."""
    return Finding("python", "ok", f"Python {'.'.join(map(str, sys.version_info[:3]))} at {sys.executable}")


def check_libraries() -> Finding:
    """Whether the libraries are there and new enough."""
    from importlib import metadata

    needed = _requirements()
    wrong, found = [], []
    for name, least in needed.items():
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            wrong.append(f"{name} is missing")
            continue
        if _numbers(version) < _numbers(least):
            wrong.append(f"{name} {version} is older than {least}")
        found.append(f"{name} {version}")
    if wrong:
        return Finding("libraries", "failed", "; ".join(wrong), "install blockpty again, with its dependencies")
    return Finding("libraries", "ok", ", ".join(found))


def check_extras() -> Finding:
    """Which optional dependencies are there."""
    from importlib.util import find_spec

    from blockpty.search.backends import has_libraries
    from blockpty.surfaces.extras import EXTRAS

    there = {name: all(find_spec(module) is not None for module in modules) for name, modules in EXTRAS.items()}
    there["search"] = has_libraries()
    missing = [name for name, found in there.items() if not found]
    if missing:
        hint = f"pip install 'blockpty[{','.join(missing)}]'"
        return Finding("extras", "warning", f"not installed: {', '.join(missing)}", hint)
    return Finding("extras", "ok", f"installed: {', '.join(there)}")


def _requirements() -> Mapping[str, str]:
    """Return what the installed package says it needs, with the least version of each."""
    import re
    from importlib import metadata

    try:
        required = metadata.requires("blockpty") or []
    except metadata.PackageNotFoundError:  # run from a working copy
        required = list(_LIBRARIES)
    needed = {}
    for line in required:
        if "extra ==" not in line and (name := re.match(r"[A-Za-z0-9._-]+", line)):
            least = re.search(r">=\s*([0-9.]+)", line)
            needed[name.group()] = least.group(1) if least else "0"
    return needed


def _numbers(version: str) -> tuple[int, ...]:
    numbers = []
    for part in version.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
    return tuple(numbers)


def check_shells() -> Finding:
    """Which shells are there."""
    from blockpty.host.shells import DEFAULTS

    found = [f"{name} {_version(path)}".strip() for name in DEFAULTS if (path := shutil.which(name))]
    marked = [name for name in _PROMPT_ONLY if shutil.which(name)]
    more = f"; only the prompt is marked in {', '.join(marked)}" if marked else ""
    if not found:
        what = "neither bash nor zsh nor fish is on PATH"
        return Finding("shells", "failed", what + more, "install bash, zsh or fish, or set PATH")
    return Finding("shells", "ok", ", ".join(found) + more)


def _version(path: str) -> str:
    import re

    try:
        said = subprocess.run(
            [path, "--version"], capture_output=True, timeout=_SECONDS, check=False, stdin=subprocess.DEVNULL
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return "(it does not say its version)"
    number = re.search(rb"\d+\.[\d.]*\d", said)
    return number.group().decode("ascii") if number else ""


def check_default_shell() -> Finding:
    """Which shell `open` takes when none is named."""
    from blockpty.errors import SpawnFailed
    from blockpty.host.shells import clean_environment, is_supported
    from blockpty.host.shells.families import find_shell

    own = os.environ.get("SHELL", "")
    try:
        path = find_shell(None, clean_environment(os.environ))
    except SpawnFailed as error:
        return Finding("shell", "failed", error.message, error.hint)
    if own and path != own:
        why = "has only its prompt marked" if is_supported(own) is False else "cannot be executed"
        return Finding(
            "shell", "warning", f"open starts {path}, since $SHELL ({own}) {why}", "name another with open --shell"
        )
    return Finding("shell", "ok", f"open starts {path}")


# The system


def check_terminals() -> Finding:
    """Whether a pseudo-terminal can be had, and how many more."""
    remedy = "close conversations or terminals, or raise kernel.pty.max with sysctl"
    try:
        for descriptor in os.openpty():
            os.close(descriptor)
    except OSError as error:
        return Finding("terminals", "failed", f"no pseudo-terminal can be opened: {error.strerror}", remedy)
    used, most = _number("/proc/sys/kernel/pty/nr"), _number("/proc/sys/kernel/pty/max")
    if used is None or most is None:
        return Finding("terminals", "ok", "a pseudo-terminal can be opened")
    message = f"{used} of {most} pseudo-terminals are used"
    return Finding("terminals", "warning", message, remedy) if most - used < _FEW_TERMINALS else Finding(
        "terminals", "ok", message
    )  # fmt: skip


def _number(path: str) -> int | None:
    try:
        return int(Path(path).read_bytes())
    except (OSError, ValueError):
        return None


def check_open_files() -> Finding:
    """How many files the host may open; it raises the soft limit to the hard one by itself."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        return Finding("files", "ok", "open files are not limited")
    message = f"a process may open {hard} files (soft limit {soft})"
    remedy = "raise the hard limit: ulimit -Hn, or LimitNOFILE in a service"
    if hard < _TOO_FEW_FILES:
        return Finding("files", "failed", message, remedy)
    return Finding("files", "warning", message, remedy) if hard < _FEW_FILES else Finding("files", "ok", message)


def check_processes() -> Finding:
    """How many more processes this user may start."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if soft == resource.RLIM_INFINITY or os.geteuid() == 0:
        return Finding("processes", "ok", "processes are not limited")
    used = _own_processes()
    if used is None:
        return Finding("processes", "ok", f"this user may have {soft} processes")
    message = f"this user has {used} of {soft} processes"
    remedy = "end some, or raise the limit: ulimit -u, or TasksMax in a service"
    return Finding("processes", "warning", message, remedy) if soft - used < _FEW_PROCESSES else Finding(
        "processes", "ok", message
    )  # fmt: skip


def _own_processes() -> int | None:
    count = 0
    try:
        for entry in os.scandir("/proc"):
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    count += entry.stat().st_uid == os.geteuid()
    except OSError:
        return None
    return count


def check_sandbox() -> Finding:
    """How `open --sandbox` makes its boundary here, if it can."""
    from blockpty.control.sandbox import DEFAULT
    from blockpty.errors import SpawnFailed
    from blockpty.runtime.sandboxing import choose_method

    try:
        method = choose_method(DEFAULT)[0]
    except SpawnFailed as error:
        return Finding("sandbox", "warning", error.message, error.hint)
    return Finding("sandbox", "ok", f"open --sandbox uses {method}")


# The home


def check_home(home: Path) -> Finding:
    """Whether the home and what lies in it belong to this user alone."""
    refused: list[str] = []
    repairable: list[str] = []
    remedies: list[str] = []
    for path in (home, home / "conversations", home / "host"):
        try:
            found = os.lstat(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            refused.append(f"{path}: {error.strerror}")
            remedies.append("choose another home with --home or BLOCKPTY_HOME")
            continue
        mode = stat.S_IMODE(found.st_mode)
        if stat.S_ISLNK(found.st_mode):
            refused.append(f"{path} is a symbolic link")
            remedies.append(f"set BLOCKPTY_HOME to what it points to, {os.path.realpath(path)}, or remove the link")
        elif not stat.S_ISDIR(found.st_mode):
            refused.append(f"{path} is not a directory")
            remedies.append("move it away")
        elif found.st_uid != os.geteuid():
            refused.append(f"{path} belongs to user {found.st_uid}")
            remedies.append("choose another home with --home or BLOCKPTY_HOME")
        elif mode & 0o700 != 0o700 or not os.access(path, os.R_OK | os.W_OK | os.X_OK):
            refused.append(f"{path} has mode {mode:04o}, which keeps its owner out")
            remedies.append(f"chmod 700 {path}")
        elif mode & 0o077:
            (refused if path.name == "host" else repairable).append(f"{path} has mode {mode:04o}, others may enter it")
            remedies.append(f"chmod 700 {path}")
    if refused or repairable:
        return Finding("home", "failed" if refused else "warning", "; ".join(refused + repairable), "; ".join(remedies))
    if not home.exists():
        parent = nearest(home)
        if not os.access(parent, os.W_OK | os.X_OK):
            remedy = "choose another home with --home or BLOCKPTY_HOME"
            return Finding("home", "failed", f"{home} is not there and {parent} is not writable", remedy)
        return Finding("home", "ok", f"{home} will be made when it is first used")
    return Finding("home", "ok", f"{home} belongs to this user alone")


def nearest(path: Path) -> Path:
    """Return the path, or the nearest directory above it that exists."""
    for candidate in (path, *path.parents):
        if candidate.is_dir():
            return candidate
    return Path("/")


def check_disk(home: Path) -> Finding:
    """Whether there is space for transcripts."""
    found = os.statvfs(nearest(home))
    free = found.f_bavail * found.f_frsize
    message = f"{free // _MIB:,} MiB are free for {home}"
    remedy = "make space, or choose a home elsewhere; when none is left, the programs in the terminals stand still"
    if found.f_files and not found.f_favail:
        return Finding("disk", "failed", f"{message}, but no inodes", remedy)
    if free < _TOO_LITTLE_SPACE:
        return Finding("disk", "failed", message, remedy)
    return Finding("disk", "warning", message, remedy) if free < _LITTLE_SPACE else Finding("disk", "ok", message)


def check_splice(home: Path) -> Finding:
    """Whether bytes get from a terminal to a file of the home without passing through a process."""
    from blockpty.host.keeper import splice_works

    loss = "output is copied by the recorder; if that is killed, what it was copying is lost"
    if os.environ.get("BLOCKPTY_NO_SPLICE") == "1":
        return Finding("splice", "warning", f"BLOCKPTY_NO_SPLICE is set: {loss}", "unset it")
    parent = nearest(home)
    try:
        with tempfile.TemporaryDirectory(prefix=".doctor-", dir=parent) as directory:
            descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                works = splice_works(descriptor)
            finally:
                os.close(descriptor)
    except OSError as error:
        return Finding("splice", "warning", f"not checked: {parent}: {error.strerror}", "repair the home first")
    if works:
        return Finding("splice", "ok", f"works on {parent}")
    return Finding("splice", "warning", f"does not work on {parent}: {loss}", "use a home on a local file system")


def check_socket_path(home: Path) -> Finding:
    """Whether sockets in the home can be reached by their path."""
    length = len(os.fsencode(home / "host" / "host.sock"))
    message = f"{length} of {_SOCKET_PATH_BYTES} bytes"
    if length <= _SOCKET_PATH_BYTES:
        return Finding("socket path", "ok", message)
    return Finding(
        "socket path", "warning", f"{message}: blockpty goes around that, other programs cannot connect",
        "use a home with a shorter path",
    )  # fmt: skip
