"""Matchers: the search for a text or a pattern in text that only grows.

Rules of this file: a candidate is the same whatever pieces the text came in. A text matches at its last byte. A
pattern sees settled text: it is tried at every line end in order, on the line alone, or, when it could match a line
end, on the last `WINDOW` bytes; and on an unterminated line once it has settled or when it is longer than `LINE_LIMIT`.

A search over many lines at once is only used to show that none of them can match; see `_may_skip`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from blockpty.engine.views import Piece, compact, raw_offset
from blockpty.errors import BadCondition

if TYPE_CHECKING:
    import regex

LINE_LIMIT: Final = 64 * 1024
WINDOW: Final = 64 * 1024

_LINE_ENDS: Final = re.compile(rb"\n|\r(?=[^\n])")
# The same in whole lines: the last one may end with a CR too.
_LONE_CRS: Final = re.compile(rb"\r(?!\n)")
# Anything that could match a line end makes a pattern look at more than one line.
_SPANS_LINES: Final = re.compile(r"\\[nrsWDRXvxuNpP0]|\[\^|\(\?[a-zA-Z]*s|\n|\r|\\[0-7]{2}|\[\[:")
# With these, a longer text can have no match although a shorter one has; then nothing may be skipped.
_REVOCABLE: Final = re.compile(r"\\[AzZGK]|\(\?(?![imsx]*[:)]|=|<[A-Za-z_]|P[<=]|#)|[*+?}]\+|\(\*")
# These hold at the end of one line's window and not in the middle of more text.
_AT_THE_END: Final = re.compile(r"[$^]|\\B")


class PatternTimeout(Exception):
    """A search took longer than its budget; the matcher is unchanged and may be asked again with a larger one."""


class TextMatch(NamedTuple):
    """A place where a condition holds.

    Attributes:
        at: stream offset at which this became true; candidates are compared by it.
        span: stream offsets of what matched.
        text: what matched.
        groups: capture groups, unnamed by number and named by name.
    """

    at: int
    span: tuple[int, int]
    text: str
    groups: dict[str, Any] | None = None


class TextWindow:
    """The text since the region began, as far as a matcher may still need it; positions count from that beginning."""

    def __init__(self, view: str) -> None:
        self._view = view
        self._pieces: list[Piece] = []
        self._starts: list[int] = []
        self.base = 0
        self.text = bytearray()

    @property
    def end(self) -> int:
        """Position after the last byte."""
        return self.base + len(self.text)

    def append(self, piece: Piece) -> None:
        """Add what a view produced."""
        if piece.text:
            self._pieces.append(compact(self._view, piece))
            self._starts.append(self.end)
            self.text += piece.text

    def cut(self, begin: int, end: int) -> bytes:
        """Return the text between two positions."""
        return bytes(self.text[begin - self.base : end - self.base])

    def raw(self, position: int, *, after: bool = False) -> int:
        """Return the stream offset of the byte at `position`, or of the place right after it."""
        index = bisect_right(self._starts, position) - 1
        return raw_offset(self._view, self._pieces[index], position - self._starts[index], after=after)

    def forget(self, before: int) -> None:
        """Drop whole pieces that end at or before a position."""
        keep = bisect_right(self._starts, before) - 1
        if keep > 0:
            del self.text[: self._starts[keep] - self.base]
            self.base = self._starts[keep]
            del self._pieces[:keep], self._starts[:keep]


class TextMatcher:
    """Finds the first occurrence of a text; with `ignore_case`, capitals and small letters of ASCII are the same."""

    def __init__(self, text: str, *, ignore_case: bool = False) -> None:
        needle = text.encode("utf-8", "surrogateescape")
        self._needle = needle.lower() if ignore_case else needle
        self._ignore_case = ignore_case
        self._searched = 0

    @property
    def needs(self) -> int:
        """Position before which the window may forget."""
        return max(0, self._searched - len(self._needle) + 1)

    def restart(self) -> None:
        """Begin a new region."""
        self._searched = 0

    def grow(self, window: TextWindow, budget: float) -> TextMatch | None:
        """Look at what was appended."""
        start = max(0, self.needs - window.base)
        if self._ignore_case:
            at = window.text[start:].lower().find(self._needle)
            at += start if at >= 0 else 0
        else:
            at = window.text.find(self._needle, start)
        if at < 0:
            self._searched = window.end
            return None
        begin = window.base + at
        end = window.raw(begin + len(self._needle) - 1, after=True)
        found = window.cut(begin, begin + len(self._needle)) if self._ignore_case else self._needle
        return TextMatch(end, (window.raw(begin), end), found.decode("utf-8", "replace"))

    def settle(self, window: TextWindow, at: int, budget: float) -> TextMatch | None:
        """An unterminated line means nothing to a text."""
        return None

    def resume(self, window: TextWindow) -> int | None:
        """Return from which position a later search must start to miss nothing; None: from the end."""
        text = window.text[-len(self._needle) :]
        if self._ignore_case:
            text = text.lower()
        for length in range(min(len(self._needle) - 1, len(text)), 0, -1):
            if text.endswith(self._needle[:length]):
                return window.end - length
        return None


def compile_pattern(pattern: str, *, ignore_case: bool = False) -> regex.Pattern[str]:
    """Compile what a caller wrote; raises BadCondition."""
    # Loaded with the first pattern: many programs wait for nothing but prompts and texts.
    import regex

    try:
        return regex.compile(pattern, regex.MULTILINE | regex.VERSION0 | (regex.IGNORECASE if ignore_case else 0))
    except (regex.error, ValueError) as problem:
        raise BadCondition(
            f"the regular expression does not compile: {problem}", hint="see the syntax of the Python module regex"
        ) from None
    except (OverflowError, RecursionError, MemoryError):
        raise BadCondition("the regular expression is too large", hint="use a shorter one") from None


class PatternMatcher:
    """Finds the first line end at which a regular expression matches."""

    def __init__(self, pattern: str, *, ignore_case: bool = False) -> None:
        self._regex = compile_pattern(pattern, ignore_case=ignore_case)
        self._spans_lines = bool(_SPANS_LINES.search(pattern))
        revocable = _REVOCABLE.search(pattern) or (self._spans_lines and _AT_THE_END.search(pattern))
        self._may_skip = not revocable
        self.restart()

    def restart(self) -> None:
        """Begin a new region."""
        self._line = 0
        self._scanned = 0

    @property
    def needs(self) -> int:
        """Position before which the window may forget."""
        # One byte more than the window, for what stands in front of it.
        return max(0, self._line - WINDOW - 1) if self._spans_lines else self._line

    def grow(self, window: TextWindow, budget: float) -> TextMatch | None:
        """Look at the line ends in what was appended."""
        ends, cut = self._ends(window)
        if ends:
            candidate = self._lines(window, ends, budget, exact=cut or not self._may_skip)
            if candidate is not None:
                return candidate
            self._line = ends[-1]
        # A CR at the very end is not known to be a line end yet.
        self._scanned = max(self._line, window.end - 1)
        return None

    def _ends(self, window: TextWindow) -> tuple[list[int], bool]:
        """Return the line ends after the current line's begin, and whether a line had to be cut at `LINE_LIMIT`."""
        ends: list[int] = []
        line, cut = self._line, False
        found = [window.base + end.end() for end in _LINE_ENDS.finditer(window.text, self._scanned - window.base)]
        for end in [*found, window.end + 1]:
            while end - line > LINE_LIMIT:
                line, cut = line + LINE_LIMIT, True
                ends.append(line)
            if end <= window.end:
                ends.append(end)
                line = end
        return ends, cut

    def settle(self, window: TextWindow, at: int, budget: float) -> TextMatch | None:
        """Look at the unterminated line, which has settled at stream offset `at`."""
        if window.end <= self._line:
            return None
        end = window.end
        if not self._spans_lines and window.text.endswith(b"\r"):
            # The CR is a line end after all: nothing follows it.
            end -= 1
        return self._search(window, self._first(window, window.end), end, budget, at=at)

    def resume(self, window: TextWindow) -> int | None:
        """Return from which position a later search must start to miss nothing; None: from the end."""
        begin = max(window.base, self.needs)
        return begin if begin < window.end else None

    def _first(self, window: TextWindow, end: int) -> int:
        return max(0, end - WINDOW) if self._spans_lines else self._line

    def _lines(self, window: TextWindow, ends: list[int], budget: float, *, exact: bool) -> TextMatch | None:
        """Try the line ends in order; unless `exact`, pass over those that one search over all shows to be hopeless."""
        begin, index = self._line, 0
        while index < len(ends):
            if not exact and len(ends) - index > 1:
                first = self._first(window, ends[index]) if self._spans_lines else begin
                found = self._find(window, first, ends[-1], budget, several=not self._spans_lines)
                if found is None:
                    return None
                while ends[index] <= found[0] and index < len(ends) - 1:
                    begin, index = ends[index], index + 1
            end = ends[index]
            last = window.cut(end - 1, end)
            # That a CR ends a line is known when the next byte is there.
            known = end if last == b"\r" and end < window.end and end - begin < LINE_LIMIT else end - 1
            if self._spans_lines:
                candidate = self._search(window, self._first(window, end), end, budget, known=known)
            else:
                content = end - 1 if last in (b"\n", b"\r") else end
                candidate = self._search(window, begin, content, budget, known=known)
            if candidate is not None:
                return candidate
            begin, index = end, index + 1
        return None

    def _search(
        self, window: TextWindow, begin: int, end: int, budget: float, *, at: int | None = None, known: int = 0
    ) -> TextMatch | None:
        """Search text[begin:end]; what is found became true at stream offset `at`, or with the byte at `known`."""
        hit = self._find(window, begin, end, budget)
        if hit is None:
            return None
        if at is None:
            at = window.raw(known, after=True)
        first, size, found = hit
        span_end = window.raw(first + size - 1, after=True) if size else _border(window, first, begin, end)
        span_begin = window.raw(first) if size else span_end
        groups: dict[str, Any] = {str(number): _clean(value) for number, value in enumerate(found.groups(), 1)}
        groups.update({name: _clean(value) for name, value in found.groupdict().items()})
        return TextMatch(at, (span_begin, span_end), _clean(found.group()) or "", groups)

    def _find(
        self, window: TextWindow, begin: int, end: int, budget: float, *, several: bool = False
    ) -> tuple[int, int, regex.Match[str]] | None:
        """Search text[begin:end]; return (position, size in bytes, match). `^` and `\\b` see one byte more.

        `several`: these are whole lines, and the pattern must not see any two of them as one.
        """
        before = window.cut(begin - 1, begin) if begin > window.base and self._spans_lines else b""
        context = before.decode("utf-8", "surrogateescape")
        searched = window.cut(begin, end)
        if several and b"\r" in searched:
            searched = _LONE_CRS.sub(b"\n", searched)
        text = context + searched.decode("utf-8", "surrogateescape")
        try:
            found = self._regex.search(text, pos=len(context), timeout=budget, concurrent=True)
        except TimeoutError:
            raise PatternTimeout from None
        if found is None:
            return None
        ahead = text[len(context) : found.start()]
        size = len(found.group().encode("utf-8", "surrogateescape"))
        return begin + len(ahead.encode("utf-8", "surrogateescape")), size, found


def _border(window: TextWindow, position: int, begin: int, end: int) -> int:
    """Return the stream offset of an empty match in text[begin:end]."""
    if position < end or position == begin:
        return window.raw(position) if position < window.end else window.raw(position - 1, after=True)
    return window.raw(position - 1, after=True)


def _clean(value: str | None) -> str | None:
    """Replace bytes that are no UTF-8, which must not reach JSON."""
    return None if value is None else value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
