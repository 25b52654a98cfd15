"""The interface of a screen for the rest of the project, whichever emulator is behind it: data and a protocol only."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Protocol

from blockpty.screen.pens import Pen

Mouse = Literal["off", "press", "click", "drag", "motion"]
CursorShape = Literal["block", "underline", "bar"]


class Run(NamedTuple):
    """Neighbouring cells drawn alike; `width` is their columns, which the characters of `text` need not be."""

    text: str
    width: int
    pen: Pen


class Line(NamedTuple):
    """One row as it is shown; the runs cover all columns. `wrapped`: the text goes on in the next row."""

    runs: tuple[Run, ...]
    wrapped: bool = False

    @property
    def text(self) -> str:
        """The characters, without the blanks at the end."""
        return "".join(run.text for run in self.runs).rstrip(" ")


class Cursor(NamedTuple):
    """Position of the cursor, from 0. `pending`: a character was printed in the last column and the next one wraps."""

    x: int
    y: int
    visible: bool = True
    shape: CursorShape = "block"
    blink: bool = True
    pending: bool = False


class Modes(NamedTuple):
    """The modes that matter to a user who types or looks.

    Attributes:
        application_cursor, application_keypad: DECCKM and DECKPAM.
        bracketed_paste, focus_events: 2004 and 1004.
        mouse: which events are asked for; `mouse_encoding` how ("x10", "utf8", "sgr", "urxvt", "sgr-pixels").
        keyboard: flags of the kitty keyboard protocol.
        modify_other_keys: xterm's level, 0 to 3.
        reverse_video: DECSCNM.
        synchronized: an update is open (2026).
        insert, origin, autowrap, newline: IRM, DECOM, DECAWM, LNM.
    """

    application_cursor: bool = False
    application_keypad: bool = False
    bracketed_paste: bool = False
    focus_events: bool = False
    mouse: Mouse = "off"
    mouse_encoding: str = "x10"
    keyboard: int = 0
    modify_other_keys: int = 0
    reverse_video: bool = False
    synchronized: bool = False
    insert: bool = False
    origin: bool = False
    autowrap: bool = True
    newline: bool = False


class Frame(NamedTuple):
    """A whole screen at one moment; it does not change any more.

    Attributes:
        cols, rows: size.
        lines: `rows` of them.
        cursor, modes: see there.
        pen: what the next character will be drawn with.
        alt: the alternate screen is shown.
        title: of the window.
        cwd: what OSC 7 said last, or "".
        zone: the letter of the last OSC 133 (A prompt, B input, C output, D end), or "".
    """

    cols: int
    rows: int
    lines: tuple[Line, ...]
    cursor: Cursor
    modes: Modes = Modes()
    pen: Pen = Pen()
    alt: bool = False
    title: str = ""
    cwd: str = ""
    zone: str = ""


class EmulatedScreen(Protocol):
    """An emulated terminal. Total: any bytes are legal, and how they are cut never matters."""

    @property
    def cols(self) -> int: ...

    @property
    def rows(self) -> int: ...

    def feed(self, data: bytes) -> None:
        """Take the next bytes that the program printed."""

    def resize(self, cols: int, rows: int) -> None:
        """Change the size; soft-wrapped lines of the main screen are wrapped anew."""

    def frame(self) -> Frame:
        """Return what is shown; while a synchronized update is open, what was shown when it began."""

    def cursor(self) -> Cursor:
        """Return where the cursor is now, also while a synchronized update is open."""

    def margins(self) -> tuple[int, int, int, int]:
        """Return the first and the last row and the first and the last column of the scrolling region, from 0."""

    def mode(self, number: int, *, private: bool = True) -> bool | None:
        """Return whether a mode is set; None for one that is not known."""

    def dump(self) -> dict[str, Any]:
        """Return the whole state as values that JSON has."""
