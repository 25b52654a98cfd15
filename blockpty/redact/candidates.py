"""Candidates for secrets: passes at memory speed over what is shown, which find too many places and never too few.

Rules of this file: pure. The expressions of `redaction` check every candidate, and nothing checks the rest, so each
pass here says why nothing can escape it.

A secret is a run of token characters, or stands behind a word that names it. Both lie within one line, but for private
keys, whose first line has such a word, and netrc's `login`. The words are looked for all at once.

Output full of colours would have to be freed of them first, which costs more than all the rest. It is not: digits and
separators are thrown out of the whole text, so that every colour becomes the same three bytes, and those go in one
pass. No word has a digit in it, so what is left has every word that a reader sees. Runs may stay longer than they
are, by the digits of the colours in them. The lines that are found are cleaned exactly, the others not at all.

Words nearly always stand in the data as they are shown, with no colour inside. Where as many are in the data as in what
is left of it, they are the same ones, and their lines are where they stand. Otherwise lines are counted, in both.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Final

from ahocorasick_rs import BytesAhoCorasick, MatchKind

from blockpty.redact.shapes import (
    FRAGMENTS,
    PASSWORD_PORTS,
    PRIVATE_KEY_WORD,
    RUN_CHARS,
    RUN_LEAST,
    TOKEN_LITERALS,
    WIDE,
    WIDE_RUN_CHARS,
)

SILENT_BYTES: Final = bytes([*range(9), 11, 12, *range(14, 27), *range(28, 32), 127])
"""Single bytes that show nothing, or no more than another row."""

BETWEEN_TEXTS: Final = b"\0\v\f"
"""Of these what programs put between two texts: a secret may go on over one, or begin behind it."""

# Bytes of a text that are searched at a time: the finds in a text of nothing else must not fill the memory.
_STEP: Final = 64 * 1024
_LOGIN: Final = b"login"
# A netrc's password may stand so many bytes behind it; each line between has one byte at least.
_LOGIN_LINES: Final = 120
# So many ranges at most, and lines that have so many bytes on average.
_MOST: Final = 16 * 1024
_SHORT_LINE: Final = 16

_FRAGMENTS: Final = {**FRAGMENTS, _LOGIN: _LOGIN}
_WORDS: Final = tuple((word, word.find(fragment)) for word, fragment in _FRAGMENTS.items())
# Only the leftmost of finds that overlap, which is several times as fast: no fragment can overlap another.
_SEARCH: Final = BytesAhoCorasick(_FRAGMENTS.values(), matchkind=MatchKind.LeftmostFirst)
# Longer than all that is looked for.
_OVERLAP: Final = max(len(PRIVATE_KEY_WORD), *(len(literal) for literal, _, _ in TOKEN_LITERALS))
# As they are written nearly always; of others there are more in a text in lower case.
_CASES: Final = [case for one in _FRAGMENTS.values() for case in dict.fromkeys((one, one.upper(), one.capitalize()))]
_SEARCH_CASES: Final = BytesAhoCorasick(_CASES, matchkind=MatchKind.LeftmostFirst)

# What must stand in the data behind a word that is nearly always a part of another one, or the name of a module, for
# any of its shapes to match. Where a value must be so long, no fewer bytes that are no blanks are there in the data.
# Bytes of colours and of what else shows nothing, of these with blanks and signs, and of what may stand before a sign:
# more of them than a few are not gone through, who has so many is looked at.
_SILENT: Final = re.escape(SILENT_BYTES)
_NOTHING: Final = rb"[\x1b\[0-9;?mMkK%s]" % _SILENT
_BLANK: Final = rb"[ \t:=>\x1b\[0-9;?mMkK%s]" % _SILENT
_REST: Final = rb"[A-Za-z0-9_.\\\"'\] \t\x1b\[;?%s-]" % _SILENT
_NEEDED: Final = {
    b"pass": re.compile(rb"(?![abd-oq-vx-zABD-OQ-VX-Z])"),
    b"auth": re.compile(
        b"|".join((
            rb"%s{0,64}[Oo]" % _NOTHING,  # authorization
            rb"%s{64}" % _NOTHING,
            rb"%s{160}" % _REST,
            rb"%s{0,160}[:=>](?:%s{0,64}[^ \t\r\n\f\v]{12}|%s{64})" % (_REST, _BLANK, _BLANK),
        ))
    ),
}  # fmt: skip
# Of each word, by its number: what of it stands before its fragment, how long it is, and what it needs behind it.
_OF_WORDS: Final = tuple(
    (word[:before], len(word), _NEEDED[word].match if word in _NEEDED else None) for word, before in _WORDS
)
_LOGIN_NUMBER: Final = [word for word, _ in _WORDS].index(_LOGIN)

_LOWER: Final = bytes(range(256)).lower()
_PARAMETERS: Final = b"0123456789;?"
# No word has an `m`. All other letters but `k` of sequences, in lower case; a separate search for that.
_COLOUR: Final = SILENT_BYTES + b"\x1b[m"
_MOVE: Final = re.compile(rb"\x1b\[[a-ln-z]")
_NO_ESCAPE: Final = bytes(one for one in range(256) if one != 27)
_ERASE: Final = BytesAhoCorasick([b"\x1b[K"])
_STRINGS: Final = BytesAhoCorasick([b"\x1b]", b"\x1bP", b"\x1bX", b"\x1b^", b"\x1b_"])
HIDDEN: Final = (
    rb"\xc2\xad|\xcc[\x80-\xbf]|\xcd[\x80-\xaf]|\xd8\x9c"
    rb"|\xe1(?:\xa0[\x8b-\x8f]|\xaa[\xb0-\xbf]|[\xab\xb7][\x80-\xbf])"
    rb"|\xe2(?:\x80[\x8b-\x8f\xaa-\xae]|\x81[\xa0-\xaf]|\x83[\x90-\xbf])"
    rb"|\xef(?:\xb8[\x80-\x8f\xa0-\xaf]|\xbb\xbf|\xbf[\xb9-\xbb])|\xf3\xa0[\x80-\x87][\x80-\xbf]"
)
"""A character without a width: signs of direction and joining, variants, tags, and marks that stand over another."""

HIDDEN_BEGUN: Final = (
    rb"[\xc2\xcc\xcd\xd8]|\xe1[\xa0\xaa\xab\xb7]?|\xe2[\x80\x81\x83]?|\xef[\xb8\xbb\xbf]?"
    rb"|\xf3(?:\xa0[\x80-\x87]?)?"
)
"""What may be the beginning of one."""

_HIDDEN: Final = BytesAhoCorasick([
    *(b"\xe2\x80" + bytes([one]) for one in (*range(0x8B, 0x90), *range(0xAA, 0xAF))),
    *(b"\xc2\xad", b"\xc2\x9b", b"\xcc", b"\xcd", b"\xd8\x9c", b"\xe1\xa0", b"\xe1\xaa", b"\xe1\xab"),
    *(b"\xe1\xb7", b"\xe2\x81", b"\xe2\x83", b"\xef\xb8", b"\xef\xbb\xbf", b"\xef\xbf", b"\xf3\xa0"),
])  # fmt: skip
# Behind another one that is not ASCII it is part of no token: most of them make a picture of that.
_HIDDEN_INSIDE: Final = re.compile(rb"[\x00-\x1f!-\x7f](?:%s)|\xc2\x9b" % HIDDEN)
# A CSI of one byte, which is not part of a character; and what may be the beginning of one of the others.
_RAW_CSI: Final = re.compile(rb"\x9b(?<![\x80-\xff]\x9b)")
_HIDDEN_BEGUN: Final = re.compile(rb"(?:%s)\Z" % HIDDEN_BEGUN)
_PRIVATE_KEY: Final = BytesAhoCorasick([PRIVATE_KEY_WORD])
_JUMP: Final = BytesAhoCorasick([b"\r\x1b[", b"\x1b[A\r\n", b"\x1b[A\r\r\n", b"\r\r\n\x1b"])
_JUMP_FLAT: Final = BytesAhoCorasick([b"\r\x1b[c"])
_ROWS_FLAT: Final = BytesAhoCorasick([b"\x1b[a\r\n", b"\x1b[a\r\r\n", b"\r\r\n\x1b[a", b"\x1b[m\x1b[a"])
_WRAP: Final = BytesAhoCorasick([b" \r"])

# Texts up to this size, which most commands print, are checked as a whole first.
_SMALL: Final = 4096
_PLAIN: Final = bytes([*b"\t\n\r", *range(32, 127)])
_PLAIN_RUNS: Final = bytes(97 if one in RUN_CHARS else 32 for one in range(256))
_SIGNS: Final = BytesAhoCorasick(
    list({one.lower() for one in (*_FRAGMENTS.values(), *PASSWORD_PORTS, PRIVATE_KEY_WORD, *itertools.chain(*WIDE))})
)
_RUN: Final = b"a" * RUN_LEAST
_RUNS: Final = bytes(97 if one in RUN_CHARS else one if one in b" \r\n" else 33 for one in range(256))
_WIDE_RUNS: Final = bytes(97 if one in WIDE_RUN_CHARS else _RUNS[one] for one in range(256))
# As they stand in a text, and in lower case without digits. In these groups they are found ten times as fast.
# A sign that each of a group has, which many texts have not, costs nearly nothing to look for.
_WIDE: Final = tuple(
    (next(sign for sign in (b"$", b"_", b"s") if all(sign in one for one in some)), BytesAhoCorasick(some))
    for some in WIDE
)
_WIDE_SHOWN: Final = tuple(
    BytesAhoCorasick(list({one.lower().translate(None, b"0123456789") for one in some})) for some in WIDE
)
_LITERALS: Final = BytesAhoCorasick([literal for literal, _, _ in TOKEN_LITERALS])
# Those with which their tokens begin.
_FIRST: Final = frozenset(number for number, (_, _, most) in enumerate(TOKEN_LITERALS) if not most)
_PORTS: Final = BytesAhoCorasick(PASSWORD_PORTS)
# The same without digits: the port is nothing or an asterisk. Four colons with no blank between them come first.
_PORTS_SHOWN: Final = BytesAhoCorasick([b"::", b":*:"])
_NO_COLON: Final = bytes(one for one in range(256) if one not in b": \t\n\r\f\v")
_PASSWORD_LINE: Final = re.compile(rb":\*?:[^:\s]{1,64}:[^:\s]{1,64}:")
# What of a simple sequence is no token character; the rest of it stays in the runs.
_BESIDE_RUNS: Final = SILENT_BYTES + b"\x1b[;?"


def words(text: bytes, whole: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield where the words that name secrets stand, and `login`, in order and in any case; each in lower case.

    Up to `whole`, where a line or the text ends, those are left out that no secret can follow.
    """
    for begin in range(0, len(text), _STEP):
        small = (text[begin : begin + _STEP + _OVERLAP] if len(text) > _STEP else text).lower()
        for number, at, _ in _SEARCH.find_matches_as_indexes(small):
            word, before = _WORDS[number]
            place = begin + at - before
            if at < _STEP and (not before or text[place : begin + at].lower() == word[:before]):
                length, needed = _OF_WORDS[number][1:]
                if needed is None or place >= whole or needed(text, place + length) is not None:
                    yield place, word


