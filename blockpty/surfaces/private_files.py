"""Private files of a home's server, and the owner's token, which stands in one of them.

    <home>/server/token         the owner's token, in clear: a user who can read this file owns the shells anyway

Rules of this file: the files are 0600 in a 0700 directory. Each call of the command line reads one, so only what that
needs is imported here.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from blockpty.errors import SpoolCorrupt
from blockpty.spool.layout import make_private
from blockpty.spool.storage import full_is_an_error, storage_full

TOKEN_NAME: Final = "token"
TOKEN_BYTES: Final = 32


def server_directory(home: Path) -> Path:
    """Return the directory of the server's files, made private; raises SpoolCorrupt when it is not ours."""
    make_private(home)
    directory = home / "server"
    make_private(directory)
    return directory


def read_private(path: Path) -> bytes:
    """Return the content of a file that only this user may read.

    Raises FileNotFoundError, and SpoolCorrupt for a link, another user's file or one that others can read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise
    except OSError as problem:
        raise SpoolCorrupt(f"{path} cannot be opened: {problem.strerror}", hint="remove it and try again") from None
    found = os.fstat(descriptor)
    if found.st_uid != os.geteuid() or found.st_mode & 0o077 or not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise SpoolCorrupt(f"{path} is not private", hint=f"chmod 600 {path}, and make new tokens")
    with open(descriptor, "rb") as file:
        return file.read(1 << 20)


def open_private(path: Path, flags: int) -> int:
    """Open a 0600 file for writing, made when there is none.

    Raises StorageFull, and SpoolCorrupt for a link and what else it may be.
    """
    try:
        return os.open(path, flags | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as problem:
        if problem.errno in (errno.ENOSPC, errno.EDQUOT):
            raise storage_full(path, problem) from None
        raise SpoolCorrupt(f"{path} cannot be opened: {problem.strerror}", hint="remove it and try again") from None


def write_private(path: Path, content: bytes) -> None:
    """Put a 0600 file in place at once, whatever was there; raises StorageFull, and leaves nothing then."""
    import secrets

    new = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with full_is_an_error(path):
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            with open(descriptor, "wb", 0) as file:
                file.write(content)
                os.fsync(descriptor)
            os.replace(new, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(new)
            raise


def owner_token(home: Path) -> str:
    """Return the owner's token; it is made when there is none yet."""
    directory = server_directory(home)
    path = directory / TOKEN_NAME
    try:
        return read_private(path).decode("ascii", "replace").strip()
    except FileNotFoundError:
        with locked(directory):
            if not path.exists():
                write_private(path, _new_token())
        return read_private(path).decode("ascii", "replace").strip()


def renew_owner_token(home: Path) -> None:
    """Replace the owner's token; who had the old one must read the file again."""
    directory = server_directory(home)
    with locked(directory):
        write_private(directory / TOKEN_NAME, _new_token())


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Keep all others from changing the files of the server's directory meanwhile."""
    descriptor = open_private(directory / "tokens.lock", os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _new_token() -> bytes:
    import secrets

    return secrets.token_urlsafe(TOKEN_BYTES).encode() + b"\n"
