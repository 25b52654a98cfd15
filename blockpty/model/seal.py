"""A line that can tell whether it is whole: its last field is a checksum of everything before it.

The seal is `"crc":"%08x"`, the CRC-32 of the line's object without that field and without the line feed. It finds every
damage of up to 32 bits in a row and all but one in 4 billion others; it proves nothing against somebody who wants to
deceive.
"""

from __future__ import annotations

from typing import Final
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
