"""Screens: what a terminal would show of a stream of bytes. Pure: no input or output, no clock."""

from __future__ import annotations

from blockpty.screen.emulator import Emulator
from blockpty.screen.lazy import LazyScreen, Snapshot
from blockpty.screen.protocol import Cursor, Frame, Line, Modes, Run, Screen

__all__ = ["Cursor", "Emulator", "Frame", "LazyScreen", "Line", "Modes", "Run", "Screen", "Snapshot"]
