"""Colour sequences that may break a text, found in the bytes of many lines at once.

Rules of this file: pure; numpy, as in `sqlite_lists`. The lines have no other controls than `ESC [ ... m` and
`ESC [ ... K`, as `Window.kind` says; capital letters may have become small ones.
"""

from __future__ import annotations

from typing import Final

import numpy as np

_ESC: Final = 0x1B
# The first of these letters behind an ESC ends its sequence: nothing else of one is a letter.
_ENDS: Final = b"mKk"
# Bytes of a sequence, at most; see `text`.
_LONGEST: Final = 67


class Breaks:
    """Finds where what is before a sequence and what is behind it may be neighbours in a text."""

    def __init__(self, text: bytes) -> None:
        size = len(text)
        self._first = np.zeros(256, np.bool_)
        self._both = np.zeros(1 << 16, np.bool_)
        for at in range(1, size):
            self._first[text[at - 1]] = self._both[text[at - 1] << 8 | text[at]] = True
        self._end = np.zeros(256, np.bool_)
        self._end[list(_ENDS)] = True
        # What two bytes before and two behind are; where the text begins or ends there, one is anything.
        self._all = {text[at - 2 : at + 2] for at in range(2, size - 1)}
        self._begins, self._ends = {text[:3]}, {text[-3:]}
        self._short = size == 2

    def places(self, data: bytes) -> list[int]:
        """Return where sequences begin that may break it, in order."""
        codes = np.frombuffer(data, np.uint8)
        escs = np.flatnonzero(codes == _ESC)
        # Of sequences that follow each other the first one has the text before it.
        begins = escs[self._first[codes[escs - 1]]]
        ends = begins + 2
        for _ in range(_LONGEST):
            inside = ~self._end[codes[np.minimum(ends, len(codes) - 1)]]
            if not inside.any():
                break
            ends += inside
        ends = np.minimum(ends + 1, len(codes) - 1)
        following = codes[ends]
        may = self._both[codes[begins - 1].astype(np.uint16) << 8 | following] | (following == _ESC)
        return [
            begin
            for begin, end in zip(begins[may].tolist(), ends[may].tolist(), strict=True)
            if self._may_break(data[max(0, begin - 2) : begin], data[end : end + 2])
        ]

    def _may_break(self, before: bytes, behind: bytes) -> bool:
        around = before + behind
        return (
            self._short
            or around in self._all
            or around[-3:] in self._begins
            or around[:3] in self._ends
            # Of that little between two sequences nothing is asked.
            or _ESC in behind
            or before[:1] in (b"m", b"K", b"k")
        )
