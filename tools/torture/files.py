"""Damage to the files of a finished conversation: cut at each byte, sectors of zeros, single bits.

What the files must hold afterwards is computed here from the undamaged lines alone. Nothing may raise; no whole line of
the timeline before or behind the damage may be lost, and the bytes that are reported as damaged must be those that are;
what is derived comes back whole at the next start.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path

import orjson

from blockpty.host.record import Timeline
from blockpty.model.entries import DAMAGED, Entry
from blockpty.spool.checkpoint import FORMAT_VERSION, replace
from blockpty.spool.timeline import TimelineReader
from blockpty.testing import Derived, FakePty, Recording
from tests.spool import disk
from tools.torture.report import Row

SECTOR = 512
TRUTH = "timeline.jsonl"
DERIVED = ("events.jsonl", "blocks.jsonl", "checkpoint.json")
# Of the `.out` files, the last ones: one that is open, and one that a loss of power may have reached.
OUTPUTS = 2


def conversation(kib: int) -> Recording:
    """Return a record whose smaller files are about that large, ending with an open block."""
    pty = FakePty()
    pty.spawn()
    pty.prompt()
    number = 0
    while len(pty.recording.entries) * 90 < kib * 1024:
        number += 1
        pty.run(f"show {number}", b"line %d\r\n" % number * (1 + number % 7))
        pty.silence()
    pty.submit("sleep 9")
    pty.begin()
    pty.output(b"half a line")
    pty.silence()
    return pty.recording


class Damage:
    """A conversation that is damaged and looked at, again and again."""

    def __init__(self, place: Path, kib: int) -> None:
        self.recording = conversation(kib)
        self.layout = disk.store(self.recording, place / "c1")
        replace(self.layout.meta, {"format": FORMAT_VERSION})
        self.clean = disk.clean(self.recording)
        # An engine that was killed: after one that has closed its files nobody asks again whether they are whole.
        if asyncio.run(disk.recover(self.layout, killed=True)) != self.clean:
            raise SystemExit("the undamaged conversation is not derived as it should be")
        outputs = sorted(self.clean.outputs, key=lambda name: int(name.split("/")[1].split("_")[0]))
        self.names = (TRUTH, *DERIVED, *outputs[-OUTPUTS:])
        self.whole = {name: self._path(name).read_bytes() for name in self.names}

    def _path(self, name: str) -> Path:
        return self.layout.directory / name

    def put(self, name: str, content: bytes) -> None:
        """Have everything as it was, but this file."""
        for other in self.layout.outputs.iterdir():
            if other.name not in {Path(out).name for out in self.clean.outputs}:
                other.unlink()
        for other_name, whole in self.whole.items():
            self._path(other_name).write_bytes(content if other_name == name else whole)

    def recover(self) -> Derived:
        """Be the next engine."""
        return asyncio.run(disk.recover(self.layout))

    def left(self, content: bytes) -> tuple[list[bytes], list[Entry]]:
        """Return the lines of the damaged timeline that are whole, and the record that they are, damage included."""
        known = {*self.whole[TRUTH].splitlines(keepends=True)}
        lines: list[bytes] = []
        entries: list[Entry] = []
        at = begin = 0
        for line in content.splitlines(keepends=True):
            zeros = len(line) - len(line.lstrip(b"\0"))
            if line[zeros:] in known:
                entry = Entry.from_dict(orjson.loads(line[zeros:]))
                if begin < at + zeros:
                    entries.append(Entry(entry.offset, entry.ts, DAMAGED, {"bytes": [begin, at + zeros]}))
                lines.append(line[zeros:])
                entries.append(entry)
                begin = at + len(line)
            at += len(line)
        return lines, entries

    def look(self, name: str, content: bytes) -> str | None:
        """Damage the file, look at everything, and return what is wrong."""
        self.put(name, content)
        try:
            return self._timeline(content) if name == TRUTH else self._derived(name)
        except Exception:  # noqa: BLE001 - nothing may raise, whatever it is
            return traceback.format_exc(limit=-3).replace("\n", " ")

    def _timeline(self, content: bytes) -> str | None:
        lines, entries = self.left(content)
        reader = TimelineReader(self.layout.timeline)
        read = [entry for entry, _ in reader.read_new()]
        reader.close()
        if read != entries:
            return f"{len(read)} entries are read, {len(entries)} are there, damage included"
        expected, found = disk.clean(Recording(self.recording.stream, entries)), self.recover()
        if (found.events, found.blocks) not in (
            (expected.events, expected.blocks), (self.clean.events, self.clean.blocks),
        ):  # fmt: skip
            return "what is derived is neither what it was nor what the whole entries say"
        self.layout.checkpoint.unlink(missing_ok=True)
        found = self.recover()
        if (found.events, found.blocks) != (expected.events, expected.blocks):
            return "what is derived is not what the whole entries say"
        # The recorder goes on behind the damage.
        timeline = Timeline(str(self.layout.directory))
        timeline.write(len(self.recording.stream), "note", {"note": {"type": "torture"}})
        timeline.close()
        reader = TimelineReader(self.layout.timeline)
        after = [entry for entry, _ in reader.read_new() if entry.kind != DAMAGED]
        reader.close()
        if [entry for entry in entries if entry.kind != DAMAGED] != after[:-1] or after[-1].kind != "note":
            return "an undamaged entry is gone after the recorder went on"
        return None if len(after) == len(lines) + 1 else "entries have come that nobody wrote"

    def _derived(self, name: str) -> str | None:
        return None if self.recover() == self.clean else f"{name} or what belongs to it was not derived again"


def _try(damage: Damage, row: Row, name: str, place: str, content: bytes) -> None:
    row.tries += 1
    problem = damage.look(name, content)
    if problem is not None:
        row.wrong.append(f"{name} {place}: {problem}")


def damage(tail: int, flips: int) -> Iterator[Row]:
    """Cut the last `tail` bytes of each file one by one, zero each sector, flip single bits."""
    with tempfile.TemporaryDirectory(prefix="torture") as place:
        damaged = Damage(Path(place), max(1, tail // 1024))
        for name in damaged.names:
            yield _cuts(damaged, name, tail)
            yield _zeros(damaged, name)
            yield _flips(damaged, name, flips)


def _cuts(damaged: Damage, name: str, tail: int) -> Row:
    whole = damaged.whole[name]
    span = min(len(whole), tail)
    row = Row(f"{name} cut at every byte of its last {span:,}")
    for end in range(len(whole) - span, len(whole)):
        _try(damaged, row, name, f"cut at {end}", whole[:end])
    return row


def _zeros(damaged: Damage, name: str) -> Row:
    whole = damaged.whole[name]
    row = Row(f"{name}, a sector of {SECTOR} zeros")
    for begin in range(0, len(whole), SECTOR):
        end = min(begin + SECTOR, len(whole))
        _try(damaged, row, name, f"zeros at {begin}", whole[:begin] + b"\0" * (end - begin) + whole[end:])
    return row


def _flips(damaged: Damage, name: str, flips: int) -> Row:
    whole = damaged.whole[name]
    row = Row(f"{name}, one bit flipped")
    for _ in range(flips):
        at, bit = random.randrange(len(whole)), random.randrange(8)
        changed = bytearray(whole)
        changed[at] ^= 1 << bit
        _try(damaged, row, name, f"bit {bit} of {at}", bytes(changed))
    return row
