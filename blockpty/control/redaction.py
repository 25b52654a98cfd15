"""Covering secrets on their way out: the same text with asterisks where a secret was, cell for cell and byte for byte.

Rules of this file: pure; it knows no file and no conversation. Nothing becomes longer or shorter, so cursors, offsets
and columns mean the same before and after. Line ends, blanks and control sequences stay where they are.

Secrets are looked for in what a reader sees: control sequences are taken out first and put back afterwards, so a colour
in the middle of a token hides nothing. What stands in the string of a control sequence (a window's title, a link) is a
text of its own. Our marks and those of other integrations end a text: what a program printed is not one word with the
prompt behind it. Those of others any program can print, so they are also read as if they were not there. What a mark
carries (a command, a directory) is a text of its own too, percent-encoded.

Speed matters, since everything that leaves goes through here. `suspects` tells at memory speed where a secret can be.
Regular expressions run only there, and only there control sequences are taken out.
"""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from blockpty.control import suspects
from blockpty.control.secrets import (
    NAMED,
    PASSWORD_LINE,
    PRIVATE_KEY,
    PRIVATE_KEY_PIECE,
    RUN_CHARS,
    RUN_LEAST,
    TOKEN,
    TOKEN_IS_WIDE,
    TOKEN_OPEN,
    TOKEN_REST,
    WIDE_RUN_CHARS,
    is_password_line,
)
from blockpty.control.suspects import SILENT_BYTES

LONGEST: Final = 32 * 1024
"""How long a secret may be, in bytes, to be covered wherever a text is cut: a text begins so far before what leaves."""

_RUN: Final = b"a" * RUN_LEAST
_RUNS: Final = bytes(97 if one in RUN_CHARS else 32 for one in range(256))
_WIDE_RUNS: Final = bytes(97 if one in WIDE_RUN_CHARS else 32 for one in range(256))
# A token's prefix may stand before its run (the digits and the colon of a bot's), and its value go on behind it.
_BEFORE_RUN: Final = 40
_AFTER_RUN: Final = 128
_OPEN_BYTES: Final = 4096
# What values and prefixes have, and the percent that may stand before one.
_OF_TOKENS: Final = WIDE_RUN_CHARS + b"$,:%"
# Who has none of the strings here has none at all, most of the time.
_BEGINNING: Final = 64 * 1024
# So little is cleaned sooner than looked at first.
_FEW_BYTES: Final = 512

# Of each word its shapes: the match at a place, the groups that may be its value, how long that is, what judges it.
_SHAPES: Final = {
    word: tuple(
        (
            shape.pattern.match, ("value",) if "value" in shape.pattern.groupindex else ("quoted", "bare"),
            shape.least, shape.judge, shape.may_be,
        )
        for shape in NAMED
        if shape.word == word
    )
    for word in dict.fromkeys(one.word for one in NAMED)
}  # fmt: skip
_PARAMETER: Final = re.compile(rb"[?&][A-Za-z0-9_.-]{0,32}\Z")

