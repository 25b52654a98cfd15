"""Contexts: what a terminal uses of its recorder, and what the parts of a terminal use of it.

The recorder owns its terminals, and a terminal its parts. They see the owner through these protocols only, so that
imports point one way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from blockpty.host.loop import Loop
from blockpty.host.protocol import Channel
from blockpty.host.record import StorageFailed, Stream, Timeline
from blockpty.host.state import ShellHandle


class RecorderContext(Protocol):
    """Context of a terminal, from the recorder.

    Attributes:
        slots: shared memory with a slot for each shell.
        splice: whether bytes can be moved by splice().
    """

    loop: Loop
    slots: Any
    splice: bool

    def grew(self, conversation: str, count: int) -> None:
        """Stream and timeline of a conversation have grown, the stream by `count` bytes."""

    def tell_keeper(self, shell: ShellHandle) -> None:
        """Send the keeper what has changed in a handle."""

    def finished(self, shell: ShellHandle) -> None:
        """The last entry of a shell's terminal is written."""


class TerminalContext(Protocol):
    """Context of the parts of a terminal, from it: its input, its silence, its durability, its times without space."""

    stream: Stream
    timeline: Timeline

    @property
    def recorder(self) -> RecorderContext: ...
    @property
    def shell(self) -> ShellHandle: ...
    @property
    def failed(self) -> StorageFailed | None:
        """Why nothing is moved now; None when all is well."""

    @property
    def hung(self) -> bool:
        """Whether no process has the terminal open."""

    @property
    def ended(self) -> bool:
        """Whether the last entry is written."""

    @property
    def shell_pid(self) -> int:
        """The shell's own process."""

    def move(self, budget: int = ..., *, whole: bool = ...) -> None:
        """Move what is there to the stream."""

    def write(self, kind: str, fields: dict[str, Any] | None = ..., ts: int | None = ...) -> None:
        """Write an entry at the present end of the stream; raises StorageFailed."""

    def check_storage(self) -> None:
        """Refuse while the files cannot grow."""

    def not_synced(self, failure: StorageFailed) -> None:
        """Move nothing until the files can be synced."""

    def update_interest(self) -> None:
        """Watch the terminal for what it is to be asked for now."""

    def state(self) -> dict[str, Any]:
        """Which process has the terminal and how it reads, at this moment."""

    def at_editor(self) -> bool:
        """Whether the shell has the terminal, in another mode than line mode."""

    def foreground(self) -> int | None:
        """The process group that has the terminal."""

    def foreground_runs(self) -> bool:
        """Whether a process of the foreground, or the shell, is not asleep; False where that is unknown."""

    def depth(self, state: Mapping[str, Any]) -> int | None:
        """How deep in its stack the shell waits for a key."""

    def reader(self, *, patient: bool) -> int | None:
        """A process of the foreground that waits for input from this terminal, or None."""

    def has_jobs(self) -> bool:
        """Whether the shell has children, as its jobs are; False where that is unknown."""

    def shell_works(self) -> bool:
        """Whether the shell computes or waits for a child of its own process group; False where that is unknown."""

    def replaced(self) -> bool | None:
        """Return whether another program has taken the shell's place; None when that cannot be known."""

    def modes(self) -> tuple[bool, bool]:
        """(canonical, echo)."""

    def stops(self, data: bytes) -> bool:
        """Whether these are only keys of which the terminal makes signals."""


class ConnectedClient:
    """One connection, and the notification descriptors that came over it, by conversation."""

    __slots__ = ("subscriptions", "channel")

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.subscriptions: dict[str, int] = {}
