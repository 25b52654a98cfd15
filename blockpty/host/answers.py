"""What the host's answers look like to the engine: small frozen records. Data only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Hello:
    """Who answers; `orphans` shells outlived a killed keeper, their exit status will be null."""

    protocol: int
    version: str
    recorder: int
    keeper: int
    transport: Literal["splice", "read"]
    orphans: int


@dataclass(frozen=True, slots=True)
class Sizes:
    """How long stream and timeline were, in bytes, when the entry had been written."""

    offset: int
    timeline: int


@dataclass(frozen=True, slots=True)
class Opened(Sizes):
    pid: int


@dataclass(frozen=True, slots=True)
class Subscribed(Sizes):
    live: bool
    pid: int | None
    persist: bool


@dataclass(frozen=True, slots=True)
class Typed(Sizes):
    """`offset` is the stream's size at the input entry; `accepted` bytes went in before the deadline."""

    accepted: int


@dataclass(frozen=True, slots=True)
class Closed(Sizes):
    """`outside`: pid, command and whether it was ended, of each process that had left the session."""

    status: int | None
    signal: str | None
    outside: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Inspected(Sizes):
    """One moment of a terminal; everything but the sizes and `storage` is None when it is not live.

    `unread`: bytes that were typed and not read, None where unknown (not Linux). `program`: name of what the shell's
    own process runs now. `programs`: those of the processes of the foreground, the leader first and parents before
    children; only when asked. `stopped`: the shell or the foreground program is stopped. `storage`: why nothing can be
    recorded now, or None.
    """

    live: bool
    pid: int | None = None
    icanon: bool | None = None
    echo: bool | None = None
    foreground: Literal["shell", "child"] | None = None
    foreground_pid: int | None = None
    foreground_name: str | None = None
    foreground_copy: bool | None = None
    replaced: bool | None = None
    reads: bool | None = None
    unread: int | None = None
    cols: int | None = None
    rows: int | None = None
    stopped: bool | None = None
    storage: str | None = None
    persist: bool | None = None
    program: str | None = None
    programs: list[str] | None = None


@dataclass(frozen=True, slots=True)
class Listed(Sizes):
    conversation: str
    pid: int
    persist: bool
