"""What a benchmark gives: rows, and how they are shown. Knows nothing of what is measured."""

from __future__ import annotations

import json
import math
import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Run:
    """How a benchmark is to be run.

    Attributes:
        place: an empty directory of its own.
        quick: as little as shows that it works.
        rounds: how often each comparison is made; None for the benchmark's own number.
        megabytes: size of what is made to be looked at; None for the benchmark's own size.
        kept: a directory for what takes long to make, which is not made again where it is there; None: nothing is kept.
    """

    place: Path
    quick: bool = False
    rounds: int | None = None
    megabytes: int | None = None
    kept: Path | None = None

    def count(self, usual: int, quick: int) -> int:
        """Return how often to do something, by the kind of run."""
        return quick if self.quick else usual

    def pairs(self, usual: int) -> int:
        """Return how many rounds to run."""
        return self.rounds or self.count(usual, 1)


@dataclass(frozen=True)
class Row:
    """One measured thing.

    Attributes:
        bench: name of the benchmark.
        what: what was measured.
        value, unit: the result.
        against: what it is compared with in the same run, and `against_value` its result in the same unit.
        ratio: how the two compare; `ratio_of` says which is divided by which.
        aim: what it should be, in words.
        met: whether it is; None where there is no aim.
        low, high: range of `value` over the rounds (or of the ratio, where the aim is about the ratio).
        note: anything to know about it, also why there is no result.
    """

    bench: str
    what: str
    value: float | None
    unit: str
    against: str | None = None
    against_value: float | None = None
    ratio: float | None = None
    ratio_of: str | None = None
    aim: str | None = None
    met: bool | None = None
    low: float | None = None
    high: float | None = None
    note: str | None = None


def skipped(bench: str, what: str, why: str) -> Row:
    """Return the row of something that cannot be measured here."""
    return Row(bench, what, None, "", note=f"skipped: {why}")


def percentile(samples: Sequence[float], percent: float) -> float:
    """Return the smallest sample that at least `percent` of them do not exceed."""
    ordered = sorted(samples)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def median(samples: Sequence[float]) -> float:
    """Return the median."""
    return statistics.median(samples)


def machine_line() -> str:
    """Say what this runs on and how busy it is."""
    model = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    load = " ".join(f"{value:.2f}" for value in os.getloadavg())
    return (
        f"{model}, {cores} cores, {platform.system()} {platform.release()}, "
        f"{platform.python_implementation()} {platform.python_version()}, load {load}"
    )


def table(rows: Sequence[Row]) -> str:
    """Return the rows as a table, with the notes below."""
    head = ["bench", "what", "value", "beside", "", "ratio", "range", "aim", ""]
    lines = [head]
    notes: list[str] = []
    for row in rows:
        mark = ""
        if row.note is not None:
            if row.note not in notes:
                notes.append(row.note)
            mark = f" [{notes.index(row.note) + 1}]"
        lines.append(
            [
                row.bench, row.what + mark, _number(row.value, row.unit), row.against or "",
                _number(row.against_value, row.unit), "" if row.ratio is None else f"{row.ratio:.2f}",
                "" if row.low is None or row.high is None else f"{row.low:.3g}..{row.high:.3g}",
                row.aim or "", {None: "", True: "met", False: "MISSED"}[row.met],
            ]
        )  # fmt: skip
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    right = (2, 4, 5)
    shown = [
        "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    shown.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(["", *shown, "", *(f"[{index}] {note}" for index, note in enumerate(notes, 1))])


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    return f"{value:.3f} {unit}" if value < 10 else f"{value:.1f} {unit}"


def write_json(path: Path, rows: Sequence[Row], machine: Sequence[str], *, quick: bool) -> None:
    """Write everything that the table shows."""
    lines = {"before": machine[0], "after": machine[-1]}
    record = {"machine": lines, "quick": quick, "rows": [asdict(row) for row in rows]}
    path.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
