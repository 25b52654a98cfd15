"""The last line of the program: the keys that apply now, and what they do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual.widget import Widget

if TYPE_CHECKING:
    from textual.events import Click
    from textual.screen import Screen

    from blockpty.surfaces.view.theme import Colours


class KeyLine(Widget, can_focus=False):
    """Shows each action that has a key now, once; a click on one is as good as its key.

    Textual's Footer has a widget for each key. Composing and styling them took a fifth of the program's start time, and
    was repeated whenever a key was added or removed.
    """

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    KeyLine { height: 1; background: $surface; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._colours: Colours | None = None
        # Where each is on the line, and its key.
        self._places: list[tuple[range, str]] = []

    def on_mount(self) -> None:
        """Follow the keys."""
        self.screen.bindings_updated_signal.subscribe(self, self._changed)

    def _changed(self, screen: Screen[None]) -> None:
        self.refresh()

    def recolour(self, colours: Colours) -> None:
        """Take the colours of a theme."""
        self._colours = colours
        self.refresh()

    def render(self) -> Text:
        """Return the line."""
        line, seen = Text(no_wrap=True), set()
        self._places = []
        if self._colours is None:
            return line
        for _, binding, enabled, _ in self.screen.active_bindings.values():
            if not binding.show or binding.action in seen:
                continue
            seen.add(binding.action)
            begin = len(line)
            line.append(self.app.get_key_display(binding), f"bold {self._colours.wait}{'' if enabled else ' dim'}")
            line.append(f" {binding.description} ", self._colours.muted)
            self._places.append((range(begin, len(line) - 1), binding.key))
        return line

    def on_click(self, event: Click) -> None:
        """Take a click for the key under it."""
        for place, key in self._places:
            if event.x in place:
                self.app.simulate_key(key)
