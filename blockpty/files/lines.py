"""Checksummed JSON lines: the last field of a line is a checksum of everything before it.

The seal is `"crc":"%08x"`, the CRC-32 of the line's object without that field and without the line feed. It finds every
damage of up to 32 bits in a row and all but one in 4 billion others; it proves nothing against a deliberate change.

A line of the timeline is also linked to the line before it: `prev` is a digest of that whole line, and `sum` one of the
bytes of the stream between the offsets of the two. So each line vouches for everything before it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import Any, Final
from zlib import crc32

_KEY: Final = b',"crc":"'
_LENGTH: Final = len(_KEY) + 8 + 2


def sealed(record: bytes) -> bytes:
    """Return a JSON object that has at least one field, sealed, with a line feed."""
    return b'%s,"crc":"%08x"}\n' % (record[:-1], crc32(record))


def is_sound(line: bytes) -> bool | None:
    """Return whether a line (without its line feed) is what was sealed; None when it has no seal."""
    seal = line[-_LENGTH:]
    if not (seal.startswith(_KEY) and seal.endswith(b'"}') and len(seal) == _LENGTH):
        return None
    return seal[len(_KEY) : -2] == b"%08x" % crc32(line[:-_LENGTH] + b"}")


def decode_line(line: bytes, loads: Callable[[bytes], Any] = json.loads) -> dict[str, Any] | None:
    """Return the object of a line, or None when the line is damaged; NUL bytes before it are left out.

    A line without a seal is not damaged by that. `loads` raises ValueError for what is no JSON.
    """
    line = line.lstrip(b"\0")
    if is_sound(line) is False:
        return None
    try:
        record = loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


# 128 bits: a second text with the same digest cannot be found.
DIGEST_DIGITS: Final = 32


def digest_of(pieces: Iterable[bytes]) -> str:
    """Return the digest of some bytes, as `sum` and `prev` hold it."""
    digest = sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()[:DIGEST_DIGITS]


def link_of(line: bytes) -> str:
    """Return what the line after this one has as `prev`; `line` without its line feed, b"" for none."""
    return sha256(line.lstrip(b"\0")).hexdigest()[:DIGEST_DIGITS]


def linked(record: bytes, link: str, digest: str | None) -> bytes:
    """Return a JSON object that has at least one field, linked to the line before it and sealed, with a line feed.

    `digest` is that of the stream's bytes since the offset of that line, None when there are none.
    """
    summed = b',"sum":"%s"' % digest.encode() if digest is not None else b""
    return sealed(b'%s%s,"prev":"%s"}' % (record[:-1], summed, link.encode()))
