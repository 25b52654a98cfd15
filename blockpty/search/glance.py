"""A glance at a piece of a chunk, by which most of what an index names and what does not match can be told.

Rules of this file: pure. It may let through what does not match, never the reverse.
"""

from __future__ import annotations

from typing import Final

from blockpty.search.plan import Plan

# What a nonce is covered with, and what stands for bytes that are no character: they cannot be found in the bytes.
_STANDING_FOR: Final = frozenset("*\ufffd")


class Glance:
    """Tells whether bytes may hold a match, without making of them what is matched."""

    def __init__(self, plan: Plan) -> None:
        query = plan.query
        self._exact = query.mode == "substring" and not query.folds
        ways = ((query.text,),) if self._exact else plan.literals
        self._blind = not ways or any(_STANDING_FOR & set(text) for way in ways for text in way)
        self._ways = [[text.encode() for text in way] for way in ways]

    def may_match(self, data: bytes) -> bool:
        """Whether whole lines may hold a match: what is shown of a window, or its raw bytes where it is `plain`.

        Nonces in them need not be covered.
        """
        if self._blind or not (self._exact or data.isascii()):
            return True  # only what is ASCII is folded byte by byte
        small = data if self._exact else data.lower()
        return any(all(text in small for text in way) for way in self._ways)
