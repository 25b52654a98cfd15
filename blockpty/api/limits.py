"""Limits of the numbers in requests; the operations' request models have the same bounds, and a test compares them."""

from __future__ import annotations

import math
from typing import Final

from blockpty.errors import BadRequest

HOUR_MS: Final = 3_600_000

# Lines above a screen that can be asked for by default.
SCROLLBACK: Final = 1000

# Bytes of what a wait looked at that its result shows, of their end.
SHOWN_BYTES: Final = 8192

# Bytes of a file that is moved by one call.
MOST_FILE: Final = 64 * 1024 * 1024

BOUNDS: Final[dict[str, tuple[int, int]]] = {
    "cols": (1, 1000),
    "rows": (1, 1000),
    "timeout_ms": (0, HOUR_MS),
    "grace_ms": (0, 60_000),
    "max_bytes": (1, 64 * 1024 * 1024),
    "context": (0, 1000),
    "page": (0, 2**31),
    "page_size": (1, 1000),
    "from_line": (0, 2**53),
    "buckets": (1, 5000),
    "before_seq": (0, 2**53),
    "after_seq": (0, 2**53),
    "scrollback": (0, 100_000),
    "first_line": (-100_000, 1000),
    "last_line": (-100_000, 1000),
}


def check(name: str, value: object) -> None:
    """Raise BadRequest when a number is none or out of its bounds."""
    low, high = BOUNDS[name]
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise BadRequest(f"{name} must be {low} to {high}, not {value!r}")


def milliseconds(timeout: object, timeout_ms: int) -> int:
    """Return a timeout in ms: `timeout`, in seconds, where it is given, else `timeout_ms`; raises BadRequest."""
    if timeout is None:
        return timeout_ms
    if not isinstance(timeout, int | float) or isinstance(timeout, bool) or not 0 <= timeout <= HOUR_MS / 1000:
        raise BadRequest(f"timeout must be 0 to {HOUR_MS // 1000} seconds, not {timeout!r}")
    return math.ceil(timeout * 1000)
