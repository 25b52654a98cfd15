"""Bytes of a stream with nonces covered: how they leave, in whatever form."""

from __future__ import annotations

from blockpty.engine.marks import NONCE_LENGTH
from blockpty.spool.masking import Mask
from blockpty.spool.stream import StreamReader


def masked(stream: StreamReader, mask: Mask, begin: int, length: int) -> bytes:
    """Return bytes of the stream with nonces covered, also those of which only a part lies in the range."""
    before = min(begin, NONCE_LENGTH)
    data = mask.hide(stream.read(begin - before, before + length + NONCE_LENGTH))
    return data[before : before + length]
