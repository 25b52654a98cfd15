"""A glance at a piece of a chunk, by which most of what an index names and what does not match can be told.

Rules of this file: pure. It may let through what does not match, never the reverse.

What is shown is made of the bytes by taking out what begins with ESC or is a control character. So a text that is shown
stands in the bytes as it is, or with colours and the like in between, or its beginning is followed by another of these.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from ahocorasick_rs import BytesAhoCorasick

from blockpty.search.plan import Plan

# What a nonce is covered with, and what stands for bytes that are no character: they cannot be found in the bytes.
_STANDING_FOR: Final = frozenset("*\ufffd")
# Control sequences as colours are made of: each is taken out whole, and nothing else.
_CSI: Final = rb"\x1b\[[0-?]{0,64}[@-~]"
_CONTROLS: Final = rb"\x00-\x08\x0b\x0c\x0e-\x1f\x7f"
_COLOURS: Final = re.compile(_CSI)
# What is left when there is no other control than these.
_SHOWN: Final = bytes(byte for byte in range(256) if byte in b"\t\n\r" or (byte >= 0x20 and byte != 0x7F))
# So many bytes that a text is not in every line.
_RARE: Final = 4
# So many bytes of a text are looked for.
_LOOKED_FOR: Final = 24


class Glance:
    """Tells whether raw bytes may hold a match, without making of them what is matched. Nonces need not be covered."""

    def __init__(self, plan: Plan) -> None:
        query = plan.query
        self._exact = query.mode == "substring" and not query.folds
        ways = ((query.text,),) if self._exact else plan.literals
        self._blind = not ways or any(_STANDING_FOR & set(text) for way in ways for text in way)
        self._ways = [[_sought(text.encode()[:_LOOKED_FOR]) for text in way] for way in ways]

    def may_match(self, raw: bytes, plain: bool) -> bool:
        """Whether whole lines may hold a match; `plain`: they are known to be that, as `Window.plain`."""
        if self._blind or not (self._exact or raw.isascii()):
            return True  # only what is ASCII is folded byte by byte
        small = raw if self._exact else raw.lower()
        shown: bytes | None = None
        for way in self._ways:
            for holds, broken in way:
                if holds(small):
                    continue
                if plain:
                    break
                if shown is None:
                    # The pattern would do, but takes long where many lines begin as the text does.
                    shown = _COLOURS.sub(b"", small)
                    plain = not shown.translate(None, _SHOWN)
                if not holds(shown) and (plain or broken.search(small) is None):
                    break
            else:
                return True
        return False


def _sought(text: bytes) -> tuple[Callable[[bytes], object], re.Pattern[bytes]]:
    """Return what tells whether bytes hold a text, and the pattern of it with what is not shown in between."""
    pattern = b""
    for at in range(len(text) - 1, 0, -1):
        byte = re.escape(text[at : at + 1])
        # What goes on with neither is told first, which is nearly all of it.
        follows = b"(?=[%s%s])(?:%s)*" % (byte, _CONTROLS, _CSI)
        pattern = b"%s(?:(?!%s)[%s]|%s%s)" % (follows, _CSI, _CONTROLS, byte, pattern)
    # It names all places, which is no help where there are many; where there is none it is ten times as fast as `in`.
    holds = BytesAhoCorasick([text]).find_matches_as_indexes if len(text) >= _RARE else lambda data: text in data
    return holds, re.compile(re.escape(text[:1]) + pattern)
