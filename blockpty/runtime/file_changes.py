"""Changes of files that another process writes: one watch, by watchfiles, for all that one event loop follows.

Where the system tells of no changes (a network file system, no watches left) there are none here: a reader looks again
by itself as well, seldom.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final
from weakref import WeakValueDictionary

# How often watchfiles asks the system for changes; a change is known after one or two of these.
STEP_MS: Final = 20
_GROUPED_MS: Final = 100
_FIRST_MS: Final = 200


class FollowedDirectory:
    """A directory whose files are written by another process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._watchers: set[asyncio.Future[None]] = set()

    def watch(self) -> asyncio.Future[None]:
        """Return a future that is done at the next change; cancel it when it is not waited for any more."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._watchers.add(future)
        future.add_done_callback(self._watchers.discard)
        return future

    def changed(self) -> None:
        """Notify all that watch."""
        for future in tuple(self._watchers):
            if not future.done():
                future.set_result(None)


class FileChanges:
    """The directories that one event loop follows, and the thread that watches them; they are known within 0.2 s."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._followed: set[FollowedDirectory] = set()
        self._watched: frozenset[Path] = frozenset()
        self._stop = threading.Event()

    @contextlib.contextmanager
    def follow(self, path: Path) -> Iterator[FollowedDirectory]:
        """Follow the files of a directory, not those of directories in it."""
        directory = FollowedDirectory(path)
        self._followed.add(directory)
        self._loop.call_soon(self._follow)
        try:
            yield directory
        finally:
            self._followed.discard(directory)
            self._follow()

    def _follow(self) -> None:
        """Watch what is followed now."""
        paths = frozenset(directory.path for directory in self._followed)
        if paths != self._watched:
            self._stop.set()
            self._watched, self._stop = paths, threading.Event()
            if paths:
                # It ends by itself, a step after it is stopped.
                threading.Thread(target=self._watch, args=(paths, self._stop), daemon=True).start()

    def _watch(self, paths: frozenset[Path], stop: threading.Event) -> None:
        from watchfiles import (
            watch,  # it takes a while to import, and only who follows another process's record needs it
        )

        # RuntimeError: the loop has ended. OSError: a directory has gone, or the system has no watch left.
        with contextlib.suppress(OSError, RuntimeError):
            found = watch(
                *paths, watch_filter=None, recursive=False, step=STEP_MS, debounce=_GROUPED_MS, stop_event=stop,
                rust_timeout=_FIRST_MS, yield_on_timeout=True,
            )  # fmt: skip
            # What changed before the watch began is in its first round, which may have nothing else to say.
            next(found, None)
            self._loop.call_soon_threadsafe(self._notify, paths)
            for changes in found:
                if changes:
                    changed = {Path(path).parent for _, path in changes}
                    self._loop.call_soon_threadsafe(self._notify, changed)

    def _notify(self, paths: Collection[Path]) -> None:
        for directory in tuple(self._followed):
            if directory.path in paths:
                directory.changed()


# It lives as long as a reader that follows.
_CHANGES: WeakValueDictionary[asyncio.AbstractEventLoop, FileChanges] = WeakValueDictionary()


def changes_of(loop: asyncio.AbstractEventLoop) -> FileChanges:
    """Return what follows files for all readers of this loop."""
    changes = _CHANGES.get(loop)
    if changes is None:
        changes = _CHANGES[loop] = FileChanges(loop)
    return changes
