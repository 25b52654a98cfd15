"""Numbers, times and states in words, as the page writes them. Pure."""

from __future__ import annotations

import time
from typing import Final, Literal, Protocol

from blockpty.surfaces.cli.render import duration as duration
from blockpty.surfaces.progress_text import size as size

Sign = Literal["ok", "fail", "run", "stop", "unknown"]
SIGNS: Final = {"ok": "✓", "fail": "✗", "run": "◌", "stop": "■", "unknown": "?"}


class HowEnded(Protocol):
    """Protocol of how a block ended: its record, or the summary of it in a list."""

    @property
    def state(self) -> str: ...
    @property
    def exit_status(self) -> int | None: ...
    @property
    def signal(self) -> str | None: ...


def sign(block: HowEnded) -> Sign:
    """Return which of the signs a block has."""
    if block.state == "running":
        return "run"
    if block.state in ("interrupted", "cancelled", "stopped"):
        return "stop"
    if block.exit_status is None:
        return "unknown"
    return "ok" if block.exit_status == 0 else "fail"


def ending(block: HowEnded) -> str:
    """Return how a block ended, "" when that was well, or it runs."""
    if block.state == "running":
        return ""
    if block.state in ("stopped", "cancelled"):
        return block.state
    if block.state == "interrupted" or block.signal == "SIGINT":
        return "interrupted"
    if block.signal:
        return f"killed ({block.signal})"
    if block.exit_status is None:
        return "unknown"
    return "" if block.exit_status == 0 else f"exit {block.exit_status}"


def age(ms: int) -> str:
    """Return how long ago something was, in few characters."""
    seconds = max(0, ms // 1000)
    if seconds < 2:
        return "now"
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} m"
    return f"{seconds // 3600} h" if seconds < 86_400 else f"{seconds // 86_400} d"


def clock(ts: int) -> str:
    """Return the local time of day."""
    return time.strftime("%H:%M:%S", time.localtime(ts / 1000))


def lines(count: int) -> str:
    """Return a number of lines in words."""
    return "1 line" if count == 1 else f"{count:,} lines"


def author(name: str) -> str:
    """Return the letter of an author: A for the agent, Y for you."""
    return {"agent": "A", "user": "Y", "engine": "E"}.get(name, name[:1].upper())
