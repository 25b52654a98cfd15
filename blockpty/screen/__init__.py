"""The terminal emulator: the screen that a stream of bytes draws. Pure: no input or output, no clock.

Words: docs/reference/glossary.md.
"""

from __future__ import annotations

from blockpty.screen.emulator import Emulator
from blockpty.screen.lazy import LazyScreen
from blockpty.screen.protocol import Cursor, EmulatedScreen, Frame, Line, Modes, Run
from blockpty.screen.snapshot import Snapshot

__all__ = ["Cursor", "EmulatedScreen", "Emulator", "Frame", "LazyScreen", "Line", "Modes", "Run", "Snapshot"]
