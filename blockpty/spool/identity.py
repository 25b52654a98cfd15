"""Identity of a record: whether it still lies where it was opened, or another one has taken its name.

What was removed is not replaced: who has it open makes it again. What was moved away, and has another in its place, is;
so is a conversation that was made again under the same name, and one whose home was moved or removed. Nothing
may be written into that.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from blockpty.errors import SpoolCorrupt, SpoolError
from blockpty.files.opening import is_removed
from blockpty.spool import checkpoint
from blockpty.spool.layout import Layout


class RecordIdentity:
    """The directory of a record, and whose it is."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        # As text: they are looked at before each command.
        self._paths = str(layout.directory.parent.parent), str(layout.directory), str(layout.meta)
        home, directory, meta = self._paths
        self._home = _identity(home)
        self._directory = _identity(directory)
        self._meta = _identity(meta, changed=True)
        self._owner = self._found()

    def check(self, descriptor: int, *, made_again: bool) -> None:
        """Raise SpoolCorrupt when another record lies here.

        `descriptor` is an open file of this one; `made_again`: it had been removed, and was given its place back.
        """
        home_path, directory_path, meta_path = self._paths
        if _identity(home_path) != self._home:
            # Made again there, it would be in the way of another home there.
            raise self._replaced()
        found, meta = _identity(directory_path), _identity(meta_path, changed=True)
        if found == self._directory and meta == self._meta:
            return
        owner = self._found()
        # What was missing a moment ago was removed, and is made again.
        known = self._directory is not None and found is not None
        moved = known and found != self._directory and not made_again and not is_removed(descriptor)
        if owner is not None and (owner != self._owner or moved):
            raise self._replaced()
        # Made again, or written again by its own engine.
        self._directory, self._meta = found, meta

    def _replaced(self) -> SpoolCorrupt:
        return SpoolCorrupt(
            f"{self._layout.directory} is another record than the one that was opened here",
            hint="the conversation or the home was replaced; ask again to read what is there now",
            details={"path": str(self._layout.directory)},
        )

    def _found(self) -> tuple[Any, Any] | None:
        """Return whose record lies here; None when nothing says that."""
        try:
            meta: Mapping[str, Any] = checkpoint.load_meta(self._layout.meta)
        except (FileNotFoundError, SpoolError):
            return None
        return meta.get("conversation_id"), meta.get("created_ts")


def _identity(path: str, *, changed: bool = False) -> tuple[int, ...] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    # The number of a file that was removed is soon that of another.
    return (found.st_dev, found.st_ino, found.st_mtime_ns) if changed else (found.st_dev, found.st_ino)
