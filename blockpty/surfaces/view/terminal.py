"""The live screen of a conversation as a widget: the engine's own screen, row by row.

Rules of this file: bytes go into a `LazyScreen`, so what is shown is what the engine has. They are acknowledged when
they are drawn, so that a program that prints faster than this draws does not fill the memory. With control, keys and
pastes go out as attach sends them.
"""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from blockpty.engine.keys import KeyModes, bracket
from blockpty.screen.lazy import LazyScreen
from blockpty.screen.protocol import Line
from blockpty.screen.snapshot import Snapshot
from blockpty.surfaces.live_socket import Frame
from blockpty.surfaces.view.keys import encoded, encoded_mouse, textual_key
from blockpty.surfaces.view.strips import segments, strip
from blockpty.surfaces.view.theme import DARK, Colours

if TYPE_CHECKING:
    from textual import events

MOST_PER_SECOND: Final = 30
# What is drawn at a time, so that keys are answered in between.
STEP: Final = 128 * 1024
# So many rows of former screens are kept as well.
_KEPT_ROWS: Final = 1000
HAND_BACK: Final = textual_key("Ctrl+]")


class ReceivedScreen:
    """The screen of bytes that were received: drawn when it is looked at, and no later than a step behind.

    Attributes:
        cursor: up to where bytes of the stream were received.
    """

    def __init__(self, cols: int, rows: int, data: bytes, cursor: int) -> None:
        self.cursor = self._kept_from = cursor
        self._kept = bytearray()
        self._screen = LazyScreen(self._read, cols, rows, offset=cursor)
        # What draws the screen as it is at the cursor; it is no part of the stream.
        self._screen.restart(data)

    def _read(self, begin: int, end: int) -> bytes:
        return bytes(self._kept[begin - self._kept_from : end - self._kept_from])

    @property
    def behind(self) -> int:
        """Bytes that are not drawn yet."""
        return self._screen.behind

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        self._kept += data
        self.cursor += len(data)
        self._screen.advance(self.cursor)

    def draw(self, most: int = STEP) -> int:
        """Draw some of what is not drawn yet; return the cursor up to which all is."""
        self._screen.catch_up(most)
        drawn = self.cursor - self._screen.behind
        del self._kept[: drawn - self._kept_from]
        self._kept_from = drawn
        return drawn

    def resize(self, cols: int, rows: int) -> None:
        """Change the size at this point."""
        self._screen.resize(cols, rows)
        self.draw()

    def restart(self, data: bytes) -> None:
        """Draw what makes the terminal ready for another shell."""
        self._screen.restart(data)
        self.draw()

    def snapshot(self) -> Snapshot:
        """Return what is shown now."""
        return self._screen.snapshot()


