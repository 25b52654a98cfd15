"""Finding secrets without `suspects`: every line is cleaned and looked at, word for word. What the tests compare with.

It is how it was done before there was a quicker way; the shapes of secrets are the same.
"""

from __future__ import annotations

import bisect
import re
from typing import Final, NamedTuple

from blockpty.control import redaction
from blockpty.control.secrets import (
    NAMED,
    PRIVATE_KEY,
    PRIVATE_KEY_PIECE,
    PRIVATE_KEY_WORD,
    RUN_CHARS,
    RUN_LEAST,
    TOKEN_OPEN,
    WIDE_RUN_CHARS,
    Named,
)

_OPEN_BYTES: Final = 4096

_WORDS: Final[dict[bytes, tuple[Named, ...]]] = {
    word: tuple(shape for shape in NAMED if shape.word == word) for word in dict.fromkeys(one.word for one in NAMED)
}
_PARAMETER: Final = re.compile(rb"[?&][A-Za-z0-9_.-]{0,32}\Z")

# What shows nothing, in the order in which it is taken out: sequences, single bytes, and how a line editor goes on in
# the next row of the screen. Each begins with one known byte, or is looked for at memory speed, before it is matched.
_SEQUENCE: Final = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*(?:[@-~]|\Z)"
    rb"|[\]PX^_]([^\x07\x18\x1a\x1b]*)(?:\x07|\x18|\x1a|\x1b\\|(?=\x1b)|\Z)"
    rb"|[ -/]*(?:[0-~]|\Z))"
)
_SILENT_BYTES: Final = bytes([*range(9), *range(14, 27), *range(28, 32), 127])
_SILENT: Final = re.compile(b"[%s]+" % re.escape(_SILENT_BYTES))
_JUMP: Final = re.compile(rb"\r(?=\x1b\[[0-9]+C|\x1b?\Z|\x1b\[[0-9]*\Z)")
_WRAPPED: Final = re.compile(rb" \r(?=[^\n])")
_STRING: Final = re.compile(rb"\x1b[\]PX^_]")
_BORDER: Final = re.compile(rb"\x1b\](?:7717|133|633|3008);[^\x07\x18\x1a\x1b]*(?:\x07|\x18|\x1a|\x1b\\|(?=\x1b)|\Z)")


class Reference(NamedTuple):
    """Where secrets are in a text.

    Attributes:
        spans: their begins and ends, in order, apart from each other.
        settled: up to here nothing changes, whatever follows the text.
    """

    spans: list[tuple[int, int]]
    settled: int


def find(text: bytes, *, more: bool = False) -> Reference:
    """Find the secrets in a text without control sequences.

    `more`: the text may go on. What may become a secret at its end is then one.
    """
    spans: list[tuple[int, int]] = []
    settled = min(_tokens(text, spans, more), _named(text, spans, more), redaction._password_lines(text, spans, more))
    if PRIVATE_KEY_WORD in text:
        for found in PRIVATE_KEY.finditer(text):
            pieces = PRIVATE_KEY_PIECE.finditer(text, *found.span("value"))
            spans += [piece.span(1) for piece in pieces if piece[1] is not None]
            if more and found.end() == len(text):
                settled = min(settled, found.start("value"))
    return Reference(_joined(spans), settled)


def _tokens(text: bytes, spans: list[tuple[int, int]], more: bool) -> int:
    for chars, only_wide in ((RUN_CHARS, False), (WIDE_RUN_CHARS, True)):
        runs = text.translate(bytes(97 if one in chars else 32 for one in range(256)))
        redaction._tokens_in_runs(text, runs, spans, only_wide=only_wide)
    if more:
        begun = TOKEN_OPEN.search(text, max(0, len(text) - _OPEN_BYTES))
        if begun is not None:
            begin = begun.start(begun.lastindex or 0)
            spans.append((begin, len(text)))
            return begin
    return len(text)


def _named(text: bytes, spans: list[tuple[int, int]], more: bool) -> int:
    settled = len(text)
    small = text.lower()
    for word, shapes in _WORDS.items():
        at = small.find(word)
        while at >= 0:
            for shape in shapes:
                if shape.may_be is not None and not shape.may_be(text, at):
                    continue
                found = shape.pattern.match(text, at)
                if found is None:
                    continue
                begin, end = _value(found)
                if end == len(text) and more:
                    settled = min(settled, begin)
                    spans.append((begin, end))
                    continue
                value = text[begin:end]
                if b"&" in value and _PARAMETER.search(text, max(0, at - 33), at):
                    value = value.partition(b"&")[0]
                value = value.rstrip(b",;)]}")
                if value and shape.judge(text, found, value):
                    spans.append((begin, begin + len(value)))
            at = small.find(word, at + len(word))
    return settled


def _value(found: re.Match[bytes]) -> tuple[int, int]:
    groups = found.re.groupindex
    if "value" in groups:
        return found.span("value")
    return found.span("quoted") if found["quoted"] is not None else found.span("bare")


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        elif begin < end:
            joined.append((begin, end))
    return joined


