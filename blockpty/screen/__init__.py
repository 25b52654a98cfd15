"""The terminal emulator: the screen that a stream of bytes draws. Pure: no input or output, no clock.

The names are looked up at first use: an engine looks for questions to the terminal in each output, and most of the
time nothing is drawn.

Words: docs/reference/glossary.md.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from blockpty.screen.emulator import Emulator
    from blockpty.screen.lazy import LazyScreen
    from blockpty.screen.protocol import Cursor, EmulatedScreen, Frame, Line, Modes, Run
    from blockpty.screen.snapshot import Snapshot

__all__ = ["Cursor", "EmulatedScreen", "Emulator", "Frame", "LazyScreen", "Line", "Modes", "Run", "Snapshot"]

_MODULES = {"Emulator": "emulator", "LazyScreen": "lazy", "Snapshot": "snapshot"}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES.get(name, 'protocol')}"), name)
