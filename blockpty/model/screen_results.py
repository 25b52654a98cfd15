"""Result of `screen`: what a terminal shows."""

from __future__ import annotations

from typing import ClassVar

from blockpty.model.result import Result
from blockpty.model.shown import framed, preformatted


class ScreenResult(Result, frozen=True):
    """Contents of a terminal's screen.

    Attributes:
        content: the screen in the format that was asked for; `json` as JSON text.
        cursor: how much of the stream it shows.
        cols, rows: the terminal's size.
        cursor_position: column and row of the terminal's cursor, from 0; cursor_visible: whether it is shown.
        alt_screen: the alternate screen is shown, as full-screen programs do.
        mouse: what the program wants to hear of the mouse: `off`, `press`, `click`, `drag` or `motion`.
        title: of the window.
        seqno: names this moment for `since`.
        hash: names what is shown for `{"changed": hash}`: hashes of characters, of how they are drawn and of the
            cursor, joined by "-".
        changed: rows, from 0, that are not as they were at `since`; all without it.
        bells: how often the bell has rung since the record began.
        unhandled: control sequences that the screen did not obey since then: how many of each kind, such as
            {"CSI ?2031 h": 1}; left out where there were none. For diagnosis of a screen that looks wrong.
        first_line: with a range of lines, which the first one in `content` is; left out otherwise.
    """

    LEFT_OUT: ClassVar[frozenset[str]] = frozenset({"unhandled", "first_line"})

    content: str
    cursor: int
    format: str
    cols: int
    rows: int
    cursor_position: tuple[int, int]
    cursor_visible: bool
    alt_screen: bool
    mouse: str
    title: str
    seqno: int
    hash: str
    changed: list[int]
    bells: int = 0
    unhandled: dict[str, int] | None = None
    first_line: int | None = None

    def __repr__(self) -> str:
        rows = "\n".join(line.rstrip() for line in self.content.rstrip().split("\n"))
        return f"<ScreenResult {self.cols}x{self.rows} {self.format}>\n{rows}"

    def _repr_html_(self) -> str:
        """Show it in a notebook; with the format html in colours."""
        title = f"{self.cols}x{self.rows}{' ' + self.title if self.title else ''}"
        return framed(self.content, self.rows) if self.format == "html" else preformatted(self.content, summary=title)
