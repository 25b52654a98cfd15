"""What kinds of operations there are."""

from __future__ import annotations

from enum import Enum


class Effect(Enum):
    """What an operation does to the shell."""

    READ = "read"
    """Nothing."""
    INPUT = "input"
    """Something reaches the programs in the terminal: bytes, a size, a signal."""
    LIFECYCLE = "lifecycle"
    """A shell or an interactive session begins or ends."""


class Shape(Enum):
    """What comes back."""

    CALL = "call"
    """One result."""
    STREAM = "stream"
    """Events, one after another."""