# What shows nothing, in the order in which it is taken out: sequences, single bytes, and how a line editor goes on in
# the next row of the screen. Each begins with one known byte, or is looked for at memory speed, before it is matched.
_SEQUENCE: Final = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*(?:[@-~]|\Z)"
    rb"|[\]PX^_]([^\x07\x18\x1a\x1b]*)(?:\x07|\x18|\x1a|\x1b\\|(?=\x1b)|\Z)"
    rb"|[ -/]*(?:[0-~]|\Z))"
)
# Those that `suspects` has made sure that there are no others, in half the time.
_SIMPLE_SEQUENCE: Final = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")
_SILENT: Final = re.compile(b"[%s]+" % re.escape(SILENT_BYTES))
# Characters without a width, and a CSI of one character with what belongs to it, also as a byte that is no part of one;
# and at the end, what may become one of these.
_HIDDEN: Final = re.compile(
    rb"\xe2\x80[\x8b-\x8f]|\xe2\x81[\xa0-\xa4]|\xef\xbb\xbf|\xc2\xad"
    rb"|(?:\xc2\x9b|\x9b(?<![\x80-\xff]\x9b))[0-?]{0,64}[ -/]{0,8}(?:[@-~]|\Z)"
    rb"|(?:\xc2|\xe2[\x80\x81]?|\xef\xbb?)\Z"
)
# A line editor that goes to its column from the left edge after each key.
_JUMP: Final = re.compile(rb"\r(?=\x1b\[[0-9]+C|\x1b?\Z|\x1b\[[0-9]*\Z)")
_WRAPPED: Final = re.compile(rb" \r(?=[^\n])")
# What is in one: an ESC ends it, whatever comes then.
_STRING: Final = re.compile(rb"\x1b[\]PX^_]([^\x07\x18\x1a\x1b]*)")
_STRING_ENDS: Final = (b"\x07", b"\x18", b"\x1a", b"\\")
_BORDER: Final = re.compile(rb"\x1b\](?:7717|133|633|3008);[^\x07\x18\x1a\x1b]*(?:\x07|\x18|\x1a|\x1b\\|(?=\x1b)|\Z)")
_OURS: Final = ord("7")  # how the number of our marks begins

# What a mark of ours carries, in one piece or as the piece with a number of so many.
_CARRIED: Final = re.compile(rb";d=(?:(?P<number>[0-9]+)/[0-9]+:)?(?P<text>[^;\x07\x18\x1a\x1b]*)")
_CODE: Final = re.compile(rb"%([0-9A-Fa-f]{2})")

_CHARACTER: Final = re.compile(
    rb"[^\r\n\t \x80-\xff]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}|[\x80-\xff]"
)
_ASTERISKS: Final = bytes(one if one in b"\r\n\t " else 42 for one in range(256))


class Found(NamedTuple):
    """Where secrets are in a text.

    Attributes:
        spans: their begins and ends, in order, apart from each other.
        settled: up to here nothing changes, whatever follows the text.
    """

    spans: list[tuple[int, int]]
    settled: int


def find(text: bytes, *, more: bool = False) -> Found:
    """Find the secrets in a text without control sequences.

    `more`: the text may go on. What may become a secret at its end is then one.
    """
    spans: list[tuple[int, int]] = []
    settled = min(_tokens(text, spans, more), _named(text, spans, more), _password_lines(text, spans, more))
    if suspects.has_private_key(text):
        for found in PRIVATE_KEY.finditer(text):
            pieces = PRIVATE_KEY_PIECE.finditer(text, *found.span("value"))
            spans += [piece.span(1) for piece in pieces if piece[1] is not None]
            if more and found.end() == len(text):
                settled = min(settled, found.start("value"))
    return Found(_joined(spans), settled)


def _tokens(text: bytes, spans: list[tuple[int, int]], more: bool) -> int:
    _tokens_in_runs(text, text.translate(_RUNS), spans)
    if suspects.has_wide_runs(text):
        _tokens_in_runs(text, text.translate(_WIDE_RUNS), spans, only_wide=True)
    if more:
        # Of the end, as far as it has no character that can be in no token: mostly nothing.
        begin = max(0, len(text) - _OPEN_BYTES)
        begin += len(text[begin:].rstrip(_OF_TOKENS))
        begun = TOKEN_OPEN.search(text, begin) if begin < len(text) else None
        if begun is not None:
            begin = begun.start(begun.lastindex or 0)
            spans.append((begin, len(text)))
            return begin
    return len(text)


def _tokens_in_runs(text: bytes, runs: bytes, spans: list[tuple[int, int]], *, only_wide: bool = False) -> None:
    at = runs.find(_RUN)
    while at >= 0:
        end = runs.find(b" ", at + RUN_LEAST)
        end = len(runs) if end < 0 else end
        after = _AFTER_RUN if runs[end : end + 1] and text[end] in b"+/=:" else 0
        for found in TOKEN.finditer(text, max(0, at - _BEFORE_RUN), end + after):
            number = found.lastindex or 0
            if only_wide and not TOKEN_IS_WIDE[number - 1]:
                continue
            begin = found.start(number)
            rest = TOKEN_REST[number - 1].match(text, begin)
            spans.append((begin, rest.end() if rest is not None else found.end()))
        at = runs.find(_RUN, end)


