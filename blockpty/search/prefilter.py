"""The prefilter: bytes of chunks that cannot match, found without making of them what is matched.

Rules of this file: pure. It may let through what does not match, never the reverse.

What is shown is made of the bytes by taking out what begins with ESC or is a control character. So a text that is shown
stands in the bytes as it is, or with colours and the like in between, or its beginning is followed by another of these.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from ahocorasick_rs import BytesAhoCorasick

from blockpty.search.planner import Plan
from blockpty.search.text import COLOURED, MIXED, PLAIN

if TYPE_CHECKING:
    from blockpty.search.breaks import Breaks

# What a nonce is masked with, and what stands for bytes that are no character: they cannot be found in the bytes.
_STANDING_FOR: Final = frozenset("*\ufffd")
# Control sequences as colours are made of: each is taken out whole, and nothing else.
_CSI: Final = rb"\x1b\[[0-?]{0,64}[@-~]"
_CONTROLS: Final = rb"\x00-\x08\x0b\x0c\x0e-\x1f\x7f"
_COLOURS: Final = re.compile(_CSI)
# What is left when there is no other control than these.
_SHOWN: Final = bytes(byte for byte in range(256) if byte in b"\t\n\r" or (byte >= 0x20 and byte != 0x7F))
# The characters that are no ASCII and that are folded into it: K, long s, capital I with a dot, i without one; or the
# beginning of one, which goes on behind something that is not shown.
_FOREIGN: Final = re.compile(
    "|".join("\u212aſİı").encode() + rb"|[\xc4\xc5\xe2][\x00-\x1f\x7f]|\xe2\x84[\x00-\x1f\x7f]"
)
# So many bytes that a text is not in every line.
_RARE: Final = 4
# So many bytes of a text are looked for.
_LOOKED_FOR: Final = 24
# What a sequence in a piece that is COLOURED is made of, but for its beginning; in small letters as well.
_OF_COLOURS: Final = b"[0123456789;:mKk"


class Prefilter:
    """Decides whether raw bytes may hold a match. Nonces need not be redacted."""

    def __init__(self, plan: Plan) -> None:
        query = plan.query
        self._exact = query.mode == "substring" and not query.folds
        ways = ((query.text,),) if self._exact else plan.literals
        self._blind = not ways or any(_STANDING_FOR & set(text) for way in ways for text in way)
        self._ascii = all(text.isascii() for way in ways for text in way)
        self._ways = [[_Sought(text.encode()[:_LOOKED_FOR]) for text in way] for way in ways]

    def may_match(self, raw: bytes) -> bool:
        """Whether whole lines may hold a match."""
        if self._blind or not (self._exact or raw.isascii() or (self._ascii and _FOREIGN.search(raw) is None)):
            return True  # only what is ASCII is folded byte by byte
        small = raw if self._exact else raw.lower()
        shown, only_colours = b"", False
        for way in self._ways:
            for sought in way:
                if sought.text in small:
                    continue
                if not shown:
                    # The pattern would do, but takes long where many lines begin as the text does.
                    shown = _COLOURS.sub(b"", small)
                    only_colours = not shown.translate(None, _SHOWN)
                if sought.text not in shown and (only_colours or sought.broken.search(small) is None):
                    break
            else:
                return True
        return False

    def among(self, pieces: Sequence[bytes], kinds: Sequence[int]) -> Sequence[int]:
        """Return which of some pieces may hold a match, each of whole lines and of a kind as `Window.kind`."""
        if self._blind:
            return range(len(pieces))
        of: dict[int, list[int]] = {MIXED: [], PLAIN: [], COLOURED: []}
        for at, kind in enumerate(kinds):
            of[kind].append(at)
        found = [at for at in of[MIXED] if self.may_match(pieces[at])]
        for kind in (PLAIN, COLOURED):
            if several := of[kind]:
                there = self._together([pieces[at] for at in several], kind == COLOURED)
                found += [several[at] for at in there]
        return found

    def _together(self, pieces: Sequence[bytes], coloured: bool) -> set[int]:
        # No text that is looked for has a line end, so none goes on from one piece to the next.
        joined = b"\n".join(pieces)
        small = joined if self._exact else joined.lower()
        begins = [0, *accumulate(len(piece) + 1 for piece in pieces)]
        found: set[int] = set()
        for way in self._ways:
            left: set[int] | None = None
            for sought in way:
                there = sought.coloured(small, begins) if coloured else sought.plain(small, begins)
                left = there if left is None else left & there
                if not left:
                    break
            found |= left or set()
        return found


class _Sought:
    """A text that is looked for, in bytes that hold it as it is, or with something that is not shown in between."""

    def __init__(self, text: bytes) -> None:
        self.text = text

    @cached_property
    def broken(self) -> re.Pattern[bytes]:
        """The pattern of it with what is not shown in between."""
        pattern = b""
        for at in range(len(self.text) - 1, 0, -1):
            byte = re.escape(self.text[at : at + 1])
            # What goes on with neither is decided first, which is nearly all of it.
            follows = b"(?=[%s%s])(?:%s)*" % (byte, _CONTROLS, _CSI)
            pattern = b"%s(?:(?!%s)[%s]|%s%s)" % (follows, _CSI, _CONTROLS, byte, pattern)
        return re.compile(re.escape(self.text[:1]) + pattern)

    def plain(self, data: bytes, begins: Sequence[int]) -> set[int]:
        """Return in which of the pieces that begin there it is."""
        found: set[int] = set()
        if len(self.text) >= _RARE:
            after = 0
            for _, at, _ in self._whole.find_matches_as_indexes(data):
                if at >= after:
                    after = _piece(at, begins, found)
            return found
        at = data.find(self.text)
        while at >= 0:
            at = data.find(self.text, _piece(at, begins, found))
        return found

    def coloured(self, data: bytes, begins: Sequence[int]) -> set[int]:
        """Return in which of the pieces that begin there it is, where these may have colours in between."""
        found: set[int] = set()
        if self.text[0] in _OF_COLOURS:
            # What is there as it is may be the end of a sequence and what follows.
            self._in_lines([at for _, at, _ in self._whole.find_matches_as_indexes(data)], data, begins, found)
        else:
            found = self.plain(data, begins)
        if len(self.text) > 1:
            self._in_lines(self._breaks.places(data), data, begins, found)
        return found

    def _in_lines(self, places: Sequence[int], data: bytes, begins: Sequence[int], found: set[int]) -> None:
        """Look at the lines of some places; note the pieces in which it is."""
        after = 0
        for at in places:
            if at >= after:
                number = bisect_right(begins, at)
                if number - 1 in found:
                    after = begins[number]
                    continue
                begin, end = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
                after = end if end >= 0 else len(data)
                if self.text in _COLOURS.sub(b"", data[begin:after]):
                    found.add(number - 1)

    @cached_property
    def _whole(self) -> BytesAhoCorasick:
        # It names all places, which is no help where there are many; without any it is ten times as fast as `in`.
        return BytesAhoCorasick([self.text])

    @cached_property
    def _breaks(self) -> Breaks:
        from blockpty.search.breaks import Breaks  # numpy: not before it is needed

        return Breaks(self.text)


def _piece(at: int, begins: Sequence[int], found: set[int]) -> int:
    """Note the piece that a place is in; return where the next one begins."""
    number = bisect_right(begins, at)
    found.add(number - 1)
    return begins[number] if number < len(begins) else begins[-1]
