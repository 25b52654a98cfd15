"""Support for tests of blockpty and of programs that use it: recordings, scripted terminals, a manual clock.

Nothing here starts a process or reads a clock. `replayed` makes a conversation of a recording, for the test of an agent
that takes one.
"""

from __future__ import annotations

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
from blockpty.testing.replayed import Diverged, ReplayedConversation, replayed

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