def _named(text: bytes, spans: list[tuple[int, int]], more: bool) -> int:
    settled = len(text)
    for at, word in suspects.words(text):
        for match, groups, least, judge, may_be in _SHAPES.get(word, ()):
            if may_be is not None and not may_be(text, at):
                continue
            found = match(text, at)
            if found is None:
                continue
            begin, end = found.span(groups[0])
            if begin < 0:
                begin, end = found.span(groups[-1])
            if end == len(text) and more:
                settled = min(settled, begin)
                spans.append((begin, end))
                continue
            if end - begin < least:
                continue
            value = text[begin:end]
            if b"&" in value and _PARAMETER.search(text, max(0, at - 33), at):
                value = value.partition(b"&")[0]
            value = value.rstrip(b",;)]}")
            if value and judge(text, found, value):
                spans.append((begin, begin + len(value)))
    return settled


def _password_lines(text: bytes, spans: list[tuple[int, int]], more: bool) -> int:
    settled = len(text)
    for found in PASSWORD_LINE.finditer(text) if suspects.has_password_lines(text) else ():
        begin, end = found.span("value")
        is_open = more and end == len(text)
        if is_password_line(text, found, whole=not is_open):
            spans.append((begin, end))
            settled = begin if is_open else settled
    return settled


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        elif begin < end:
            joined.append((begin, end))
    return joined


def find_shown(data: bytes, *, more: bool = False) -> Found:
    """Find the secrets in what a terminal is sent; a span may have control sequences in it, which are not secret.

    Where a secret is part of a control sequence's own string, the span lies inside that.
    """
    if b"\x1b" in data and not suspects.has_string(data[:_BEGINNING]):
        found = None
        if not suspects.has_string(data[data.rfind(b"\n") + 1 :]):
            found = _find_in_lines(data, more)  # and where it finds lines, there is no string in them
        if found is None and not suspects.has_string(data):
            found = _find_exactly(data, more)
        if found is not None:
            return Found(_joined(found.spans), found.settled)
    borders = list(_BORDER.finditer(data)) if suspects.has_string(data) else []
    ours = [border for border in borders if data[border.start() + 2] == _OURS]
    spans: list[tuple[int, int]] = []
    settled = _find_apart(data, borders, more, spans)
    if len(ours) < len(borders):
        # Any program can print a mark of another integration in the middle of a secret.
        settled = min(settled, _find_apart(data, ours, more, spans))
    if borders:
        unfinished = more and borders[-1].end() == len(data) and data[-1:] not in _STRING_ENDS
        _find_in_marks(data, borders, unfinished, spans)
        settled = min(settled, borders[-1].start()) if unfinished else settled
    return Found(_joined(spans), settled)


def _find_apart(data: bytes, borders: Sequence[re.Match[bytes]], more: bool, spans: list[tuple[int, int]]) -> int:
    """Find the secrets of the texts that borders part; return up to where they are settled."""
    at = 0
    for border in borders:
        _find_between(data, at, border.start(), False, spans)
        at = border.end()
    return _find_between(data, at, len(data), more, spans)


def _find_in_marks(
    data: bytes, borders: Sequence[re.Match[bytes]], unfinished: bool, spans: list[tuple[int, int]]
) -> None:
    """Find what marks carry; a text may be in pieces, in marks one after the other."""
    carried: list[tuple[int, int]] = []
    for border in borders:
        last = unfinished and border is borders[-1]
        field = _CARRIED.search(data, border.start(), border.end()) if data[border.start() + 2] == _OURS else None
        if field is None:
            begin = border.start()
            found = find(data[begin + 2 : border.end()], more=last).spans
            spans += [(begin + 2 + at, begin + 2 + to) for at, to in found]
            continue
        if field["number"] in (None, b"1"):
            carried = []
        carried.append(field.span("text"))
        _find_in_pieces(data, carried, last, spans)


