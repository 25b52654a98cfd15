"""The bar that asks a person to allow something: the exact text, and keys that answer exactly what is shown.

Rules of this file: a key that was pressed before a person can have read the question does nothing. A verdict carries
the digest of what is shown, so that an answer never belongs to another question.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from rich.text import Text
from textual.widgets import Static

from blockpty.surfaces import approvals
from blockpty.surfaces.view.strips import safe, visible
from blockpty.surfaces.view.theme import Colours

DEAD_MS: Final = 400
_MOST_LINES: Final = 8


class ShownQuestion:
    """Which question is shown, and since when; `now_ms` is a clock that never goes back."""

    def __init__(self, now_ms: Callable[[], float]) -> None:
        self._now_ms = now_ms
        self._since = 0.0
        self.question: Mapping[str, Any] | None = None

    def show(self, question: Mapping[str, Any] | None) -> bool:
        """Take what waits; return whether it is another question than before."""
        if _key(question) == _key(self.question):
            return False
        self.question, self._since = question, self._now_ms()
        return True

    def rearm(self) -> None:
        """Count from now: the person did something else until now."""
        self._since = self._now_ms()

    def answered(self) -> Mapping[str, Any] | None:
        """Return the question for a key that was pressed now, None while it is too early.

        Each key that is too early makes the time begin again, so that one that is held down never answers.
        """
        if self.question is None or self._now_ms() - self._since < DEAD_MS:
            self.rearm()
            return None
        return self.question


def _key(question: Mapping[str, Any] | None) -> tuple[Any, ...] | None:
    if question is None:
        return None
    return question["conversation_id"], question["approval_id"], question["digest"]


class ApprovalBar(Static):
    """Pending approvals of the conversation that is open; hidden when there are none.

    Attributes:
        shown: the question.
        is_whole: all of its text is shown; otherwise it can be refused here, and not approved.
    """

    def __init__(self, now_ms: Callable[[], float], **options: Any) -> None:
        super().__init__("", markup=False, **options)
        self.shown = ShownQuestion(now_ms)
        self.is_whole = True
        self.display = False

    def show(self, question: Mapping[str, Any] | None, wall_ms: int, colours: Colours, *, refused: str = "") -> None:
        """Show a question, or none; `refused`: why no key answers it now."""
        self.shown.show(question)
        self.display = question is not None
        if question is not None:
            width = max(20, self.size.width - 4)
            asked = question.get("text")
            lines = [] if asked is None else list(approvals.quoted(asked, width=width))
            self.is_whole = len(lines) <= _MOST_LINES
            self.update(_text(question, lines, wall_ms, colours, refused))


def _text(question: Mapping[str, Any], lines: list[str], wall_ms: int, colours: Colours, refused: str) -> Text:
    typed = str(question.get("operation")).startswith(("send", "paste"))
    left = approvals.seconds_left(question, wall_ms)
    text = Text(overflow="fold", end="")
    text.append(f"▲ The agent wants to {'type' if typed else 'run a command'}", f"bold {colours.wait}")
    text.append(f"    refused in {left // 60}:{left % 60:02}\n", colours.muted)
    if question.get("text") is None:
        text.append("  what would be typed is a secret, and is not shown\n", colours.muted)
    else:
        for line in lines[:_MOST_LINES]:
            text.append(f"{line}\n", f"bold {colours.text}")
        if len(lines) > _MOST_LINES:
            text.append(f"  … {len(lines) - _MOST_LINES} more lines: blockpty answer shows all\n", colours.fail)
    where = f" · in {visible(str(question['cwd']))}" if question.get("cwd") is not None else ""
    text.append("  rule ", colours.muted)
    text.append(safe(str(question.get("rule"))), f"bold {colours.muted}")
    text.append(f"{where}\n", colours.muted)
    if not refused:
        always = [("a", "always …")] if question.get("always") is not None else []
        approve = [("y", "approve once"), ("Y", "for this conversation")]
        refuse = [("x", "refuse"), ("e", "… and say why")]
        for key, words in (*approve, *always, *refuse):
            text.append(f"  {key}", f"bold {colours.fail if key == 'x' else colours.accent}")
            text.append(f" {words} ", colours.text)
    else:
        text.append(f"  {refused}", colours.muted)
    return text