def places(text: bytes) -> dict[bytes, list[int]]:
    """Return where each of the words stands that name secrets, in order and in any case; no `login`."""
    found: list[list[int]] = [[] for _ in _WORDS]
    for begin in range(0, len(text), _STEP):
        small = (text[begin : begin + _STEP + _OVERLAP] if len(text) > _STEP else text).lower()
        for number, at, _ in _SEARCH.find_matches_as_indexes(small):
            if at < _STEP:
                found[number].append(begin + at)
    of_words = {}
    for (word, before), ats in zip(_WORDS, found, strict=True):
        if before:
            ats = [at - before for at in ats if text[at - before : at].lower() == word[:before]]
        if ats and word != _LOGIN:
            of_words[word] = ats
    return of_words


def token_begins(text: bytes, begin: int, end: int) -> list[int]:
    """Return where tokens can begin in a part of a text, in order; some places twice."""
    places: list[int] = []
    for at in range(begin, end, _STEP):
        found = _LITERALS.find_matches_as_indexes(text[at : min(at + _STEP + _OVERLAP, end)], overlapping=True)
        places += [at + place for number, place, _ in found if number in _FIRST and place < _STEP]
        for number, place, _ in found:
            if number not in _FIRST and place < _STEP:
                _, least, most = TOKEN_LITERALS[number]
                if not least or text[at + place - least : at + place].isalnum():  # as all is that stands before one
                    places += range(at + place - most, at + place - least + 1)
    places.sort()
    return places