def _find_in_pieces(data: bytes, pieces: list[tuple[int, int]], more: bool, spans: list[tuple[int, int]]) -> None:
    """Find the secrets in a percent-encoded text that stands in pieces."""
    encoded = b"".join([data[begin:end] for begin, end in pieces])
    found = find(_CODE.sub(lambda code: bytes([int(code[1], 16)]), encoded), more=more).spans
    if not found:
        return
    # Where in the text the bytes stand that have a code, which is two longer.
    begins = [code.start() - 2 * number for number, code in enumerate(_CODE.finditer(encoded))]
    for first, last in found:
        at = first + 2 * bisect.bisect_left(begins, first)
        to = last + 2 * bisect.bisect_left(begins, last)
        taken = 0
        for begin, end in pieces:
            length = end - begin
            if at < taken + length and to > taken:
                spans.append((begin + max(at - taken, 0), begin + min(to - taken, length)))
            taken += length


def _find_between(data: bytes, begin: int, end: int, more: bool, spans: list[tuple[int, int]]) -> int:
    """Find the secrets of a text between two marks; return up to where they are settled."""
    part = data[begin:end] if begin or end < len(data) else data
    found = _find_in_lines(part, more) if b"\x1b" in part else None
    if found is None:
        found = _find_exactly(part, more)
    spans += [(first + begin, last + begin) for first, last in found.spans]
    return begin + found.settled


def _find_in_lines(part: bytes, more: bool) -> Found | None:
    """Find the secrets by looking at few lines; None where all must be looked at."""
    if b"\0" in part or suspects.has_hidden(part):
        return None
    head = part.rfind(b"\n") + 1
    ranges = suspects.pieces(part[:head]) if head > _FEW_BYTES else None
    if ranges is None:
        return None
    *pieces, (rest, _) = ranges
    together = _cleaned(_SIMPLE_SEQUENCE.sub(b"", b"".join([part[begin:end] for begin, end in pieces])))[0]
    if suspects.has_private_key(together) or suspects.has_private_key(_cleaned(part[rest:])[0]):
        return None  # a key has more than one line
    spans: list[tuple[int, int]] = []
    # A span has no line end in it, so the number of its line says in which piece it is.
    after = list(itertools.accumulate(part.count(b"\n", begin, end) for begin, end in pieces))
    numbers = [together.count(b"\n", 0, begin) for begin, _ in find(together).spans]
    for index in sorted({bisect.bisect_right(after, number) for number in numbers}):
        begin, end = pieces[index]
        spans += [(begin + at, begin + to) for at, to in _find_exactly(part[begin:end], False).spans]
    found = _find_exactly(part[rest:], more)
    spans += [(rest + at, rest + to) for at, to in found.spans]
    return Found(spans, rest + found.settled)


def _find_exactly(part: bytes, more: bool) -> Found:
    """Find the secrets by taking out every control sequence."""
    found = _find_as_shown(part, more)
    if b"\0" not in part:
        return found
    # It shows nothing, and it is what programs put between two texts: a secret may go on over it, or begin behind it.
    apart = _find_as_shown(part.replace(b"\0", b"\n"), more)
    return Found(found.spans + apart.spans, min(found.settled, apart.settled))


def _find_as_shown(part: bytes, more: bool) -> Found:
    clean, taken = _cleaned(part)
    found = find(clean, more=more)
    spans, settled = found.spans, len(part)
    if spans or found.settled < len(clean):
        settled = found.settled
        for places in [_Places(before, pattern) for before, pattern in reversed(taken)]:
            spans = [piece for first, last in spans for piece in places.shown(first, last)]
            settled = places.place(settled)
    if suspects.has_string(part):
        settled = min(settled, _find_in_strings(part, more, spans))
    return Found(spans, settled)


