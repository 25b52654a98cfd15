"""Progress in words: percent, bytes and rate, the same in the command line and for a client of MCP. Pure."""

from __future__ import annotations

from typing import Final

from blockpty.api.progress import Progress

REPORTING: Final = frozenset(
    {"search", "overview", "export", "import_recording", "verify", "repair", "put_file", "get_file"}
)
"""Operations that say how many bytes of how many they have done."""


def size(count: int) -> str:
    """Return a number of bytes in the unit that fits."""
    if count < 1000:
        return f"{count} B"
    if count < 1_000_000:
        return f"{count / 1000:.0f} kB"
    return f"{count / 1_000_000:.1f} MB" if count < 1_000_000_000 else f"{count / 1_000_000_000:.2f} GB"


def amount(progress: Progress) -> str:
    """Return how much is done, "" before it began; it is never said to be all before it has ended."""
    if not progress.what:
        return ""
    done, total = progress.done, progress.total
    if not total:
        return size(done)
    return f"{min(99, 100 * done // total)} %, {size(min(done, total))} of {size(total)}"


def in_words(progress: Progress, seconds: float) -> str:
    """Return the same with the rate, for a call that has taken so many seconds."""
    shown = amount(progress)
    return f"{shown}, {size(round(progress.done / seconds))}/s" if shown and seconds > 0 else shown