def pieces(data: bytes) -> list[tuple[int, int]] | None:
    """Return the lines of data that can hold a secret, as ranges of its bytes, in order and apart.

    The data ends with a line end, and so does the last range: empty, or what must be known for the line that
    follows the data. None when there are other control sequences than colours and the like (ESC, bracket, digits and
    separators, letter), or what stands on both sides of a CR may be one word.
    """
    return pieces_of(data)[0]


def pieces_of(data: bytes) -> tuple[list[tuple[int, int]] | None, bool]:
    """Return the same, and whether it is known that colours and the like are the only sequences."""
    if not data:
        return [(0, 0)], True
    shown = _shown_of_colours(data)
    if shown is not None and not may_be_wrapped(shown):
        mapped = _mapped(data, shown)
        if mapped.find(_RUN) < 0 and not _has_password_lines(shown):
            found = _pieces_of_words(data, shown)
            if found is not None:
                return found, True
        return _pieces_of_lines(data, shown, mapped), True
    shown = _shown_of_sequences(data)
    if shown is None or (may_be_wrapped(shown) and _is_wrapped(data, shown)):
        return None, False
    return _pieces_of_lines(data, shown, _mapped(data, shown)), False


def _mapped(data: bytes, shown: bytes) -> bytes:
    """Return data with an `a` for each character of a run, without what is beside them."""
    return data.translate(_WIDE_RUNS if any(_found(some, shown) for some in _WIDE_SHOWN) else _RUNS, _BESIDE_RUNS)


