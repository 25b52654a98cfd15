"""File that halts agents in all conversations of a home, whichever engine has them, and across restarts."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Final

from blockpty.errors import SpoolError
from blockpty.files.opening import Rarely
from blockpty.spool.storage import full_is_an_error, open_file, read_file

NAME: Final = "halted.json"


class HaltFile:
    """Whether agents are halted everywhere. What another engine did is noticed within a second.

    Args:
        home: where the file is, while they are.
    """

    def __init__(self, home: Path) -> None:
        self._path = home / NAME
        self._rarely = Rarely()
        self._who = self._read()

    def who(self) -> str | None:
        """Return who halted agents; None when they may type."""
        if self._rarely.due():
            self._who = self._read()
        return self._who

    def set(self, who: str) -> None:
        """Halt agents; a full disk keeps that from others and from the next start only. Raises StorageFull."""
        self._who = who
        content = json.dumps({"format": 1, "who": who, "since": time.time_ns() // 1_000_000}).encode()
        with full_is_an_error(self._path):
            descriptor = open_file(self._path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
            try:
                os.write(descriptor, content)
            finally:
                os.close(descriptor)

    def clear(self) -> None:
        """Let agents type again."""
        self._path.unlink(missing_ok=True)
        self._who = None

    def _read(self) -> str | None:
        try:
            content = read_file(self._path)
        except FileNotFoundError:
            return None
        except (OSError, SpoolError):
            # It is there, whatever it is.
            return "a person"
        try:
            return str(json.loads(content)["who"])
        except (ValueError, KeyError, TypeError):
            return "a person"
