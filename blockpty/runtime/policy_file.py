"""File with the policy of a home, read again when it has changed."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Final

from blockpty.errors import BadRequest, BlockptyError
from blockpty.files.opening import Rarely
from blockpty.spool.storage import full_is_an_error, open_file, read_file

if TYPE_CHECKING:
    from blockpty.control.policy import Policy

NAME: Final = "policy.toml"


def load_policy(path: Path) -> Policy | None:
    """Return the policy in a file; None without one. Raises BadRequest for a file that is wrong, SpoolCorrupt."""
    from blockpty.control.policy import parse_policy

    try:
        return parse_policy(read_file(path).decode("utf-8"))
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise BadRequest(f"{path} cannot be read: it is not UTF-8", hint="correct the file") from None
    except OSError as problem:
        raise BadRequest(f"{path} cannot be read: {problem.strerror}", hint="correct the file") from None


class PolicyFile:
    """The policy that a person has written. A change holds within a second; a file that is wrong allows nothing.

    A file that is emptied changes nothing, since an editor may be about to write it; one that is removed is no policy.

    Args:
        home: where `policy.toml` is, if there is one.
    """

    def __init__(self, home: Path) -> None:
        self._path = home / NAME
        self._rarely = Rarely()
        self._seen: tuple[int, int, int] | None = None
        self._policy: Policy | None = None
        self._problem: BlockptyError | None = None
        self._read()

    def current(self) -> Policy | None:
        """Return what holds now; raises BadRequest for a file that is wrong.

        None without a file, or with one that only has sandboxes.
        """
        if self._rarely.due():
            self._read()
        if self._problem is not None:
            raise BadRequest(
                f"{self._path} cannot be used, so agents may do nothing: {self._problem.message}",
                hint=self._problem.hint or "correct the file",
            )
        return self._policy if self._policy is not None and self._policy.decides else None

    def add(self, line: str) -> None:
        """Add a rule, unless it is there already; the file is replaced whole.

        Raises BadRequest for what would be no policy, StorageFull.
        """
        from blockpty.control.policy import parse_policy

        try:
            text = read_file(self._path).decode("utf-8")
        except FileNotFoundError:
            text = ""
        if f"\n\n{line.strip()}\n" in f"\n\n{text}":
            return
        text = f"{text.rstrip()}\n\n{line.strip()}\n"
        parse_policy(text)
        new = self._path.with_name(f".{NAME}.{secrets.token_hex(4)}")
        with full_is_an_error(self._path):
            descriptor = open_file(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
            with open(descriptor, "wb", 0) as file:
                file.write(text.encode("utf-8"))
                os.fsync(descriptor)
            os.replace(new, self._path)
        self._read()

    def _read(self) -> None:
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            self._seen = self._policy = self._problem = None
            return
        seen = (found.st_ino, found.st_mtime_ns, found.st_size)
        if seen == self._seen:
            return
        if found.st_size == 0 and self._seen is not None:
            return  # about to be written: until then, what held before holds
        try:
            self._policy, self._problem = load_policy(self._path), None
        except BlockptyError as problem:
            self._policy, self._problem = None, problem
        self._seen = seen