def _shown_of_colours(data: bytes) -> bytes | None:
    """Return what is shown, in lower case and without digits, and a `k` at the end of a line that is erased there.

    None when there are other sequences than colours and that.
    """
    flat = data.translate(_LOWER, _PARAMETERS)
    if _found(_JUMP_FLAT, flat):
        return None
    # In a text with many of them, `count` takes half as long again for a single byte.
    others = len(flat.translate(None, _NO_ESCAPE)) - flat.count(b"\x1b[m")
    for erased in (b"\x1b[k\r\n", b"\x1b[k\n"):
        others -= flat.count(erased) if others else 0
    return flat.translate(None, _COLOUR) if not others else None


def _shown_of_sequences(data: bytes) -> bytes | None:
    """Return what is shown, in lower case and without digits; None when there are others than simple sequences."""
    if _found(_ERASE, data):
        # Its letter is one of words. Not with nothing: what stands on both sides must not become another sequence.
        data = data.replace(b"\x1b[K", b"\0")
    flat = data.translate(_LOWER, _PARAMETERS)
    if _found(_JUMP_FLAT, flat) or _found(_ROWS_FLAT, flat):
        return None
    escapes = flat.count(b"\x1b")
    if flat.count(b"\x1b[m") != escapes:
        # Each ESC must have had its bracket before the digits were taken out, too.
        if data.count(b"\x1b[") != escapes:
            return None
        flat = _MOVE.sub(b"\0", flat)
        if flat.count(b"\x1b[m") != flat.count(b"\x1b"):
            return None
    return flat.translate(None, _COLOUR)


def _pieces_of_words(data: bytes, shown: bytes) -> list[tuple[int, int]] | None:
    """Return the lines with words in them, where each word stands in the data as it is shown; None where one may not.

    Colours and line ends are the only sequences, and they have no letter of a fragment. So what stands in the data
    stands in what is shown, too; and when both have as many fragments, they are the same ones.
    """
    there, here = _fragments(_SEARCH, shown), _fragments(_SEARCH_CASES, data)
    if there is None or here is None or len(there) != len(here):
        return None
    found: list[tuple[int, int]] = []
    end = 0
    for (number, at), (_, place) in zip(there, here, strict=True):
        begun, length, needed = _OF_WORDS[number]
        if needed is None:
            if number == _LOGIN_NUMBER:
                return None
            if place < end or (begun and shown[at - len(begun) : at] != begun):
                continue
        elif place < end or needed(data, place + length) is None:
            continue
        end = data.find(b"\n", place) + 1
        found.append((data.rfind(b"\n", 0, place) + 1, end))
    return [*found, (len(data), len(data))]


def _fragments(search: BytesAhoCorasick, text: bytes) -> list[tuple[int, int]] | None:
    """Return the numbers of the fragments in a text and where they stand; None of too many."""
    found: list[tuple[int, int]] = []
    for begin in range(0, len(text), _STEP):
        piece = text[begin : begin + _STEP + _OVERLAP] if len(text) > _STEP else text
        found += [(number, begin + at) for number, at, _ in search.find_matches_as_indexes(piece) if at < _STEP]
        if len(found) > _MOST:
            return None
    return found


def _pieces_of_lines(data: bytes, shown: bytes, mapped: bytes) -> list[tuple[int, int]] | None:
    """Return lines by their numbers, which are the same in the data, in what is shown and in its runs."""
    ranges = [*_lines_of_runs(mapped), *_lines_of_passwords(shown), *_lines_of_words(shown)]
    # Of the shortest lines, lists would fill the memory.
    if len(ranges) >= _MOST or ranges[-1][1] * _SHORT_LINE > len(data) + _STEP:
        return None
    ranges = _joined(ranges)
    ends = [0, *itertools.accumulate(map(len, data.split(b"\n")))]
    return [(ends[first] + first, ends[last] + last) for first, last in ranges]


