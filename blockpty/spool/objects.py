"""Object store: whole files under a key. The only file that knows the library, which is loaded when it is needed.

Keys hold the hash of what they name, so nothing there is ever replaced by something else.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from blockpty.errors import ArchiveUnreachable


@functools.cache
def opened(url: str) -> ObjectStore:
    """Return the store of a URL (`s3://`, `gs://`, `az://`, `file://`, `memory://`); raises ArchiveUnreachable."""
    return ObjectStore(url)


def digest_of(pieces: Iterator[bytes]) -> tuple[str, int]:
    """Return the SHA-256 and the length of what comes in pieces."""
    digest, size = hashlib.sha256(), 0
    for piece in pieces:
        digest.update(piece)
        size += len(piece)
    return digest.hexdigest(), size


class ObjectStore:
    """One store; credentials come from where its makers' tools take them."""

    def __init__(self, url: str) -> None:
        try:
            import obstore
            from obstore.store import from_url
        except ImportError:
            raise ArchiveUnreachable("an archive needs obstore", hint="pip install 'blockpty[objects]'") from None
        self._library: Any = obstore
        self._where = url.split("?")[0]
        options: dict[str, Any] = {"mkdir": True} if url.startswith("file:") else {}
        try:
            self._store = from_url(url, **options)
        except (ValueError, OSError, obstore.exceptions.BaseError) as problem:
            raise ArchiveUnreachable(
                f"no archive can be opened: {_first(problem)}", hint="set BLOCKPTY_ARCHIVE_URL"
            ) from None

    def put(self, key: str, path: Path) -> None:
        """Store a file; raises ArchiveUnreachable."""
        with self._errors(), path.open("rb") as file:
            self._library.put(self._store, key, file)

    def get(self, key: str) -> Iterator[bytes]:
        """Yield what is stored; raises ArchiveUnreachable, also when it is not there."""
        with self._errors():
            for piece in self._library.get(self._store, key).stream(min_chunk_size=1024 * 1024):
                yield bytes(piece)

    def delete(self, key: str) -> None:
        """Remove an object, if it is there; raises ArchiveUnreachable."""
        with self._errors(), contextlib.suppress(FileNotFoundError):
            self._library.delete(self._store, key)

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (OSError, self._library.exceptions.BaseError) as problem:
            raise ArchiveUnreachable(
                f"the archive {self._where} does not do its part: {_first(problem)}",
                hint="nothing is lost; try again when it can be reached",
            ) from problem


def _first(problem: Exception) -> str:
    """Return the first line of a message, which has no credentials in it."""
    return str(problem).partition("\n")[0][:200]
