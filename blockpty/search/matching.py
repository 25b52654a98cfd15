"""What matches: the one place that says where in a chunk a query is found. Every index only narrows down to it.

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


class OutOfTime(Exception):
    """The time of the query is used up."""


Remaining = Callable[[], float]
"""Seconds that are left; it raises OutOfTime when there are none."""


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
        if query.mode == "regex" and not _TELLS.search(query.text):
            self._ahead = regex.compile(query.text, self._pattern.flags | regex.MULTILINE)

    def find(self, window: Window, remaining: Remaining) -> list[tuple[int, int]]:
        """Return where it is found among the chunk's own characters, as spans of its text in ascending order."""
        found: list[tuple[int, int]] = []
        if self._find is not None:
            spans = self._find(window.folded if self._folds else window.text)
        else:
            spans = self._regex(window.text, remaining)
        for begin, end in spans:
            if begin >= window.own or len(found) >= _MAX_MATCHES:
                break
            found.append((begin, end))
        return found

    def _substring(self, text: str) -> Iterator[tuple[int, int]]:
        length, at = len(self._needle), text.find(self._needle)
        while at >= 0:
            yield at, at + length
            at = text.find(self._needle, at + length)

    def _words(self, text: str) -> Iterator[tuple[int, int]]:
        first, at = self._terms[0], 0
        while (at := text.find(first, at)) >= 0:
            begin, end = text.rfind("\n", 0, at) + 1, text.find("\n", at)
            line = text[begin : end if end >= 0 else len(text)]
            places = [_word(line, term) for term in self._terms]
            if all(place >= 0 for place in places):
                yield (
                    begin + min(places),
                    begin + max(place + len(term) for place, term in zip(places, self._terms, strict=True)),
                )
            if end < 0:
                return
            at = end + 1

    def _phrase(self, text: str) -> Iterator[tuple[int, int]]:
        if any(term not in text for term in self._terms):
            return
        for found in self._pattern.finditer(text):
            if _stands_alone(text, *found.span()):
                yield found.span()

    def _regex(self, text: str, remaining: Remaining) -> Iterator[tuple[int, int]]:
        at = 0
        while at <= len(text):
            if self._ahead is not None:
                first = self._search(self._ahead, text, at, remaining)
                if first < 0:
                    return
                at = text.rfind("\n", 0, first) + 1
            end = text.find("\n", at)
            end = end if end >= 0 else len(text)
            yield from self._in_line(text[at:end], at, remaining)
            at = end + 1

    def _search(self, pattern: regex.Pattern[str], text: str, at: int, remaining: Remaining) -> int:
        try:
            found = pattern.search(text, at, timeout=remaining(), concurrent=True)
        except TimeoutError:
            raise OutOfTime from None
        return found.start() if found is not None else -1

    def _in_line(self, line: str, at: int, remaining: Remaining) -> Iterator[tuple[int, int]]:
        try:
            for found in self._pattern.finditer(line, timeout=remaining(), concurrent=True):
                if found.end() > found.start():
                    yield at + found.start(), at + found.end()
        except TimeoutError:
            raise OutOfTime from None


def _word(line: str, term: str) -> int:
    """Return where a term first stands alone in a line, or -1."""
    at = line.find(term)
    while at >= 0 and not _stands_alone(line, at, at + len(term)):
        at = line.find(term, at + 1)
    return at


def _stands_alone(text: str, begin: int, end: int) -> bool:
    """Whether no letter or digit goes on over the ends of a span."""
    return not (
        (begin > 0 and text[begin].isalnum() and text[begin - 1].isalnum())
        or (end < len(text) and text[end - 1].isalnum() and text[end].isalnum())
    )