def is_harmless(data: bytes) -> bool:
    """Return whether a small text certainly holds no whole secret; it may still end with the beginning of one.

    The text must be plain: no control sequences, no characters without a width, and each CR part of a line end. Then
    it holds no secret if no word in it names one and no run is long enough for a token.
    """
    return (
        len(data) <= _SMALL
        and not data.translate(None, _PLAIN)
        and b"\r" not in data.replace(b"\r\n", b"")
        and data.translate(_PLAIN_RUNS).find(_RUN) < 0
        and not _SIGNS.find_matches_as_indexes(data.lower())
    )


def has_private_key(text: bytes) -> bool:
    """Whether there is the word for a private key in text form."""
    return _found(_PRIVATE_KEY, text)


def has_wide_runs(text: bytes) -> bool:
    """Whether there is the beginning of a token whose value may have other characters early."""
    return any(sign in text and _found(some, text) for sign, some in _WIDE)


def has_password_lines(text: bytes) -> bool:
    """Whether there may be a line of a `.pgpass`."""
    return _found(_PORTS, text)


def has_hidden(data: bytes) -> bool:
    """Whether there are characters without a width, or a CSI of one character, or may be the beginning of one."""
    if data.isascii():
        return False
    if _HIDDEN_BEGUN.search(data, max(0, len(data) - 3)) is not None or _RAW_CSI.search(data) is not None:
        return True
    return _found(_HIDDEN, data) and _HIDDEN_INSIDE.search(data) is not None


def has_string(data: bytes) -> bool:
    """Whether a control sequence begins that has a string in it."""
    return _found(_STRINGS, data)


def may_jump(data: bytes) -> bool:
    """Whether the cursor may go to a column by way of the left edge, or to another row and back."""
    return _found(_JUMP, data) or data[-8:].rstrip(b"0123456789[\x1b").endswith(b"\r") or data.endswith(b"\r\r\n")


def may_be_wrapped(data: bytes) -> bool:
    """Whether a row may go on in the next one of the screen, as a line editor does it: a blank and a CR are there."""
    return _found(_WRAP, data)


def _found(search: BytesAhoCorasick, data: bytes) -> bool:
    """Whether something is there; several times as fast as `in`."""
    return any(search.find_matches_as_indexes(data[at : at + _STEP + _OVERLAP]) for at in range(0, len(data), _STEP))


def _is_wrapped(data: bytes, shown: bytes) -> bool:
    """Whether a blank and a CR stand anywhere but before a line end."""
    between = shown.count(b"\r\n") != data.count(b"\r\n")  # something that was taken out
    return between or may_be_wrapped(shown.replace(b" \r\n", b""))


def _lines_of_words(shown: bytes) -> list[tuple[int, int]]:
    ranges: list[tuple[int, int]] = []
    number, counted, end, login = 0, 0, 0, -_LOGIN_LINES - 1
    for at, word in words(shown):
        if len(ranges) == _MOST:
            break
        if at >= end:
            number += shown.count(b"\n", counted, at)
            counted, end = at, shown.find(b"\n", at)
            if word != _LOGIN:
                ranges.append((login if number - login <= _LOGIN_LINES else number, number + 1))
            else:
                end = at
        if word == _LOGIN:
            login = number
    number += shown.count(b"\n", counted)
    ranges.append((login if number - login <= _LOGIN_LINES else number, number))
    return ranges


def _lines_of_runs(mapped: bytes) -> list[tuple[int, int]]:
    ranges: list[tuple[int, int]] = []
    number, counted, at = 0, 0, mapped.find(_RUN)
    while at >= 0 and len(ranges) < _MOST:
        number += mapped.count(b"\n", counted, at)
        ranges.append((number, number + 1))
        counted = mapped.find(b"\n", at)
        at = mapped.find(_RUN, counted)
    return ranges


def _has_password_lines(shown: bytes) -> bool:
    if not _found(_PORTS_SHOWN, shown) or b"::::" not in shown.translate(None, _NO_COLON):
        return False
    return _PASSWORD_LINE.search(shown) is not None


def _lines_of_passwords(shown: bytes) -> list[tuple[int, int]]:
    if not _has_password_lines(shown):
        return []
    places = [found.start() for found in itertools.islice(_PASSWORD_LINE.finditer(shown), _MOST)]
    counted = itertools.pairwise([0, *places])
    return [(number, number + 1) for number in itertools.accumulate(shown.count(b"\n", *pair) for pair in counted)]


def _joined(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for begin, end in sorted(ranges):
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((begin, end))
    return joined
