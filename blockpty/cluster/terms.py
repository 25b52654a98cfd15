"""Index terms of a chunk: numbers for three characters in a row, for short words, and for its time.

Rules of this file: pure. A number may stand for several things, which only costs time; a thing has one number, the same
for ever, since what was written yesterday is asked for today. All texts are folded.

Two things are left out, because they would be half of the index and hardly ever help. Digits are one and the same,
except where three stand together: a number is found by these. And of three characters none is a blank in the middle,
so it is enough to look once at what stands between blanks, however often it comes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import Final
from zlib import crc32

GRAM: Final = 3
# Whole words that hold no three characters.
_SHORT: Final = re.compile(r"(?<![^\W_])[^\W_]{1,2}(?![^\W_])")
_DIGITS: Final = re.compile(r"[0-9]{3,}")
# What counts as a blank, the same for `bytes.split`.
_BLANKS: Final = re.compile(r"[ \t\n\r\x0b\x0c]+")
_LINE_END: Final = ord("\n")
_NOT_INSIDE: Final = (_LINE_END, ord(" "))
_ONE_DIGIT: Final = str.maketrans("123456789", "0" * 9)

# Numbers from here on are made of checksums; below are three ASCII characters, and times are negative.
_HASHED: Final = 1 << 30
_WORD, _CONVERSATION = "\x01", "\x02"

# Widths of the spans of time that a chunk is in, as powers of two of a millisecond: from 8 seconds to 4 years.
_WIDTHS: Final = tuple(range(13, 38, 3))
_NUMBERS: Final = 27
# Into at most so many spans is a time cut.
_SPANS: Final = 32


def terms_of(folded: str) -> set[int]:
    """Return the numbers of a chunk's text."""
    digits = "\n".join(set(_DIGITS.findall(folded)))
    plain = folded.translate(_ONE_DIGIT)
    if plain.isascii():
        text = " ".join(map(bytes.decode, set(plain.encode().split())))
    else:
        text = " ".join(set(_BLANKS.split(plain)))
    return _grams(f" {text} ") | _grams(digits) | _words(set(_SHORT.findall(text)))


def terms_of_block(conversation_id: str, ts: int) -> set[int]:
    """Return the numbers that all chunks of a block have: of its conversation, and of when it began, in ms."""
    return {conversation_term(conversation_id), *(_span(ts, number) for number in range(len(_WIDTHS)))}


def wanted_terms(texts: Iterable[str], words: Iterable[str] = ()) -> set[int]:
    """Return numbers that a chunk has when it holds all of these texts and words; none: nothing is known."""
    found = _words({word.translate(_ONE_DIGIT) for word in words if len(word) < GRAM})
    for text in texts:
        found |= _grams("\n".join(_DIGITS.findall(text)))
        # A match lies within a line, so what goes over the end of one is in no chunk.
        for line in text.split("\n"):
            found |= _grams(_BLANKS.sub(" ", line.translate(_ONE_DIGIT)))
    return found


def conversation_term(conversation_id: str) -> int:
    """Return the number of a conversation."""
    return _hashed(_CONVERSATION + conversation_id)


def time_terms(first: int, last: int) -> list[int]:
    """Return numbers of which a chunk has one when its time, in ms, is from `first` to `last`; so may others near."""
    number, width = next(
        ((number, width) for number, width in enumerate(_WIDTHS) if (last >> width) - (first >> width) < _SPANS),
        (len(_WIDTHS) - 1, _WIDTHS[-1]),
    )
    return [_span(at << width, number) for at in range(first >> width, (last >> width) + 1)]


def _words(words: Iterable[str]) -> set[int]:
    return {_hashed(_WORD + word) for word in words}


def _grams(text: str) -> set[int]:
    """Return the numbers of three characters in a row, none of them a line end and the middle one no blank."""
    if not text.isascii() or sys.byteorder != "little":
        grams = {text[at : at + GRAM] for at in range(len(text) - GRAM + 1)}
        return {_gram(gram) for gram in grams if gram[1] != " " and "\n" not in gram}
    data = text.encode()
    # Read as 32-bit numbers from each of the four places where one can begin: no loop over the characters.
    fours: set[int] = set()
    for at in range(4):
        fours.update(memoryview(data)[at : at + max(0, len(data) - at) // 4 * 4].cast("I"))
    found = {four & 0xFFFFFF for four in fours}
    if len(data) >= GRAM:
        found.add(int.from_bytes(data[-GRAM:], "little"))
    return {
        three
        for three in found
        if three >> 8 & 0xFF not in _NOT_INSIDE and three & 0xFF != _LINE_END and three >> 16 != _LINE_END
    }


def _gram(gram: str) -> int:
    return int.from_bytes(gram.encode(), "little") if gram.isascii() else _hashed(gram)


def _span(ts: int, number: int) -> int:
    return -1 - (number << _NUMBERS | (ts >> _WIDTHS[number]) % (1 << _NUMBERS))


def _hashed(text: str) -> int:
    return _HASHED | crc32(text.encode("utf-8", "surrogatepass")) & _HASHED - 1
