"""Log start: where a record begins whose first part is not kept (`begin.json`), and the removal of what lies before.

Rules of this file: the file is written, and durable, before anything is removed; from then on every reader starts
there, so it does not matter how much of what lies before is still there. Removing can be interrupted and done again.
Positions in files stay what they were: segments of the stream go whole, other files keep their length and lose the
blocks at their beginning (a hole, where the file system can make one).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Self

import orjson
from msgspec import Struct

from blockpty.errors import SpoolCorrupt, SpoolError
from blockpty.files.holes import punch
from blockpty.files.lines import is_sound
from blockpty.files.segments import is_segment_name, segment_name
from blockpty.files.sync import sync_directory
from blockpty.spool import checkpoint
from blockpty.spool.layout import Layout
from blockpty.spool.storage import open_file, read_file

# A program that knows nothing of beginnings would take the holes for damage: it refuses this format.
CUT_VERSION: Final = checkpoint.CUT_VERSION
BEGINNING: Final = "begin.json"


class LogStart(Struct, frozen=True):
    """A place from which everything can be derived.

    Attributes:
        offset, timeline: in the stream and in the timeline, in bytes.
        needed: first offset of which something is still to be derived: what has no delta yet.
        readable: first offset that is shown: no line, and so no secret, that was cut lies behind it.
        state: the machine's there.
        journal: how far the derivation had come, as `Journal.restore` takes it.
        files: events and blocks: how long the journals were there, and the number of their last line.
        screen: what was shown there, as a screen takes it; None when that is not known.
    """

    offset: int
    timeline: int
    needed: int
    readable: int
    state: Mapping[str, Any]
    journal: Mapping[str, Any]
    files: Mapping[str, Any]
    screen: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Self:
        """Read what `to_dict` gave; raises KeyError, TypeError or ValueError."""
        return cls(
            int(record["offset"]), int(record["timeline"]), int(record["needed"]), int(record["readable"]),
            dict(record["state"]), dict(record["journal"]), dict(record["files"]), record["screen"],
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "format": CUT_VERSION, "offset": self.offset, "timeline": self.timeline, "needed": self.needed,
            "readable": self.readable, "state": self.state, "journal": self.journal, "files": self.files,
            "screen": self.screen,
        }  # fmt: skip

    def marks(self) -> dict[str, Any]:
        """Return how far the derived files had come, as `FileSink` takes it; nothing before is vouched for."""
        output = self.journal["output"]
        return {
            **{name: [size, 0, last, size] for name, (size, last) in self.files.items()},
            "open": [output[0], output[1], 0, -1, output[1]] if output is not None else None,
            "outs": [],
        }

    def first_block(self) -> int:
        """Return the number of the first block that had not ended."""
        still_open = [self.state[name]["seq"] for name in ("block", "background") if self.state[name] is not None]
        return int(min([self.state["next_block"], *still_open]))


def load_log_start(directory: Path) -> LogStart | None:
    """Return where a conversation's record begins; None for one that is whole. Raises SpoolCorrupt."""
    path = directory / BEGINNING
    try:
        content = read_file(path)
    except FileNotFoundError:
        return None
    with contextlib.suppress(orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        if is_sound(content.rstrip(b"\n")):
            return LogStart.of(orjson.loads(content))
    raise SpoolCorrupt(f"{path} is damaged", hint="restore begin.json; stream and timeline are kept as they are")


def set_log_start(layout: Layout, beginning: LogStart) -> None:
    """Let a record begin there; durable when this returns. Raises OSError, SpoolError."""
    meta = checkpoint.load_meta(layout.meta)
    if meta["format"] < CUT_VERSION:
        checkpoint.replace(layout.meta, {**meta, "format": CUT_VERSION}, durable=True)
    checkpoint.replace(layout.directory / BEGINNING, beginning.to_dict(), durable=True)
    # The new names are durable before anything is removed there.
    sync_directory(layout.directory)


def sweep(layout: Layout, beginning: LogStart) -> None:
    """Remove what lies before the beginning; what cannot be removed now stays until the next time."""
    bases = sorted(int(name) for name in _names(layout.stream) if is_segment_name(name))
    for base, after in pairwise(bases):
        if after <= beginning.needed:
            _remove(layout.stream / segment_name(base))
    first = beginning.first_block()
    for directory in (layout.outputs, layout.commands):
        for name in _names(directory):
            number = name.partition("_")[0]
            if number.isdigit() and int(number) < first:
                _remove(directory / name)
    for name in _names(layout.points):
        offset, _, timeline = name.removesuffix(".json").partition("-")
        if offset.isdigit() and timeline.isdigit() and (int(offset), int(timeline)) <= (
            beginning.offset, beginning.timeline
        ):  # fmt: skip
            _remove(layout.points / name)
    # The line feed before the place stays: it says that a line begins there.
    _punch(layout.timeline, beginning.timeline - 1)
    _punch(layout.events, beginning.files["events"][0])
    _punch(layout.blocks, beginning.files["blocks"][0])
    if beginning.journal["output"] is not None:
        _punch(layout.directory / beginning.journal["output"][0], beginning.journal["output"][1])


def _names(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def _punch(path: Path, end: int) -> None:
    if end <= 0:
        return
    with contextlib.suppress(OSError, SpoolError):
        descriptor = open_file(path, os.O_RDWR)
        try:
            if os.fstat(descriptor).st_size >= end:
                punch(descriptor, end)
        finally:
            os.close(descriptor)
