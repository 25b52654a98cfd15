r"""The grammar of what other shell integrations print about themselves: OSC 133, 633, 7 and 3008.

    ESC ] 133 ; A ... BEL    ESC ] 633 ; P ... BEL    ESC ] 7 ; <address> BEL    ESC ] 3008 ; start=... BEL

Rules of this file: a hint decides nothing. Any program can print one, so it is evidence and never a border.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

HINT: Final = re.compile(rb"\x1b\]([16]33|7|3008);([\x20-\x7e\x80-\xff]*)(\x07|\x1b\\)?")
INTRODUCERS: Final = (b"\x1b]133;", b"\x1b]633;", b"\x1b]7;", b"\x1b]3008;")
# Our own, in front of BEGIN: for the terminal of a person who attaches. There it is part of the mark.
LEAD: Final = b"\x1b]133;C\x07"
# fish 4's own at the end of a command, in front of an END that says so: it is part of that mark.
TRAIL: Final = re.compile(rb"\x1b\]133;D(?:;[0-9]{1,10})?(?:\x07|\x1b\\)")
TRAIL_FIELD: Final = "d"
# A `cat` of a recorded terminal holds thousands.
MAX_HINTS: Final = 64

_KIND: Final = re.compile(rb"([A-Za-z]{1,16})(?:[;=]|\Z)")


class Hint(NamedTuple):
    """A well-formed hint.

    Attributes:
        source: the number of the control sequence, `133`, `633`, `7` or `3008`.
        kind: the letter or word in front; `cwd` for 7.
    """

    source: str
    kind: str


@lru_cache(64)  # every prompt has the same few
def parse_hint(source: bytes, body: bytes) -> Hint | None:
    """Parse what stands between the number and the terminator; None when it says nothing that is known."""
    if source == b"7":
        return Hint("7", "cwd")
    found = _KIND.match(body)
    return Hint(source.decode("ascii"), found.group(1).decode("ascii")) if found else None


PROMPT_BEGINS: Final = Hint("133", "A")
