"""Results of waits, and of input that may wait as well."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec.structs import replace

from blockpty.model.result import Result


class WaitResult(Result, frozen=True):
    """Outcome of a wait.

    Attributes:
        matched: whether a condition held.
        reason: `matched`, `prompt`, `eof`, `input`, `timeout`, `max_bytes`, `stopped`, `password`,
            `incomplete_input`, `hooks_lost`, `cancelled`.
        index: which of several conditions matched (or which stop condition stopped it).
        match_text, groups, span: what matched and where in the stream.
        cursor: where to go on; for an unsuccessful wait a place from which asking again misses nothing.
        text: the last text seen (at most 8 KiB) up to the end; text_bytes: how much there was.
        before: of a match, the text from where the wait looked (at most 8 KiB, the end of it) up to the match.
        already_there: what matched was there, or the shell or program ready, before the wait began.
        new_output: how many bytes of the text have come since the wait began.
        from_cursor: where it looked from; `read` from there returns all of the text.
        context: the lines that the match stands on, and those around them, if `context` lines were asked for.
        foreground: the program that has the terminal, as in `status`, and hint: what to do about it, when the wait
            ended without a match while a program runs.
    """

    matched: bool
    reason: str
    cursor: int
    index: int | None = None
    match_text: str | None = None
    groups: dict[str, Any] | None = None
    span: tuple[int, int] | None = None
    mode: str = "idle"
    tty: str | None = None
    text: str = ""
    text_bytes: int = 0
    before: str = ""
    already_there: bool = False
    new_output: int = 0
    from_cursor: int = 0
    context: str | None = None
    foreground: str | None = None
    hint: str | None = None


class SendResult(Result, frozen=True):
    """Input went to the terminal; with `match`, also the outcome of the wait that began right behind it.

    Attributes:
        cursor: where the input was typed; with `match` where to go on.
        accepted_bytes: how many bytes the terminal took.
        matched, reason, index, match_text, groups, span, mode, tty, text, text_bytes, before, already_there,
            new_output, from_cursor, foreground: as in the result of `wait_for`; None, and left out of the JSON form,
            without `match`.
        hint: what to do about the program, or how a key or token is written that was taken for text.
    """

    LEFT_OUT: ClassVar[frozenset[str]] = frozenset({
        "matched", "reason", "index", "match_text", "groups", "span", "mode", "tty", "text", "text_bytes", "before",
        "already_there", "new_output", "from_cursor", "foreground", "hint",
    })  # fmt: skip

    cursor: int
    accepted_bytes: int
    matched: bool | None = None
    reason: str | None = None
    index: int | None = None
    match_text: str | None = None
    groups: dict[str, Any] | None = None
    span: tuple[int, int] | None = None
    mode: str | None = None
    tty: str | None = None
    text: str | None = None
    text_bytes: int | None = None
    before: str | None = None
    already_there: bool | None = None
    new_output: int | None = None
    from_cursor: int | None = None
    foreground: str | None = None
    hint: str | None = None

    def with_wait(self, waited: WaitResult) -> SendResult:
        """Return this result with how a wait ended."""
        found = {name: getattr(waited, name) for name in waited.__struct_fields__ if name in self.LEFT_OUT}
        hints = [hint for hint in (self.hint, waited.hint) if hint is not None]
        return replace(self, cursor=waited.cursor, **{**found, "hint": "; ".join(hints) or None})
