"""Matching: the one place that decides where in a chunk a query is found. Every index only narrows down to it.

Rules of this file: pure, but for the time a regular expression may take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import regex

from blockpty.errors import BadRequest
from blockpty.search.query import Query
from blockpty.search.text import Window, fold

_MAX_MATCHES: Final = 100_000
# Lookarounds, atomic and possessive parts, ends of the whole text, and whatever is not of the common kind.
_TELLS: Final = regex.compile(r"\(\?(?!:|P?<[A-Za-z_]|[aimsux]+[:)])|\(\*|\\[AZzGKR]|[+*?}]\+|\{[^0-9,]")
# Borders of words, which depend on a character beside the match.
_BESIDE: Final = regex.compile(r"\\[bBmM]")


class OutOfTime(Exception):
    """The time of the query is used up."""


Remaining = Callable[[], float]
"""Seconds that are left; it raises OutOfTime when there are none."""

Free = Callable[[int, int], bool]
"""Whether a span of characters holds nothing that is redacted."""


class Matcher:
    """Finds the matches of a query in chunks; raises BadRequest for a pattern that is none."""

    def __init__(self, query: Query) -> None:
        self._folds = query.folds
        needle = fold(query.text) if self._folds else query.text
        self._needle = needle
        self._terms = needle.split()
        self._find = {"words": self._words, "phrase": self._phrase, "substring": self._substring}.get(query.mode)
        if query.mode == "phrase":
            self._pattern = regex.compile(r"[ \t]+".join(regex.escape(term) for term in self._terms))
        elif query.mode == "regex":
            try:
                self._pattern = regex.compile(query.text, regex.IGNORECASE if self._folds else 0)
            except (regex.error, RecursionError, OverflowError) as problem:
                raise BadRequest(f"not a regular expression: {problem}", hint="use mode substring for text") from None
        # A match within a line is also one in the whole text, unless the expression can tell that the line is not all.
        self._ahead = None
        self._looks_beside = bool(_BESIDE.search(query.text))
        if query.mode == "regex" and not _TELLS.search(query.text):
            self._ahead = regex.compile(query.text, self._pattern.flags | regex.MULTILINE)

    def reach(self, window: Window, remaining: Remaining) -> tuple[int, int] | None:
        """Return the lines of a chunk that can match once its secrets are redacted, as a span of its text, or None.

        A match that touches no secret is made of the same characters with and without, but what stands beside it may
        differ: an expression that looks there can match anywhere.
        """
        text = window.folded if self._folds else window.text
        if self._find is not None:
            # In words only one line needs to have all of them.
            terms = self._terms if self._find != self._substring else [self._needle]
            places = [(text.find(term), text.rfind(term) + len(term)) for term in terms]
            if any(first < 0 for first, _ in places):
                return None
            begin, end = max(first for first, _ in places), min(last for _, last in places)
            begin, end = min(begin, end), max(begin, end)
        elif self._ahead is None or self._looks_beside:
            return 0, len(text)
        else:
            begin, end = self._search(self._ahead, window.text, 0, remaining), len(text)
            if begin < 0:
                return None
        last = text.find("\n", end)
        return text.rfind("\n", 0, begin) + 1, last if last >= 0 else len(text)

    def find(self, window: Window, remaining: Remaining, free: Free | None = None) -> list[tuple[int, int]]:
        """Return where it is found among the chunk's own characters, as spans of its text in ascending order.

        `free` turns down what overlaps a redacted secret: a match, or one of the words.
        """
        found: list[tuple[int, int]] = []
        if self._find is not None:
            spans = self._find(window.folded if self._folds else window.text, free or _anywhere)
        else:
            spans = self._regex(window.text, remaining, free or _anywhere)
        for begin, end in spans:
            if begin >= window.own or len(found) >= _MAX_MATCHES:
                break
            found.append((begin, end))
        return found

    def _substring(self, text: str, free: Free) -> Iterator[tuple[int, int]]:
        length, at = len(self._needle), text.find(self._needle)
        while at >= 0:
            taken = free(at, at + length)
            if taken:
                yield at, at + length
            at = text.find(self._needle, at + (length if taken else 1))

    def _words(self, text: str, free: Free) -> Iterator[tuple[int, int]]:
        first, at = self._terms[0], 0
        while (at := text.find(first, at)) >= 0:
            begin, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
            line = text[begin : end if end >= 0 else len(text)]
            places = [_word(line, term, begin, free) for term in self._terms]
            if all(place >= 0 for place in places):
                yield (
                    begin + min(places),
                    begin + max(place + len(term) for place, term in zip(places, self._terms, strict=True)),
                )
            if end < 0:
                return
            at = end + 1

    def _phrase(self, text: str, free: Free) -> Iterator[tuple[int, int]]:
        if any(term not in text for term in self._terms):
            return
        for found in self._pattern.finditer(text):
            if _stands_alone(text, *found.span()) and free(*found.span()):
                yield found.span()

    def _regex(self, text: str, remaining: Remaining, free: Free) -> Iterator[tuple[int, int]]:
        at = 0
        while at <= len(text):
            if self._ahead is not None:
                first = self._search(self._ahead, text, at, remaining)
                if first < 0:
                    return
                at = text.rfind("\n", 0, first) + 1
            end = text.find("\n", at)
            end = end if end >= 0 else len(text)
            yield from self._in_line(text[at:end], at, remaining, free)
            at = end + 1

    def _search(self, pattern: regex.Pattern[str], text: str, at: int, remaining: Remaining) -> int:
        try:
            found = pattern.search(text, at, timeout=remaining(), concurrent=True)
        except TimeoutError:
            raise OutOfTime from None
        return found.start() if found is not None else -1

    def _in_line(self, line: str, at: int, remaining: Remaining, free: Free) -> Iterator[tuple[int, int]]:
        try:
            for found in self._pattern.finditer(line, timeout=remaining(), concurrent=True):
                if found.end() > found.start() and free(at + found.start(), at + found.end()):
                    yield at + found.start(), at + found.end()
        except TimeoutError:
            raise OutOfTime from None


def _anywhere(begin: int, end: int) -> bool:
    return True


def _word(line: str, term: str, begin: int, free: Free) -> int:
    """Return where a term first stands alone in a line, which begins at a place of the text, or -1."""
    at = line.find(term)
    while at >= 0 and not (_stands_alone(line, at, at + len(term)) and free(begin + at, begin + at + len(term))):
        at = line.find(term, at + 1)
    return at


def _stands_alone(text: str, begin: int, end: int) -> bool:
    """Whether no letter or digit goes on over the ends of a span."""
    return not (
        (begin > 0 and text[begin].isalnum() and text[begin - 1].isalnum())
        or (end < len(text) and text[end - 1].isalnum() and text[end].isalnum())
    )
