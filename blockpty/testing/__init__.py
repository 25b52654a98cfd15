"""Support for tests of blockpty and of programs that use it: recordings, scripted terminals, a manual clock.

`replayed` makes a conversation of a recording, for the test of an agent that takes one; nothing of that starts a
process or reads a clock. `blockpty.testing.plugin` is a plugin of pytest that gives a test a real shell. Names are
looked up at first use: the plugin is loaded in every run of pytest, and most of them have no use for it.

Words: docs/reference/glossary.md.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from blockpty.testing.recordings import (
        Derived,
        FakePty,
        ManualClock,
        Recording,
        derive,
        events_of,
        every_split,
        state_of,
        wait_on,
    )
    from blockpty.testing.replaying import Diverged, ReplayedConversation, replayed

__all__ = [
    "Derived",
    "Diverged",
    "FakePty",
    "ManualClock",
    "Recording",
    "ReplayedConversation",
    "derive",
    "events_of",
    "every_split",
    "replayed",
    "state_of",
    "wait_on",
]

_REPLAYED = ("Diverged", "ReplayedConversation", "replayed")


if not TYPE_CHECKING:  # a type checker that saw this function would accept any name

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = "replaying" if name in _REPLAYED else "recordings"
        value: object = getattr(import_module(f"blockpty.testing.{module}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
