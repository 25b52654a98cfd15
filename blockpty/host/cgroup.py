"""Process limit of a conversation: a pids cgroup for each shell, where one can be made.

This file knows where cgroups lie (both versions), and when an empty one may go. A shell without one gets
RLIMIT_NPROC instead (`spawn.py`), which bounds the processes of the whole user, and root not at all.

Version 1 has a hierarchy of its own for pids. In version 2 the directory must be one that we may write, that hands
the pids controller to its children, and that is an ancestor of ours: processes can be moved only within what is
writable. (kernel: Documentation/admin-guide/cgroup-v2.rst, "Delegation Containment")
"""

from __future__ import annotations

import contextlib
import os
import time

PREFIX = "blockpty-"
# A directory that is younger may be one that a shell is about to be put into.
STALE_SECONDS = 60.0


class Cgroups:
    """The cgroups of one keeper's shells.

    Attributes:
        base: the directory they are made in; None when none can be made.
    """

    def __init__(self, base: str | None) -> None:
        self.base = base
        self._stem = f"{PREFIX}{os.getpid()}-"
        self._made = 0
        self._lingering: list[str] = []

    def make(self, limit: int) -> str | None:
        """Return the path of a new cgroup that holds at most `limit` processes; None where that does not work."""
        self._retry()
        if self.base is None:
            return None
        self._made += 1
        path = os.path.join(self.base, f"{self._stem}{self._made}")
        try:
            os.mkdir(path)
        except OSError:
            return None
        try:
            write(path, "pids.max", str(limit))
        except OSError:
            self.remove(path)
            return None
        return path

    def remove(self, path: str | None) -> None:
        """Remove a cgroup (None: there is none), later if a process is still in it."""
        if path is None:
            return
        try:
            os.rmdir(path)
        except FileNotFoundError:
            return
        except OSError:
            self._lingering.append(path)

    def _retry(self) -> None:
        waiting, self._lingering = self._lingering, []
        for path in waiting:
            self.remove(path)

    def sweep(self) -> None:
        """Remove what killed keepers left behind, of whatever home: only an empty cgroup can be removed."""
        if self.base is None:
            return
        with contextlib.suppress(OSError), os.scandir(self.base) as entries:
            for entry in entries:
                if entry.name.startswith(PREFIX):
                    with contextlib.suppress(OSError):
                        if time.time() - entry.stat(follow_symlinks=False).st_mtime > STALE_SECONDS:
                            os.rmdir(entry.path)


def find_base(root: str = "/sys/fs/cgroup", own: str = "/proc/self/cgroup") -> str | None:
    """Return the nearest directory above this process in which pids cgroups can be made."""
    try:
        with open(own, encoding="utf-8", errors="surrogateescape") as file:
            lines = [line.rstrip("\n").split(":", 2) for line in file]
    except OSError:
        return None
    for _, controllers, path in lines:
        if "pids" in controllers.split(","):
            return _writable(os.path.join(root, "pids"), path, "cgroup.procs")
    for number, _, path in lines:
        if number == "0":
            return _writable(root, path, "cgroup.subtree_control", "pids")
    return None


def _writable(mount: str, path: str, file: str, word: str = "") -> str | None:
    directory = os.path.normpath(mount + path)
    while True:
        with contextlib.suppress(OSError), open(os.path.join(directory, file), encoding="utf-8") as content:
            ours = os.access(directory, os.W_OK) and os.access(os.path.join(directory, "cgroup.procs"), os.W_OK)
            if ours and (not word or word in content.read().split()):
                return directory
        if directory == mount or not directory.startswith(mount):
            return None
        directory = os.path.dirname(directory)


def enter(path: str) -> None:
    """Put this process into a cgroup; raises OSError."""
    write(path, "cgroup.procs", "0")


def members(path: str) -> list[str] | None:
    """Return the process numbers in a cgroup; None where it cannot be read."""
    try:
        with open(os.path.join(path, "cgroup.procs"), encoding="ascii") as file:
            return file.read().split()
    except (OSError, ValueError):
        return None


def freeze_forks(path: str) -> None:
    """Let no process in a cgroup start another: forks cannot outrun the killing from now on."""
    with contextlib.suppress(OSError):
        write(path, "pids.max", "0")


def write(path: str, name: str, text: str) -> None:
    fd = os.open(os.path.join(path, name), os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
