"""Ownership of a conversation's derived files: one engine at a time, each with an epoch of its own."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from blockpty.spool.storage import full_is_an_error, open_file


class Ownership:
    """A held lock; `epoch` is larger than any owner's before."""

    def __init__(self, descriptor: int, epoch: int) -> None:
        self._descriptor = descriptor
        self.epoch = epoch

    @classmethod
    def take(cls, path: Path) -> Ownership | None:
        """Return the ownership, or None while another engine has it."""
        descriptor = open_file(path, os.O_CREAT | os.O_RDWR)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            written = os.pread(descriptor, 32, 0).strip()
            epoch = int(written) + 1 if written.isdigit() else 1
            with full_is_an_error(path):
                os.ftruncate(descriptor, os.pwrite(descriptor, b"%d\n" % epoch, 0))
        except BlockingIOError:
            os.close(descriptor)
            return None
        except BaseException:
            os.close(descriptor)
            raise
        return cls(descriptor, epoch)

    def __del__(self) -> None:
        # One that was dropped without being released.
        self.release()

    def release(self) -> None:
        """Let another engine have it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
