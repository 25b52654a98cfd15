r"""Marks: the grammar of one, and nothing about what it does.

    ESC ] 7717 ; KIND ; key=value ; ... BEL          (no blanks; ESC \ is accepted in place of BEL)

Rules of this file: a mark is ASCII, at most `MAX_MARK` bytes, written by the shell in one write(2). What does not
follow the grammar is no mark. Whether a mark is authentic is decided in authentication.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

INTRODUCER: Final = b"\x1b]7717;"
# bash's printf writes in 1,024-byte pieces; below that a mark survives any concurrent writer (measured).
MAX_MARK: Final = 512
NONCE_LENGTH: Final = 22

KINDS: Final = frozenset(
    {
        "__HELLO__", "__BEGIN__", "__OUT_END__", "__END__", "__PROMPT__", "__PS2__", "__CWD__", "__CMD__", "__LINE__",
        "__SEAM__",
    }
)  # fmt: skip

BODY: Final = re.compile(rb"\x1b\]7717;([0-9A-Za-z+/=%._:,;\-]*)")
_UNESCAPE: Final = re.compile(rb"%([0-9A-Fa-f]{2})")
_DIGITS: Final = 12


# Not frozen: a frozen one takes several times as long to make.
class Mark(Struct):
    """A well-formed mark.

    Attributes:
        kind: the word between the first two semicolons, such as `__BEGIN__`.
        nonce: value of `n`.
        instance: value of `i`, the pid of the shell that wrote it.
        seq: value of `s`, +1 for every BEGIN and END of that shell.
        count: value of `c`, +1 for every BEGIN.
        prompt: value of `p`, +1 for every fresh prompt; None when absent.
        fields: all key=value pairs.
    """

    kind: str
    nonce: str
    instance: str
    seq: int
    count: int
    prompt: int | None
    fields: Mapping[str, str]

    def number(self, key: str) -> int | None:
        """Return a non-negative number field, or None when it is absent or no number."""
        text = self.fields.get(key, "")
        return int(text) if text.isdecimal() and len(text) <= _DIGITS else None


def parse_mark(body: bytes) -> Mark | None:
    """Parse what stands between introducer and terminator; None when it is no mark of ours."""
    parts = body.decode("ascii", "replace").split(";")
    if parts[0] not in KINDS:
        return None
    fields: dict[str, str] = {}
    for part in parts:
        key, equals, value = part.partition("=")
        if equals:
            fields[key] = value
    seq, count, prompt = fields.get("s", ""), fields.get("c", ""), fields.get("p", "")
    nonce, instance = fields.get("n", ""), fields.get("i", "")
    if not (nonce and instance and seq.isdecimal() and count.isdecimal() and max(len(seq), len(count)) <= _DIGITS):
        return None
    number = int(prompt) if prompt.isdecimal() and len(prompt) <= _DIGITS else None
    return Mark(parts[0], nonce, instance, int(seq), int(count), number, fields)


def is_nameless(body: bytes) -> bool:
    """Whether it is a mark but for its empty nonce: a shell has inherited our prompts, and not what only we know."""
    return b";n=;" in body and parse_mark(body.replace(b";n=;", b";n=-;", 1)) is not None


def joined(pieces: list[str], mark: Mark, limit: int) -> tuple[list[str], bytes | None]:
    """Take the next piece of a text that a mark or several carry; return the pieces so far, and the text once whole.

    A text in one piece is `d=<text>`, in several `d=<k>/<n>:<piece>`, k from 1; percent-encoded bytes either way.
    """
    value = mark.fields.get("d", "")
    head, colon, piece = value.partition(":")
    if colon:
        index, _, total = head.partition("/")
        before = [] if index == "1" else pieces
        if index != str(len(before) + 1) or len(before) >= limit:
            return [], None
        pieces = [*before, piece]
        if index != total:
            return pieces, None
        value = "".join(pieces)
    return [], _UNESCAPE.sub(lambda found: bytes([int(found.group(1), 16)]), value.encode("ascii"))
