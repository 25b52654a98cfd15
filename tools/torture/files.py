"""Damage to the files of a finished conversation: cut at each byte, sectors of zeros, single bits.

What the files must hold afterwards is computed here from the undamaged lines alone. Nothing may raise, and no whole
line before or behind the damage may be lost; what is derived comes back whole when stream and timeline are whole.
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
from blockpty.model.entries import Entry
from blockpty.spool.lines import iterate_lines
from blockpty.spool.timeline import TimelineReader
from blockpty.testing import Derived, FakePty, Recording
from tests.spool import disk
from tools.torture.report import Row

SECTOR = 512
TRUTH = "timeline.jsonl"
DERIVED = ("events.jsonl", "blocks.jsonl", "checkpoint.json")


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
        self.clean = disk.clean(self.recording)
        if asyncio.run(disk.recover(self.layout)) != self.clean:
            raise SystemExit("the undamaged conversation is not derived as it should be")
        self.whole = {name: self._path(name).read_bytes() for name in (TRUTH, *DERIVED)}

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

    def untouched(self, name: str, content: bytes) -> list[bytes]:
        """Return the whole lines of the damaged content that are lines of the undamaged file, in order."""
        known = {*self.whole[name].splitlines(keepends=True)}
        return [line for line in content.splitlines(keepends=True) if line in known]

    def look(self, name: str, content: bytes, *, cut: bool) -> str | None:
        """Damage the file, look at everything, and return what is wrong."""
        self.put(name, content)
        try:
            return self._timeline(content) if name == TRUTH else self._derived(name, content, cut=cut)
        except Exception:  # noqa: BLE001 - nothing may raise, whatever it is
            return traceback.format_exc(limit=-3).replace("\n", " ")

    def _timeline(self, content: bytes) -> str | None:
        wanted = self.untouched(TRUTH, content)
        reader = TimelineReader(self.layout.timeline)
        read = [orjson.dumps(entry.to_dict()) + b"\n" for entry, _ in reader.read_new()]
        reader.close()
        missing = [line for line in wanted if line not in {*read}]
        if missing:
            return f"an undamaged entry cannot be read: {missing[0]!r}"
        self.recover()
        if content == b"".join(wanted) or self.whole[TRUTH].startswith(content):
            left = Recording(self.recording.stream, [Entry.from_dict(orjson.loads(line)) for line in wanted])
            expected, found = disk.clean(left), self.recover()
            if (found.events, found.blocks) != (expected.events, expected.blocks):
                return "what is derived is not what the whole entries say"
        # The recorder goes on behind the damage.
        timeline = Timeline(str(self.layout.directory))
        timeline.write(len(self.recording.stream), "note", {"note": {"type": "torture"}})
        timeline.close()
        after = list(self.layout.timeline.read_bytes().splitlines(keepends=True))
        if [line for line in after if line in {*wanted}] != wanted:
            return "an undamaged entry is gone after the recorder went on"
        if orjson.loads(after[-1])["kind"] != "note":
            return "what the recorder wrote then cannot be read"
        return None

    def _derived(self, name: str, content: bytes, *, cut: bool) -> str | None:
        found = self.recover()
        if (cut or name == "checkpoint.json") and found != self.clean:
            return f"{name} or what belongs to it was not derived again"
        if name != "checkpoint.json":
            lines = [*iterate_lines(self._path(name))]
            missing = [line for line in self.untouched(name, content) if orjson.loads(line) not in lines]
            if missing:
                return f"an undamaged line cannot be read: {missing[0][:80]!r}"
        # And whatever it was, stream and timeline give it back.
        self.layout.checkpoint.unlink(missing_ok=True)
        return None if self.recover() == self.clean else f"{name} does not come back from stream and timeline"


def _try(damage: Damage, row: Row, name: str, place: str, content: bytes, *, cut: bool = False) -> None:
    row.tries += 1
    problem = damage.look(name, content, cut=cut)
    if problem is not None:
        row.wrong.append(f"{name} {place}: {problem}")


def damage(tail: int, flips: int) -> Iterator[Row]:
    """Cut the last `tail` bytes of each file one by one, zero each sector, flip single bits."""
    with tempfile.TemporaryDirectory(prefix="torture") as place:
        damaged = Damage(Path(place), max(1, tail // 1024))
        for name in (TRUTH, *DERIVED):
            yield _cuts(damaged, name, tail)
            yield _zeros(damaged, name)
            yield _flips(damaged, name, flips)


def _cuts(damaged: Damage, name: str, tail: int) -> Row:
    whole = damaged.whole[name]
    span = min(len(whole), tail)
    row = Row(f"{name} cut at every byte of its last {span:,}")
    for end in range(len(whole) - span, len(whole)):
        _try(damaged, row, name, f"cut at {end}", whole[:end], cut=True)
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
