"""Results of copying files through a terminal."""

from __future__ import annotations

import base64

from blockpty.model.result import Result

# The class, in those that have a field of this name.
_Bytes = bytes


class PutFileResult(Result, frozen=True):
    """A file was written.

    Attributes:
        bytes, digest: its length, and its SHA-256 in hex.
        how: `direct` (the engine wrote it, next to the shell) or `terminal` (the shell did).
    """

    bytes: int
    digest: str
    cursor: int
    how: str


class GetFileResult(Result, frozen=True):
    """A file was read.

    Attributes:
        bytes, digest: length and SHA-256 in hex of what is returned: of the file, unless it is `redacted`.
        data: the content, where it is UTF-8; data_b64: where it is not. Both are None where it went to `local_path`.
        how: as in the result of `put_file`.
        redacted: secrets were redacted, so this differs from the file.
    """

    bytes: int
    digest: str
    data: str | None
    data_b64: str | None
    cursor: int
    how: str
    redacted: bool = False

    @property
    def content(self) -> _Bytes:
        """The exact bytes; empty where they went to `local_path`."""
        return base64.b64decode(self.data_b64) if self.data_b64 is not None else (self.data or "").encode("utf-8")
