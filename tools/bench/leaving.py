"""Redacted output: finding secrets, replay, exports; and the import of a recording."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path

from bench.report import Row, Run, median
from bench.streams import PIECE, log
from blockpty import Engine
from blockpty.redact.redaction import find_shown

AIM = 100.0
STYLES = ("cast", "jsonl", "text", "markdown", "html")
AIMED = ("replay", "import")
SHOWN = "nothing redacted"
READ = 1024 * 1024
NOTE = (
    "leaving: processor time of the process, all threads; the log is one output of an imported recording; beside: the"
    " same with redact=False, for redaction a count of the line ends"
)


def measure(run: Run) -> list[Row]:
    """Measure with both kinds of log, redacted and not in turn."""
    return [row for kind in ("plain", "coloured") for row in _of(run, kind)]


def _of(run: Run, kind: str) -> list[Row]:
    data = log(run.count(16, 1) * 1024 * 1024, coloured=kind == "coloured").replace(b"\n", b"\r\n")
    recording = run.place / f"{kind}.cast"
    _save(recording, data)
    pieces = [data[at : at + READ] for at in range(0, len(data), READ)]
    figures: dict[str, list[float]] = {}
    beside: dict[str, list[float]] = {}

    def note(into: dict[str, list[float]], what: str, seconds: float) -> None:
        into.setdefault(what, []).append(len(data) / max(seconds, 1e-6) / 1e6)

    for number in range(run.pairs(3)):
        note(figures, "redaction", _taken(lambda: [find_shown(piece, more=True) for piece in pieces]))
        note(beside, "redaction", _taken(lambda: [piece.count(b"\n") for piece in pieces]))
        for redact, into in ((True, figures), (False, beside)):
            home = run.place / f"{kind}-{number}-{redact}"
            for what, seconds in asyncio.run(_engine(home, recording, redact)):
                note(into, what, seconds)
    return [_row(kind, what, rates, beside[what]) for what, rates in figures.items()]


def _row(kind: str, what: str, rates: list[float], bare: list[float]) -> Row:
    aimed, value = what in AIMED, median(rates)
    against = "a count of line ends" if what == "redaction" else SHOWN
    return Row(
        "leaving", f"{what}, {kind} log", value, "MB/s", against, median(bare), value / median(bare), "value / beside",
        f">= {AIM:.0f} MB/s" if aimed else None, value >= AIM if aimed else None, min(rates), max(rates), NOTE,
    )  # fmt: skip


async def _engine(home: Path, recording: Path, redact: bool) -> list[tuple[str, float]]:
    taken = []
    async with Engine(home, redact=redact) as engine:
        begin = time.process_time()
        result = await engine.import_recording(recording)
        taken.append(("import", time.process_time() - begin))
        conversation = await engine.conversation(result.conversation_id)
        begin = time.process_time()
        async for _ in conversation.replay(speed=0):
            pass
        taken.append(("replay", time.process_time() - begin))
        for style in STYLES:
            begin = time.process_time()
            await conversation.export(style)
            taken.append((f"export {style}", time.process_time() - begin))
    return taken


def _taken(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


def _save(path: Path, data: bytes) -> None:
    """Write a log as an asciicast, a moment every few pieces."""
    with path.open("w") as file:
        file.write(json.dumps({"version": 2, "width": 80, "height": 24, "timestamp": 1_700_000_000}) + "\n")
        for number, at in enumerate(range(0, len(data), 2 * PIECE)):
            file.write(json.dumps([number / 500, "o", data[at : at + 2 * PIECE].decode()]) + "\n")
