"""Rows of numbers: printed, and written to docs/durability.md."""

from __future__ import annotations

import os
import platform
import textwrap
import time
from dataclasses import dataclass, field
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
PAGE = TOP / "docs" / "durability.md"


@dataclass
class Row:
    """One thing that was tried `tries` times; `found` holds what came out, `wrong` what must not have.

    `late`: what took longer than promised. That is wrong as well, but not in a short run, which tests make on machines
    with other work.
    """

    what: str
    tries: int = 0
    found: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)

    def line(self) -> str:
        """Return the row of a table."""
        return f"| {self.what} | {self.tries:,} | {self._found()} | {self._verdict()} |"

    def item(self) -> str:
        """Return the row as an item of a list, for the page."""
        times = "once" if self.tries == 1 else f"{self.tries:,} times"
        text = "; ".join(filter(None, (f"* **{self.what}**, {times}: {self._verdict()}", self._found())))
        return textwrap.fill(text, 118, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)

    def _found(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.found.items())

    def _verdict(self) -> str:
        return "ok" if not self.wrong else f"**{len(self.wrong)} wrong**: {self.wrong[0]}"


def machine() -> str:
    """Say what the numbers were measured on."""
    return (
        f"{platform.system()} {platform.release()}, {os.cpu_count()} cores ({platform.machine()}), "
        f"Python {platform.python_version()}, {time.strftime('%Y-%m-%d', time.gmtime())}"
    )


def write(name: str, rows: list[Row]) -> None:
    """Put the rows where the page says that the numbers of this sub-command go."""
    begin, end = f"<!-- torture {name} -->", f"<!-- end {name} -->"
    text = PAGE.read_text("utf-8")
    items = "\n".join(row.item() for row in rows)
    before, found, rest = text.partition(begin)
    if not found or end not in rest:
        raise SystemExit(f"{PAGE.relative_to(TOP)} has no place for {name}")
    after = rest.partition(end)[2]
    PAGE.write_text(f"{before}{begin}\n{items}\n\nMeasured on {machine()}.\n{end}{after}", "utf-8")


def percentile(values: list[float], share: float) -> str:
    """Return a percentile of seconds, in milliseconds."""
    ordered = sorted(values)
    return f"{ordered[min(len(ordered) - 1, int(len(ordered) * share))] * 1000:.1f} ms"
