"""The screen of a record depends on the record alone: not on who looked before, or from where it was drawn."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from blockpty.runtime.record_reader import Position
from blockpty.runtime.screens import Point, ScreenReader, fingerprint
from blockpty.screen import snapshot
from blockpty.spool.layout import Layout
from tests.support.profile import some_of

# Updates that begin, end, begin twice and are never ended, between text, other modes and a full reset.
PIECES = (
    b"\x1b[?2026h", b"\x1b[?2026h", b"\x1b[?2026l", b"one", b"two\r\n", b"\x1b[H", b"\x1b[2J", b"\x1b[?1049h",
    b"\x1b[?1049l", b"\x1bc", b"\x1b[?25l", b"\x1b[!p", b"\x1b[31mred\x1b[m", b"\x1b[?20", b"26h",
)  # fmt: skip
ENTRIES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("silence", {}), ("silence", {}), ("silence", {}), ("tick", {}), ("tick", {}), ("resize", {"cols": 30, "rows": 5}),
    ("resize", {"cols": 20, "rows": 4}), ("spawn", {"cols": 20, "rows": 4}),
)  # fmt: skip


def record(layout: Layout, seed: int) -> tuple[bytes, list[Position]]:
    """Write a timeline; return the stream that goes with it, and the place after each of its entries."""
    chance = random.Random(seed)
    stream, lines, places = b"", [json.dumps({"offset": 0, "ts": 0, "kind": "spawn", "cols": 20, "rows": 4})], []
    for _ in range(25):
        stream += b"".join(chance.choices(PIECES, k=chance.randrange(4)))
        kind, fields = chance.choice(ENTRIES)
        lines.append(json.dumps({"offset": len(stream), "ts": 0, "kind": kind, **fields}))
        places.append(Position(len(stream), len("\n".join(lines)) + 1))
    layout.timeline.write_text("\n".join(lines) + "\n")
    return stream, places


@pytest.mark.parametrize("seed", some_of(range(150)))
def test_it_is_the_same_however_it_was_read_before(tmp_path: Path, seed: int) -> None:
    layout = Layout(tmp_path)
    stream, places = record(layout, seed)

    def reader(start: Point | None = None) -> ScreenReader:
        return ScreenReader(layout, lambda begin, end: stream[begin:end], start)

    def seen(one: ScreenReader, place: Position) -> tuple[str, str, int]:
        shown = one.bring(place).snapshot()
        return snapshot.text(shown.frame), fingerprint(shown), shown.seqno

    watching, chance = reader(), random.Random(seed)
    start: Point | None = None
    for place in places:
        often = seen(watching, place)
        once, resumed = reader(), reader(start)
        assert seen(once, place) == often, "drawn at one go"
        assert seen(resumed, place) == often, "drawn on from a checkpoint"
        if chance.random() < 0.3:
            start = Point(watching.position, watching.screen.dump())
        once.close()
        resumed.close()
    watching.close()