def _cleaned(data: bytes) -> tuple[bytes, list[tuple[bytes, re.Pattern[bytes]]]]:
    """Return what is shown of data, and how it became that: each text before something was taken out, and what."""
    taken = []
    if suspects.may_jump(data):
        taken.append((data, _JUMP))
        data = _JUMP.sub(b"", data)
    if b"\x1b" in data:
        taken.append((data, _SEQUENCE))
        data = _SEQUENCE.sub(b"", data)
    heard = data.translate(None, SILENT_BYTES)
    if len(heard) != len(data):
        taken.append((data, _SILENT))
        data = heard
    if suspects.has_hidden(data):
        taken.append((data, _HIDDEN))
        data = _HIDDEN.sub(b"", data)
    if suspects.may_be_wrapped(data):
        taken.append((data, _WRAPPED))
        data = _WRAPPED.sub(b"", data)
    return data, taken


def _find_in_strings(part: bytes, more: bool, spans: list[tuple[int, int]]) -> int:
    """Find what the strings of control sequences hold; return up to where in the part it is settled."""
    settled = len(part)
    for control in _STRING.finditer(part):
        string = control[1]
        if len(string) > RUN_LEAST // 2:
            unfinished = control.end(1) == len(part)
            found, at = find(string, more=more and unfinished), control.start(1)
            spans += [(first + at, last + at) for first, last in found.spans]
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


def cover_shown(data: bytes, *, more: bool = False) -> bytes:
    """Return what a terminal is sent with its secrets covered; the length stays. `more` as in `find`."""
    spans = find_shown(data, more=more).spans
    if not spans:
        return data
    return covered(data, spans)


def secrets(data: bytes) -> list[bytes]:
    """Return the secrets in what a terminal was sent, each without control sequences, longest first."""
    found: set[bytes] = set()
    borders = list(_BORDER.finditer(data)) if suspects.has_string(data) else []
    ours = [border for border in borders if data[border.start() + 2] == _OURS]
    for chosen in (borders, ours) if len(ours) < len(borders) else (borders,):
        begins = [0, *(border.end() for border in chosen)]
        ends = [*(border.start() for border in chosen), len(data)]
        for at, to in zip(begins, ends, strict=True):
            part = data[at:to]
            for text in (part, part.replace(b"\0", b"\n")) if b"\0" in part else (part,):
                clean = _cleaned(text)[0]
                found.update(clean[begin:end] for begin, end in find(clean, more=to == len(data)).spans)
    return sorted(found, key=len, reverse=True)


def cover_known(data: bytes, known: Sequence[bytes]) -> bytes:
    """Return a text without control sequences in which known secrets, and pieces of them at its ends, are covered."""
    spans = []
    for secret in known:
        if data in secret:
            return covered(data, [(0, len(data))])
        at = data.find(secret)
        while at >= 0:
            spans.append((at, at + len(secret)))
            at = data.find(secret, at + len(secret))
        for length in range(min(len(secret), len(data)) - 1, 0, -1):
            if data.startswith(secret[-length:]):
                spans.append((0, length))
            if data.endswith(secret[:length]):
                spans.append((len(data) - length, len(data)))
    return covered(data, _joined(spans)) if spans else data


def covered(data: bytes, spans: list[tuple[int, int]]) -> bytes:
    """Return data with spans of it covered; the length stays, and so do blanks and line ends."""
    out = bytearray(data)
    for begin, end in spans:
        piece = data[begin:end]
        out[begin:end] = piece.translate(_ASTERISKS) if piece.isascii() else _CHARACTER.sub(_asterisk, piece)
    return bytes(out)


def _asterisk(character: re.Match[bytes]) -> bytes:
    """Return what covers a character with as many bytes, and as wide where that can be told from its first byte."""
    found = character[0]
    if len(found) == 1:
        return b"*"
    if len(found) == 2:
        return b"\xc2\xb7"
    if len(found) == 3:
        return b"\xef\xbc\x8a" if 0xE3 <= found[0] <= 0xED else b"\xe2\x80\xa2"
    return b"\xf0\x9f\x94\x92"


def cover(text: str) -> str:
    """Return a text with its secrets covered: as many characters, line for line and column for column.

    Control sequences may be in it and stay. A secret that is not in the text as a whole may not be known as one; where
    texts are cut out of a longer one, cover that.
    """
    data = text.encode("utf-8", "surrogatepass")
    shown = cover_shown(data)
    return text if shown is data else shown.decode("utf-8", "surrogatepass")
