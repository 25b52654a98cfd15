"""Redaction of output: the same text with asterisks where a secret was, cell for cell and byte for byte.

Rules of this file: pure; it knows no file and no conversation. Nothing becomes longer or shorter, so cursors, offsets
and columns mean the same before and after. Line ends, blanks and control sequences stay where they are.

Secrets are looked for in what a reader sees: control sequences are taken out first and put back afterwards, so a colour
in the middle of a token hides nothing. What stands in the string of a control sequence (a window's title, a link) is a
text of its own. Our marks and those of other integrations end a text: what a program printed is not one word with the
prompt behind it. Those of others any program can print, so they are also read as if they were not there. What a mark
carries (a command, a directory) is a text of its own too, percent-encoded.

Speed matters, since all output passes through here. `candidates` finds at memory speed where a secret can be.
Regular expressions run only there, and only there control sequences are taken out.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from blockpty.redact import candidates
from blockpty.redact.candidates import BETWEEN_TEXTS, HIDDEN, HIDDEN_BEGUN, SILENT_BYTES
from blockpty.redact.edited import cover_like, find_edited, may_change
from blockpty.redact.shapes import (
    ASSIGNED,
    CHECKED_BYTES,
    CROWD,
    CROWDED,
    FOLLOWING,
    NAMED,
    NAMING,
    PASSWORD_LINE,
    PRIVATE_KEY_PIECE,
    RUN_CHARS,
    RUN_LEAST,
    TOKEN_IS_WIDE,
    TOKEN_LITERALS,
    TOKEN_REST,
    WIDE_RUN_CHARS,
    any_token,
    begun_of,
    cut_token,
    glued_token,
    is_password_line,
    open_token,
    private_key,
)

LONGEST: Final = 32 * 1024
"""How long a secret may be, in bytes, to be redacted wherever a text is cut: a text begins so far before the output."""

_RUN: Final = b"a" * RUN_LEAST
_RUNS: Final = bytes(97 if one in RUN_CHARS else 32 for one in range(256))
_WIDE_RUNS: Final = bytes(97 if one in WIDE_RUN_CHARS else 32 for one in range(256))
# A token's prefix may stand before its run (the digits and the colon of a bot's), and its value go on behind it.
_BEFORE_RUN: Final = 40
_AFTER_RUN: Final = 128
_LONGEST_PREFIX: Final = 24
_OPEN_BYTES: Final = 4096
# No value that is assigned ends so many bytes behind its word: 4,096 characters, each with a backslash before it.
_LONGEST_VALUE: Final = 9000
# Of a value without quotes: its longest, its characters, and how far behind the word that names it one begins.
_LONGEST_BARE: Final = 4096
_BARE: Final = re.compile(rb"[^\s\"'`\\<]*")
_FURTHEST_SIGN: Final = 64
# What values and prefixes have, and the percent that may stand before one.
_OF_TOKENS: Final = WIDE_RUN_CHARS + b"$,:%"
# A text without strings here has none at all, most of the time.
_BEGINNING: Final = 64 * 1024
# So little is cleaned sooner than looked at first.
_FEW_BYTES: Final = 512

_PARAMETER: Final = re.compile(rb"[?&][A-Za-z0-9_.-]{0,32}\Z")

# What shows nothing, in the order in which it is taken out: sequences, single bytes, and how a line editor goes on in
# the next row of the screen. Each begins with one known byte, or is looked for at memory speed, before it is matched.
_SEQUENCE: Final = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*(?:[@-~]|\Z)"
    rb"|[\]PX^_]([^\x07\x18\x1a\x1b]*)(?:\x07|\x18|\x1a|\x1b\\|(?=\x1b)|\Z)"
    rb"|[ -/]*(?:[0-~]|\Z))"
)
# Those that `candidates` has made sure that there are no others, in half the time.
_SIMPLE_SEQUENCE: Final = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")
# A character that is drawn over itself: bold on a typewriter, or a word that gets its colour.
_STRUCK: Final = re.compile(rb"(?P<behind>[!-~])\x08(?=(?P=behind))")
_SILENT: Final = re.compile(b"[%s]+" % re.escape(SILENT_BYTES))
_APART: Final = bytes(10 if one in BETWEEN_TEXTS else one for one in range(256))
# What plain lines have beside their text.
_COLOUR_OR_BELL: Final = re.compile(rb"\x1b\[[0-9;:]*[mK]|\x07")
# Characters without a width, and a CSI of one character with what belongs to it, also as a byte that is no part of one;
# and at the end, what may become one of these.
_HIDDEN: Final = re.compile(
    rb"%s|(?:\xc2\x9b|\x9b(?<![\x80-\xff]\x9b))[0-?]{0,64}[ -/]{0,8}(?:[@-~]|\Z)|(?:%s)\Z" % (HIDDEN, HIDDEN_BEGUN)
)
# A line editor goes to its column from the left edge after each key. In another row of what it draws that is the way
# up to the first one and down again; and where the first one has become full, down and up again, to draw its last two
# characters once more, so that the terminal knows that the row goes on.
_COLOURS: Final = rb"(?:\x1b\[[0-9;:]{0,20}m|\x1b\(B){0,8}"
_ROW_BEGUN: Final = re.compile(_COLOURS + rb"(?:\x1b\[A|(?:\x1b(?:\[[0-9;:]{0,20}|\()?)?\Z)")
# By as many rows; a command rarely has more.
_UP_AND_DOWN: Final = b"|".join(rb"\x1b\[A(?:\x1b\[A){%d}\r?(?:\r\n){%d}" % (rows - 1, rows) for rows in range(2, 9))
# Each alternative begins with a literal byte, so the search runs from one CR or ESC to the next; with anything else
# there, `re` tries all of them at each byte: fifteen times as long for lines that end in CR LF.
_JUMP: Final = re.compile(
    rb"\r(?=\x1b\[[0-9]*C)|\r(?<! \r)(?=\x1b?\Z|\x1b\[[0-9]*\Z)"
    rb"|" + _UP_AND_DOWN + rb"|\x1b\[A\r{1,2}(?:\n|\Z)"
    rb"|\r(?<=([^\r\n\x1b])\r)\r{1,3}\n"
    + _COLOURS
    + rb"\x1b\[A\x1b\[[0-9]{1,4}C"
    + _COLOURS
    + rb"(?P<before>[!-~](?:\1|\Z))"
    rb"|\r\r{1,3}(?:\n(?=" + _ROW_BEGUN.pattern + rb")|\Z)"
)
_WAY_UP: Final = b"\x1b[A"
# So near to the line end in the middle of it stands the way up.
_NEAR: Final = 192
# A row that goes on in the next one: a blank is drawn there. One editor then draws the first character there twice.
_WRAPPED: Final = re.compile(rb" \r(?:(?P<behind>[!-~])\r(?=(?P=behind)))?(?!\n)")
# What is in one: an ESC ends it, whatever comes then.
_STRING: Final = re.compile(rb"\x1b[\]PX^_]([^\x07\x18\x1a\x1b]*)")
_STRING_ENDS: Final = (b"\x07", b"\x18", b"\x1a", b"\\")
_BORDER: Final = re.compile(rb"\x1b\](?:7717|133|633|3008);[^\x07\x18\x1a\x1b]*(?:\x07|\x18|\x1a|\x1b\\|(?=\x1b)|\Z)")
_OURS: Final = ord("7")  # how the number of our marks begins

# What a mark of ours carries, in one piece or as the piece with a number of so many.
_CARRIED: Final = re.compile(rb";d=(?:(?P<number>[0-9]+)/[0-9]+:)?(?P<text>[^;\x07\x18\x1a\x1b]*)")
_CODE: Final = re.compile(rb"%([0-9A-Fa-f]{2})")
# Pieces that are looked at together; a command as long as can be has fewer.
_MOST_PIECES: Final = 64

# The beginning of a token, and what may follow it where a part of it is redacted, colours too.
_PARTLY_REDACTED: Final = rb"(?:%s)(?=[\w*./+=\x1b\[-]{0,255}\*{4})[\w*./+=\x1b\[-]+" % b"|".join(
    re.escape(literal) for literal, least, _ in TOKEN_LITERALS if not least and len(literal) > 2
)
_CHARACTER: Final = re.compile(
    rb"[^\r\n\t \x80-\xff]|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}|[\x80-\xff]"
)
_ASTERISKS: Final = bytes(one if one in b"\r\n\t " else 42 for one in range(256))


# The match at a place, the groups that may be its value, how long that is, what decides whether it is a secret, and
# what is looked at before.
_Shape = tuple[
    Callable[[bytes, int], "re.Match[bytes] | None"],
    tuple[str, ...],
    int,
    Callable[[bytes, re.Match[bytes], bytes], bool],
    Callable[[bytes, int], bool] | None,
    Callable[[bytes, int], bool] | None,
]


class SecretSpans(NamedTuple):
    """Spans of secrets in a text.

    Attributes:
        spans: their begins and ends, in order, apart from each other.
        settled: up to here nothing changes, whatever follows the text.
    """

    spans: list[tuple[int, int]]
    settled: int


def find(text: bytes, *, more: bool = False) -> SecretSpans:
    """Find the secrets in a text without control sequences.

    `more`: the text may go on. What may become a secret at its end is then one.
    """
    spans: list[tuple[int, int]] = []
    settled = min(_tokens(text, spans, more), _named(text, spans, more), _password_lines(text, spans, more))
    if candidates.has_private_key(text):
        for found in private_key().finditer(text):
            pieces = PRIVATE_KEY_PIECE.finditer(text, *found.span("value"))
            spans += [piece.span(1) for piece in pieces if piece[1] is not None]
            if more and found.end() == len(text):
                settled = min(settled, found.start("value"))
    return SecretSpans(_joined(spans), settled)


def _tokens(text: bytes, spans: list[tuple[int, int]], more: bool) -> int:
    _tokens_in_runs(text, text.translate(_RUNS), spans)
    if candidates.has_wide_runs(text):
        _tokens_in_runs(text, text.translate(_WIDE_RUNS), spans, only_wide=True)
    if more and (begun := _open_token(text)) is not None:
        begin = begun.start(begun.lastindex or 0)
        spans.append((begin, len(text)))
        return begin
    return len(text)


def _open_token(text: bytes) -> re.Match[bytes] | None:
    """Return what may be the beginning of a token at the end of a text."""
    # Only the last characters that can be part of a token are searched; usually there are none.
    begin = max(0, len(text) - _OPEN_BYTES)
    begin += len(text[begin:].rstrip(_OF_TOKENS))
    return open_token().search(text, begin) if begin < len(text) else None


def _has_none(data: bytes, more: bool) -> bool:
    """Return whether a quick look is enough to say that output holds no secret and does not end inside one."""
    return candidates.is_harmless(data) and not (more and _open_token(data) is not None)


def _tokens_in_runs(text: bytes, runs: bytes, spans: list[tuple[int, int]], *, only_wide: bool = False) -> None:
    at = runs.find(_RUN)
    while at >= 0:
        end = runs.find(b" ", at + RUN_LEAST)
        end = len(runs) if end < 0 else end
        after = _AFTER_RUN if runs[end : end + 1] and text[end] in b"+/=:" else 0
        for found in _tokens_between(text, max(0, at - _BEFORE_RUN), end + after):
            number = found.lastindex or 0
            if only_wide and not TOKEN_IS_WIDE[number - 1]:
                continue
            begin = found.start(number)
            rest = TOKEN_REST[number - 1].match(text, begin)
            spans.append((begin, rest.end() if rest is not None else found.end()))
        at = runs.find(_RUN, end)


def _tokens_between(text: bytes, begin: int, end: int) -> Iterator[re.Match[bytes]]:
    """Yield what `any_token` finds, by a look at the few places where a token can begin."""
    places = candidates.token_begins(text, begin, end)
    glued = 0  # up to here a token goes, behind which another one may stand without anything between
    for at in places:
        if at >= begin and (found := any_token().match(text, at, end)) is not None:
            yield found
            begin = found.end()
            glued = begin if begin == end else _rest_end(text, found)
        elif (
            glued - _LONGEST_PREFIX <= at <= glued
            and (found := glued_token().match(text, at, end)) is not None
            and (to := _rest_end(text, found)) > glued
        ):
            yield found
            begin, glued = max(begin, found.end()), to


def _rest_end(text: bytes, found: re.Match[bytes]) -> int:
    number = found.lastindex or 0
    rest = TOKEN_REST[number - 1].match(text, found.start(number))
    return found.end() if rest is None else rest.end()


def _named(text: bytes, spans: list[tuple[int, int]], more: bool) -> int:
    places = candidates.places(text)
    # No value that is assigned before this place ends where the text does.
    closed = max(text.rfind(b"\n"), len(text) - _LONGEST_VALUE) if more else len(text)
    chosen: list[tuple[int, bytes]] = []
    assigned: list[int] = []
    for word in NAMING:
        if found := places.get(word):
            # Most of a text that is full of words are turned down here, without a step of this program for each.
            taken = [*itertools.compress(found, map(begun_of(word), itertools.repeat(text), found))]
            assigned += taken if word in ASSIGNED else ()
            taken = taken[: bisect.bisect_left(taken, closed)] + found[bisect.bisect_left(found, closed) :]
            chosen += zip(taken, itertools.repeat(word))
    settled = _named_at(text, sorted(chosen), sorted(assigned), closed, spans, more)
    return min(settled, _following(text, places, spans, more))


def _named_at(
    text: bytes,
    chosen: list[tuple[int, bytes]],
    assigned: list[int],
    closed: int,
    spans: list[tuple[int, int]],
    more: bool,
) -> int:
    settled = len(text)
    # A value that is assigned without quotes, from its name on: a word in it names no more than a part of it. One that
    # is too long goes on as far as the values of such words, and no further than up to a blank or quote.
    end, limit = 0, 0
    for at, word in chosen:
        if at + _FURTHEST_SIGN < end and word in ASSIGNED:
            if limit > end and (longer := min(limit, at + _LONGEST_BARE)) > end:
                spans.append((end, longer))
                end = longer
            continue
        for match, groups, least, is_secret, may_be, is_named in _shapes_of(word):
            if may_be is not None and not may_be(text, at):
                continue
            if is_named is not None and at < closed and not is_named(text, at):
                continue
            found = match(text, at)
            if found is None:
                continue
            begin, to = found.span(groups[0])
            is_bare = begin < 0
            if is_bare:
                begin, to = found.span(groups[-1])
            if to == len(text) and more:
                settled = min(settled, begin)
                spans.append((begin, to))
                end = limit = to if is_bare else end
                continue
            if to - begin < least:
                continue
            value = text[begin:to]
            if b"&" in value and _PARAMETER.search(text, max(0, at - 33), at):
                value, is_bare = value.partition(b"&")[0], False
            value = value.rstrip(b",;)]}")
            if value and (
                (is_bare and to - begin > _FURTHEST_SIGN and _is_crowded(assigned, at, to))
                or is_secret(text, found, value[:CHECKED_BYTES] if word in ASSIGNED else value)
            ):
                spans.append((begin, begin + len(value)))
                if is_bare and to > end:
                    end = to
                    limit = _BARE.match(text, to).end() if to - begin == _LONGEST_BARE else to  # type: ignore[union-attr]
    return settled


@functools.cache
def _shapes_of(word: bytes) -> tuple[_Shape, ...]:
    return tuple(
        (
            shape.pattern.match, ("value",) if "value" in shape.pattern.groupindex else ("quoted", "bare"),
            shape.least, shape.is_secret, shape.may_be, shape.is_named,
        )
        for shape in NAMED
        if shape.word == word
    )  # fmt: skip


def _is_crowded(assigned: list[int], at: int, end: int) -> bool:
    """Whether the value of a word, which ends at a place, holds many more words to which something is assigned."""
    number = bisect.bisect_right(assigned, at) + CROWD - 1
    return number < len(assigned) and assigned[number] < min(end, at + CROWDED)


def _following(text: bytes, places: dict[bytes, list[int]], spans: list[tuple[int, int]], more: bool) -> int:
    """Find what stands further behind the word that names it."""
    settled = len(text)
    for shape in FOLLOWING:
        if not (named := sorted(itertools.chain.from_iterable(places.get(word, ()) for word in shape.words))):
            continue
        match = shape.opener.match
        openers = [opener.end() for at in named if (opener := match(text, at)) is not None]
        if not openers:
            continue
        broken = b""
        for found in shape.pattern.finditer(text, openers[0]):
            number = bisect.bisect_right(openers, found.start() - shape.least) - 1
            if number < 0 or found.start() - openers[number] > shape.most:
                continue
            if not broken:
                broken = text.translate(bytes(10 if one in shape.breaks else 32 for one in range(256)))
            if broken.find(b"\n", openers[number], found.start()) >= 0:
                continue
            begin, end = found.span("value")
            if end == len(text) and more:
                settled = min(settled, begin)
                spans.append((begin, end))
                continue
            value = text[begin:end].rstrip(b",;)]}")
            if value and shape.is_secret(text, found, value):
                spans.append((begin, begin + len(value)))
    return settled


def _password_lines(text: bytes, spans: list[tuple[int, int]], more: bool) -> int:
    settled = len(text)
    for found in PASSWORD_LINE.finditer(text) if candidates.has_password_lines(text) else ():
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


def find_shown(data: bytes, *, more: bool = False) -> SecretSpans:
    """Find the secrets in what a terminal is sent; a span may have control sequences in it, which are not secret.

    Where a secret is part of a control sequence's own string, the span lies inside that.
    """
    return _find_shown(data, more)[0]


def _find_shown(data: bytes, more: bool) -> tuple[SecretSpans, bool]:
    """Return also whether it is known that no line was edited."""
    if _has_none(data, more):
        return SecretSpans([], len(data)), False
    if b"\x1b" in data and not candidates.has_string(data[:_BEGINNING]):
        found, coloured = None, False
        if not candidates.has_string(data[data.rfind(b"\n") + 1 :]):
            found, coloured = _find_in_lines(data, more)  # and where it finds lines, there is no string in them
        if found is None and not candidates.has_string(data):
            found = _find_exactly(data, more)
        if found is not None:
            return SecretSpans(_joined(found.spans), found.settled), coloured
    borders = list(_BORDER.finditer(data)) if candidates.has_string(data) else []
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
    return SecretSpans(_joined(spans), settled), False


def find_sent(data: bytes, *, more: bool = False, columns: Callable[[], Sequence[int]] = tuple) -> SecretSpans:
    """Find the same, and what is a secret only as a line editor drew it in the end, which later bytes decide.

    `columns` says how wide the terminal has been; it is asked only where a line was edited.
    """
    found, unedited = _find_shown(data, more)
    edited = [] if unedited else find_edited(data, lambda text: find(text).spans, columns)
    return SecretSpans(_joined(found.spans + edited), found.settled) if edited else found


def find_like_edited(data: bytes, columns: Sequence[int], text: bytes) -> list[tuple[int, int]]:
    """Find in a text what is like a part of the secrets that a line editor drew in pieces."""
    return _joined(cover_like(data, lambda part: find(part).spans, columns, text))


def _find_apart(data: bytes, borders: Sequence[re.Match[bytes]], more: bool, spans: list[tuple[int, int]]) -> int:
    """Find the secrets of the texts that borders part; return up to where they are settled."""
    at = 0
    for border in borders:
        if border.start() > at:
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
            if border.end() - begin > RUN_LEAST // 2:
                found = find(data[begin + 2 : border.end()], more=last).spans
                spans += [(begin + 2 + at, begin + 2 + to) for at, to in found]
            continue
        if field["number"] in (None, b"1"):
            carried = []
        carried.append(field.span("text"))
        del carried[:-_MOST_PIECES]
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
    found = _find_in_lines(part, more)[0] if b"\x1b" in part else None
    if found is None:
        found = _find_exactly(part, more)
    spans += [(first + begin, last + begin) for first, last in found.spans]
    return begin + found.settled


def _find_in_lines(part: bytes, more: bool) -> tuple[SecretSpans | None, bool]:
    """Find the secrets by looking at few lines, and whether none is edited; None where all must be looked at."""
    if _has_between(part) or b"\b" in part or candidates.has_hidden(part):
        return None, False
    head = part.rfind(b"\n") + 1
    if _may_be_redrawn(part, head):
        return None, False
    ranges, coloured = candidates.pieces_of(part[:head]) if head > _FEW_BYTES else (None, False)
    if ranges is None:
        return None, False
    *pieces, (rest, _) = ranges
    together = _cleaned(_SIMPLE_SEQUENCE.sub(b"", b"".join([part[begin:end] for begin, end in pieces])))[0]
    if candidates.has_private_key(together) or candidates.has_private_key(_cleaned(part[rest:])[0]):
        return None, False  # a key has more than one line
    spans: list[tuple[int, int]] = []
    # A span has no line end in it, so the number of its line says in which piece it is.
    after = list(itertools.accumulate(part.count(b"\n", begin, end) for begin, end in pieces))
    numbers = [together.count(b"\n", 0, begin) for begin, _ in find(together).spans]
    for index in sorted({bisect.bisect_right(after, number) for number in numbers}):
        begin, end = pieces[index]
        spans += [(begin + at, begin + to) for at, to in _find_exactly(part[begin:end], False).spans]
    found = _find_exactly(part[rest:], more)
    spans += [(rest + at, rest + to) for at, to in found.spans]
    return SecretSpans(spans, rest + found.settled), coloured and not may_change(part[rest:])


def _may_be_redrawn(part: bytes, head: int) -> bool:
    """Whether what stands behind the last line end may go on in the line before it."""
    if part.endswith(b"\r") and part[-5:].rstrip(b"\r").endswith(_WAY_UP):
        return True
    return part.endswith(b"\r\r\n", 0, head) and _ROW_BEGUN.match(part, head) is not None


def find_in_plain_lines(lines: bytes, shown: bytes) -> list[tuple[int, int]] | None:
    """Find the secrets in whole lines of which it is known what they show, and that no control sequence is in that.

    None where more must be looked at: a private key, or characters without a width.
    """
    if candidates.has_private_key(shown) or candidates.has_hidden(shown):
        return None
    spans = find(shown).spans
    if not spans or len(lines) == len(shown):
        return spans
    raw, seen = ([0, *itertools.accumulate(len(line) + 1 for line in text.split(b"\n"))] for text in (lines, shown))
    found: list[tuple[int, int]] = []
    for begin, end in spans:  # of which each lies within one line
        line = bisect.bisect_right(seen, begin) - 1
        places = _OriginalOffsets(lines[raw[line] : raw[line + 1]], _COLOUR_OR_BELL)
        pieces = places.shown(begin - seen[line], end - seen[line])
        found += [(raw[line] + at, raw[line] + to) for at, to in pieces]
    return _joined(found)


def _find_exactly(part: bytes, more: bool) -> SecretSpans:
    """Find the secrets by taking out every control sequence."""
    found = _find_as_shown(part, more)
    if not _has_between(part):
        return found
    apart = _find_as_shown(part.translate(_APART), more)
    return SecretSpans(found.spans + apart.spans, min(found.settled, apart.settled))


def _has_between(part: bytes) -> bool:
    return b"\0" in part or b"\v" in part or b"\f" in part


def _find_as_shown(part: bytes, more: bool) -> SecretSpans:
    clean, taken = _cleaned(part)
    found = find(clean, more=more)
    spans, settled = found.spans, len(part)
    if spans or found.settled < len(clean):
        settled = found.settled
        for places in [_OriginalOffsets(before, pattern) for before, pattern in reversed(taken)]:
            spans = [piece for first, last in spans for piece in places.shown(first, last)]
            settled = places.place(settled)
    if candidates.has_string(part):
        settled = min(settled, _find_in_strings(part, more, spans))
    return SecretSpans(spans, settled)


def _cleaned(data: bytes) -> tuple[bytes, list[tuple[bytes, re.Pattern[bytes]]]]:
    """Return what is shown of data, and how it became that: each text before something was taken out, and what."""
    taken = []
    if candidates.may_jump(data):
        taken.append((data, _JUMP))
        data = _JUMP.sub(b"", data)
    if b"\x1b" in data:
        taken.append((data, _SEQUENCE))
        data = _SEQUENCE.sub(b"", data)
    if b"\b" in data:
        taken.append((data, _STRUCK))
        data = _STRUCK.sub(b"", data)
    heard = data.translate(None, SILENT_BYTES)
    if len(heard) != len(data):
        taken.append((data, _SILENT))
        data = heard
    if candidates.has_hidden(data):
        taken.append((data, _HIDDEN))
        data = _HIDDEN.sub(b"", data)
    if candidates.may_be_wrapped(data):
        taken.append((data, _WRAPPED))
        data = _WRAPPED.sub(b"", data)
    return data, taken


def _find_in_strings(part: bytes, more: bool, spans: list[tuple[int, int]]) -> int:
    """Find what the strings of control sequences hold; return up to where in the part it is settled.

    A title may have been cut in the middle of a token, and an address is encoded.
    """
    settled = len(part)
    for control in _STRING.finditer(part):
        string = control[1]
        if len(string) > RUN_LEAST // 2:
            unfinished = control.end(1) == len(part)
            found, at = find(string, more=more and unfinished), control.start(1)
            spans += [(first + at, last + at) for first, last in found.spans]
            spans += [(at + cut.start(cut.lastindex or 0), at + cut.end()) for cut in cut_token().finditer(string)]
            if b"%" in string:
                _find_in_pieces(part, [control.span(1)], more and unfinished, spans)
            if unfinished:
                settled = min(settled, at + found.settled)
    return settled


def redact_address(text: str) -> str:
    """Return a text with its secrets redacted, those that are percent-encoded as well."""
    data = text.encode("utf-8", "surrogatepass")
    spans = find(data).spans
    _find_in_pieces(data, [(0, len(data))], False, spans)
    return redact_spans(data, _joined(spans)).decode("utf-8", "surrogatepass") if spans else text


def redact_title(text: str) -> str:
    """Return a title with its secrets redacted, also what is left of one where it was cut."""
    data = text.encode("utf-8", "surrogatepass")
    spans = find(data).spans + [(cut.start(cut.lastindex or 0), cut.end()) for cut in cut_token().finditer(data)]
    return redact_spans(data, _joined(spans)).decode("utf-8", "surrogatepass") if spans else text


class _OriginalOffsets:
    """Where the bytes of a text from which something was taken out stood before."""

    def __init__(self, data: bytes, pattern: re.Pattern[bytes]) -> None:
        self._clean: list[int] = []  # where in the clean text something was taken out
        self._raw: list[tuple[int, int]] = []  # what that was
        # What of it is drawn once more, and where in the clean text that stands, before it or behind it.
        self._twins: list[tuple[int, tuple[int, int]]] = []
        groups = [(name, 1 if name == "before" else 0) for name in pattern.groupindex]
        taken = 0
        for control in pattern.finditer(data):
            begin, end = control.span()
            self._clean.append(begin - taken)
            for name, back in groups:
                if control.start(name) >= 0:
                    self._twins.append((begin - taken - back, control.span(name)))
            self._raw.append((begin, end))
            taken += end - begin

    def place(self, clean: int) -> int:
        """Return the place of a byte; what was taken out before it lies before it."""
        number = bisect.bisect_right(self._clean, clean)
        if number == 0:
            return clean
        return self._raw[number - 1][1] + clean - self._clean[number - 1]

    def shown(self, begin: int, end: int) -> list[tuple[int, int]]:
        """Return the pieces that a span of the clean text has, and what was taken out since it draws that again."""
        pieces, at = [], self.place(begin)
        number = bisect.bisect_right(self._clean, begin)
        while number < len(self._clean) and self._clean[number] < end:
            first, last = self._raw[number]
            if at < first:
                pieces.append((at, first))
            at = last
            number += 1
        pieces.append((at, at + end - self._before(number, begin)))
        first = bisect.bisect_left(self._twins, (begin,))
        return pieces + [twin for _, twin in self._twins[first : bisect.bisect_left(self._twins, (end,))]]

    def _before(self, number: int, begin: int) -> int:
        """Return how far the clean text had come where the piece before a number begins."""
        return begin if number == 0 else max(begin, self._clean[number - 1])


def line_begin(data: bytes, at: int) -> int:
    """Return where the line at a place begins; the rows over which a line editor draws one are one line."""
    begin = data.rfind(b"\n", 0, at) + 1
    while data.endswith(b"\r\n", 0, begin) and data.find(_WAY_UP, max(0, begin - _NEAR), begin + _NEAR) >= 0:
        begin = data.rfind(b"\n", 0, begin - 1) + 1
    return begin


def redact_output(data: bytes, *, more: bool = False) -> bytes:
    """Return what a terminal is sent with its secrets redacted; the length stays. `more` as in `find`."""
    spans = find_shown(data, more=more).spans
    if not spans:
        return data
    return redact_spans(data, spans)


def secret_texts(data: bytes) -> list[bytes]:
    """Return the secrets in what a terminal was sent, each without control sequences, longest first."""
    if _has_none(data, True):
        return []
    found: set[bytes] = set()
    borders = list(_BORDER.finditer(data)) if candidates.has_string(data) else []
    ours = [border for border in borders if data[border.start() + 2] == _OURS]
    for chosen in (borders, ours) if len(ours) < len(borders) else (borders,):
        begins = [0, *(border.end() for border in chosen)]
        ends = [*(border.start() for border in chosen), len(data)]
        for at, to in zip(begins, ends, strict=True):
            part = data[at:to]
            for text in (part, part.translate(_APART)) if _has_between(part) else (part,):
                clean = _cleaned(text)[0]
                found.update(clean[begin:end] for begin, end in find(clean, more=to == len(data)).spans)
    return sorted(found, key=len, reverse=True)


def completed(data: bytes) -> bytes:
    """Return a text in which letters stand for the asterisks of tokens, of which the rest is then known as one.

    An editor does not draw a token in order, so what was sent may have been redacted in part.
    """
    if b"****" not in data:
        return data
    lines = data.split(b"\n")
    return b"\n".join([re.sub(_PARTLY_REDACTED, _lettered, line) if b"****" in line else line for line in lines])


def _lettered(token: re.Match[bytes]) -> bytes:
    return token[0].replace(b"*", b"A")


def redact_known(data: bytes, known: Sequence[bytes]) -> bytes:
    """Return a text without control sequences with known secrets, and pieces of them at its ends, redacted."""
    spans = []
    for secret in known:
        if data in secret:
            return redact_spans(data, [(0, len(data))])
        at = data.find(secret)
        while at >= 0:
            spans.append((at, at + len(secret)))
            at = data.find(secret, at + len(secret))
        for length in range(min(len(secret), len(data)) - 1, 0, -1):
            if data.startswith(secret[-length:]):
                spans.append((0, length))
            if data.endswith(secret[:length]):
                spans.append((len(data) - length, len(data)))
    return redact_spans(data, _joined(spans)) if spans else data


def redact_spans(data: bytes, spans: list[tuple[int, int]]) -> bytes:
    """Return data with spans of it redacted; the length stays, and so do blanks and line ends."""
    out = bytearray(data)
    for begin, end in spans:
        piece = data[begin:end]
        out[begin:end] = piece.translate(_ASTERISKS) if piece.isascii() else _CHARACTER.sub(_asterisk, piece)
    return bytes(out)


def _asterisk(character: re.Match[bytes]) -> bytes:
    """Return what replaces a character, with as many bytes and as wide where that follows from its first byte."""
    found = character[0]
    if len(found) == 1:
        return b"*"
    if len(found) == 2:
        return b"\xc2\xb7"
    if len(found) == 3:
        return b"\xef\xbc\x8a" if 0xE3 <= found[0] <= 0xED else b"\xe2\x80\xa2"
    return b"\xf0\x9f\x94\x92"


def redact_text(text: str) -> str:
    """Return a text with its secrets redacted: as many characters, line for line and column for column.

    Control sequences may be in it and stay. A secret that is not in the text as a whole may not be known as one; where
    texts are cut out of a longer one, redact that.
    """
    data = text.encode("utf-8", "surrogatepass")
    shown = redact_output(data)
    return text if shown is data else shown.decode("utf-8", "surrogatepass")