def find_shown(data: bytes, *, more: bool = False) -> Reference:
    """Find the secrets in what a terminal is sent; a span may have control sequences in it, which are not secret.

    Where a secret is part of a control sequence's own string, the span lies inside that.
    """
    borders = list(_BORDER.finditer(data)) if b"\x1b]" in data else []
    ours = [border for border in borders if border[0].startswith(b"\x1b]7717;")]
    spans: list[tuple[int, int]] = []
    settled = len(data)
    for chosen in (borders, ours):
        at = 0
        for border in chosen:
            _find_between(data, at, border.start(), False, spans)
            at = border.end()
        settled = min(settled, _find_between(data, at, len(data), more, spans))
    at = borders[-1].end() if borders else 0
    if borders:
        unfinished = more and at == len(data) and data[-1:] not in (b"\x07", b"\x18", b"\x1a", b"\\")
        redaction._find_in_marks(data, borders, unfinished, spans)  # of both the same
        settled = min(settled, borders[-1].start()) if unfinished else settled
    return Reference(_joined(spans), settled)


def _find_between(data: bytes, begin: int, end: int, more: bool, spans: list[tuple[int, int]]) -> int:
    """Find the secrets of a text between two marks; return up to where they are settled."""
    part = data[begin:end] if begin or end < len(data) else data
    settled = _find_as_shown(part, begin, more, spans)
    if b"\0" in part:
        settled = min(settled, _find_as_shown(part.replace(b"\0", b"\n"), begin, more, spans))
    return begin + settled


def _find_as_shown(part: bytes, begin: int, more: bool, spans: list[tuple[int, int]]) -> int:
    clean, taken = _cleaned(part)
    found = find(clean, more=more)
    settled = len(part)
    if found.spans or found.settled < len(clean):
        shown, settled = found
        for places in [_Places(before, pattern) for before, pattern in reversed(taken)]:
            shown = [piece for first, last in shown for piece in places.shown(first, last)]
            settled = places.place(settled)
        spans += [(first + begin, last + begin) for first, last in shown]
    if _STRING.search(part) is not None:
        settled = min(settled, _find_in_strings(part, begin, more, spans))
    return settled


def _cleaned(data: bytes) -> tuple[bytes, list[tuple[bytes, re.Pattern[bytes]]]]:
    """Return what is shown of data, and how it became that: each text before something was taken out, and what."""
    taken = []
    if b"\r" in data:
        taken.append((data, _JUMP))
        data = _JUMP.sub(b"", data)
    if b"\x1b" in data:
        taken.append((data, _SEQUENCE))
        data = _SEQUENCE.sub(b"", data)
    heard = data.translate(None, _SILENT_BYTES)
    if len(heard) != len(data):
        taken.append((data, _SILENT))
        data = heard
    if redaction._HIDDEN.search(data):
        taken.append((data, redaction._HIDDEN))
        data = redaction._HIDDEN.sub(b"", data)
    if b" \r" in data:
        taken.append((data, _WRAPPED))
        data = _WRAPPED.sub(b"", data)
    return data, taken


def _find_in_strings(part: bytes, begin: int, more: bool, spans: list[tuple[int, int]]) -> int:
    """Find what the strings of control sequences hold; return up to where in the part it is settled."""
    settled = len(part)
    for control in _SEQUENCE.finditer(part):
        string = control[1]
        if string is not None and len(string) > RUN_LEAST // 2:
            unfinished = control.end(1) == len(part)
            found, at = find(string, more=more and unfinished), control.start(1)
            spans += [(first + at + begin, last + at + begin) for first, last in found.spans]
            if unfinished:
                settled = min(settled, at + found.settled)
    return settled


class _Places:
    """Where the bytes of a text from which something was taken out stood before."""

    def __init__(self, data: bytes, pattern: re.Pattern[bytes]) -> None:
        self._clean: list[int] = []  # where in the clean text something was taken out
        self._raw: list[tuple[int, int]] = []  # what that was
        taken = 0
        for control in pattern.finditer(data):
            begin, end = control.span()
            self._clean.append(begin - taken)
            self._raw.append((begin, end))
            taken += end - begin

    def place(self, clean: int) -> int:
        """Return the place of a byte; what was taken out before it lies before it."""
        number = bisect.bisect_right(self._clean, clean)
        if number == 0:
            return clean
        return self._raw[number - 1][1] + clean - self._clean[number - 1]

    def shown(self, begin: int, end: int) -> list[tuple[int, int]]:
        """Return the pieces that a span of the clean text has, without what was taken out."""
        pieces, at = [], self.place(begin)
        number = bisect.bisect_right(self._clean, begin)
        while number < len(self._clean) and self._clean[number] < end:
            first, last = self._raw[number]
            if at < first:
                pieces.append((at, first))
            at = last
            number += 1
        pieces.append((at, at + end - self._before(number, begin)))
        return pieces

    def _before(self, number: int, begin: int) -> int:
        """Return how far the clean text had come where the piece before a number begins."""
        return begin if number == 0 else max(begin, self._clean[number - 1])