class TerminalView(Widget, can_focus=True):
    """The screen of one conversation.

    Attributes:
        screen_shown: the last snapshot; None before there is one.
        typing: keys go to the program.
        colours: those it is drawn in.
    """

    DEFAULT_CSS = "TerminalView { height: 1fr; }"

    class Typed(Message):
        """Keys or a paste, as the bytes that a terminal sends."""

        def __init__(self, data: bytes) -> None:
            super().__init__()
            self.data = data

    class HandBack(Message):
        """The key that hands control back was pressed."""

    class Watching(Message):
        """A key was pressed that goes nowhere, because the agent has control."""

    def __init__(self, acknowledge: Callable[[int], Awaitable[None]], **options: Any) -> None:
        super().__init__(**options)
        self.screen_shown: Snapshot | None = None
        self.typing = False
        self.colours: Colours = DARK
        self._acknowledge = acknowledge
        self._acknowledged = 0
        self._received: ReceivedScreen | None = None
        # After each drawing it rests; whether something has come since the last one.
        self._rests = self._has_news = False
        # Whole rows, with border and padding, by the identity of a line, which it keeps when it scrolls. What Textual
        # makes of a strip it keeps with it, and what it adds to one around a row it makes anew each time.
        self._rows: dict[int, tuple[Line, Strip]] = {}
        self._row_width = 0
        # The first row and column that are shown, of a screen that is larger than this.
        self._top = self._left = 0
        self._caption = ""

    # What is shown

    def clear(self) -> None:
        """Show nothing, for another conversation."""
        self._received = self.screen_shown = None
        self._refresh_all()

    def take(self, frame: Frame) -> None:
        """Take a frame of the conversation's socket; others than those of the screen are ignored."""
        if isinstance(frame, bytes):
            if self._received is not None:
                self._received.feed(frame)
        elif isinstance(frame, dict):
            kind = frame.get("type")
            if kind == "screen":
                data = str(frame["data"]).encode("utf-8", "replace")
                self._received = ReceivedScreen(frame["cols"], frame["rows"], data, frame["cursor"])
                self._acknowledged = -1
            elif kind == "resize" and self._received is not None:
                self._received.resize(frame["cols"], frame["rows"])
            elif kind == "restart" and self._received is not None:
                self._received.restart(str(frame["data"]).encode())
        self._draw_soon()

    def _draw_soon(self) -> None:
        """Draw at once, so that a key's echo does not wait; after a drawing, when the rest is over."""
        self._has_news = True
        if not self._rests and self.is_running:
            self._rests = True
            self.call_next(self._draw_and_rest)

    async def _draw_and_rest(self) -> None:
        self._has_news = False
        await self.draw()
        self.set_timer(1 / MOST_PER_SECOND, self._rested)

    def _rested(self) -> None:
        self._rests = False
        if self._has_news:
            self._draw_soon()

    async def draw(self) -> None:
        """Draw what has come, and show it where it can be seen."""
        received = self._received
        if received is None:
            return
        drawn = received.draw()
        if drawn != self._acknowledged:
            self._acknowledged = drawn
            await self._acknowledge(drawn)
        if received.behind:
            self._draw_soon()
        if self.is_on_screen and not received.behind:
            self._show(received.snapshot())

    def on_show(self) -> None:
        """Show what came while this could not be seen."""
        self._draw_soon()

    def _show(self, snapshot: Snapshot) -> None:
        before, self.screen_shown = self.screen_shown, snapshot
        frame = snapshot.frame
        height = max(1, self.size.height - 1)
        top = max(0, min(frame.cursor.y - height + 1, frame.rows - height))
        width = max(1, self.size.width)
        left = max(0, min(frame.cursor.x - width + 2, frame.cols - width)) if frame.cursor.visible else 0
        place = (top, left)
        size = (frame.cols, frame.rows)
        old = before.frame if before is not None else frame
        kept = size == (old.cols, old.rows) and old.modes.reverse_video == frame.modes.reverse_video
        if before is None or not kept or place != (self._top, self._left):
            self._top, self._left = place
            self._refresh_all()
            return
        rows = {y for y, line in enumerate(frame.lines) if line is not old.lines[y]}
        if old.cursor != frame.cursor:
            rows |= {old.cursor.y, frame.cursor.y}
        if len(self._rows) > _KEPT_ROWS:
            now = {id(line) for line in frame.lines}
            self._rows = {key: made for key, made in self._rows.items() if key in now}
        regions = [Region(0, y - top + 1, self.size.width, 1) for y in rows if 0 <= y - top < height]
        # The first row says up to where this is.
        self.refresh(Region(0, 0, self.size.width, 1), *regions)

    def set_caption(self, words: str) -> None:
        """Say in the first row whose screen this is, and who types."""
        if words != self._caption:
            self._caption = words
            self.refresh(Region(0, 0, self.size.width, 1))

    def recolour(self, colours: Colours) -> None:
        """Take other colours."""
        self.colours = colours
        self._refresh_all()

    def notify_style_update(self) -> None:
        """Draw every row anew: its border and padding are part of it."""
        self._rows = {}
        super().notify_style_update()

    def _refresh_all(self) -> None:
        self._rows = {}
        self.refresh()

    def on_resize(self) -> None:
        """Show the part that fits."""
        if self.screen_shown is not None:
            self._show(self.screen_shown)

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return whole rows; one whose line was drawn before, perhaps in another row, is as it was then."""
        width = self.outer_size.width
        if width != self._row_width:
            self._rows, self._row_width = {}, width
        lines = {y: self._line_in(y - self.gutter.top) for y in crop.line_range}
        rows = {y: self._rows[id(line)][1] for y, line in lines.items() if id(line) in self._rows}
        number = itertools.count()
        # To style some rows that are below one another takes little longer than to style one.
        for _, together in itertools.groupby((y for y in lines if y not in rows), lambda y: y - next(number)):
            some = list(together)
            for y, row in zip(some, super().render_lines(Region(0, some[0], width, len(some))), strict=True):
                rows[y] = row
                if (line := lines[y]) is not None:
                    self._rows[id(line)] = line, row
        whole = [rows[y] for y in crop.line_range]
        return whole if crop.column_span == (0, width) else [row.crop(*crop.column_span) for row in whole]

    def _line_in(self, y: int) -> Line | None:
        """Return the line of the screen in a row, if nothing else is drawn there."""
        shown, row = self.screen_shown, self._top + y - 1
        if shown is None or y < 1 or row >= shown.frame.rows:
            return None
        cursor = shown.frame.cursor
        return None if cursor.visible and cursor.y == row else shown.frame.lines[row]

    def render_line(self, y: int) -> Strip:
        """Return what is in one row: our caption, then those of the screen."""
        width, colours = self.size.width, self.colours
        ground, shown = Style(bgcolor=colours.term), self.screen_shown
        if y == 0:
            look = f"bold {colours.user}" if self.typing else colours.muted
            at = f" · cursor {shown.offset:,}" if shown is not None and not self.typing else ""
            return strip([(f"{self._caption}{at}", look)], width, colours.term)
        row = self._top + y - 1
        if shown is None or row >= shown.frame.rows:
            return Strip.blank(width, ground)
        frame = shown.frame
        runs = frame.lines[row].runs
        made = Strip(segments(runs, colours, colours.term, reverse=frame.modes.reverse_video, exact=True))
        if frame.cursor.visible and frame.cursor.y == row:
            made = _with_cursor(made, min(frame.cursor.x, frame.cols - 1))
        return made.crop_extend(self._left, self._left + width, ground)

    # What is typed

    async def _on_key(self, event: events.Key) -> None:
        """Send a key to the program, before any binding is looked at."""
        if not self.typing:
            if event.is_printable and event.key not in self.app.active_bindings:
                self.post_message(self.Watching())
            return
        event.stop()
        event.prevent_default()
        if event.key == HAND_BACK:
            self.post_message(self.HandBack())
            return
        data = encoded(event.key, event.character, self._key_modes())
        if data:
            self.post_message(self.Typed(data))

    def on_paste(self, event: events.Paste) -> None:
        """Send a paste to the program, in brackets where it asked for them."""
        event.stop()
        if self.typing:
            shown = self.screen_shown
            bracketed = shown is not None and shown.frame.modes.bracketed_paste
            self.post_message(self.Typed(bracket(event.text, bracketed=bracketed)))
        else:
            self.post_message(self.Watching())

    def on_click(self, event: events.Click) -> None:
        """Send a click to a program that listens to the mouse."""
        name = {1: "CLICK", 2: "MCLICK", 3: "RCLICK"}.get(event.button, "")
        if name:
            self._mouse(name, event)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Send a turn of the wheel to a program that listens to the mouse."""
        self._mouse("SCROLLUP", event)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Send a turn of the wheel to a program that listens to the mouse."""
        self._mouse("SCROLLDOWN", event)

    def _mouse(self, name: str, event: events.MouseEvent) -> None:
        place = event.get_content_offset(self)
        if not self.typing or place is None or place.y < 1 or self.screen_shown is None:
            return
        frame = self.screen_shown.frame
        x, y = place.x + self._left, place.y - 1 + self._top
        data = encoded_mouse(name, x, y, self._key_modes()) if x < frame.cols and y < frame.rows else b""
        if data:
            event.stop()
            self.post_message(self.Typed(data))

    def _key_modes(self) -> KeyModes:
        if self.screen_shown is None:
            return KeyModes()
        modes = self.screen_shown.frame.modes
        return KeyModes(
            modes.application_cursor, modes.application_keypad, modes.mouse, modes.mouse_encoding, modes.keyboard
        )


def _with_cursor(made: Strip, x: int) -> Strip:
    """Return a row with the cell of the cursor reversed."""
    width = made.cell_length
    under = made.crop(x, x + 1) if x < width else Strip([Segment(" ")])
    cell = [Segment(part.text, (part.style or Style()) + Style(reverse=True)) for part in under]
    return Strip([*made.crop(0, x), *cell, *made.crop(x + 1, width)])
