"""Damage to the files of a finished conversation: cut at each byte, sectors of zeros, single bits.

What the files must hold afterwards is computed here from the undamaged lines alone. Nothing may raise; no whole line of
the timeline before or behind the damage may be lost, and the bytes that are reported as damaged must be those that are;
of a stream that was cut all before the cut is read as before; what is derived comes back whole at the next start.
"""

from __future__ import annotations

import asyncio
import os
import random
import tempfile
import traceback
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import orjson

from blockpty.host.record import Timeline
from blockpty.model.entries import DAMAGED, Entry
from blockpty.spool.checkpoint import FORMAT_VERSION, replace
from blockpty.spool.timeline import TimelineReader
from blockpty.testing import Derived, FakePty, Recording
from tests.support import disk
from tools.torture.report import Row

SECTOR = 512
TRUTH = "timeline.jsonl"
STREAM = "stream/00000000000000000000"
DERIVED = ("events.jsonl", "blocks.jsonl", "checkpoint.json")
# Of the `.out` files, the last ones: one that is open, and one that a loss of power may have reached.
OUTPUTS = 2


# Lengths of the commands, in turn: short lines, and such that many bytes are few lines. What a case costs grows with
# the lines, what it says does not.
COMMANDS = (60, 20_000)


def conversation(kib: int) -> Recording:
    """Return a record whose files are about that large, ending with an open block."""
    pty = FakePty()
    pty.spawn()
    pty.prompt()
    number = written = 0
    while written < kib * 1024:
        number += 1
        command = f"show {number}" + " -v" * (min(COMMANDS[number % len(COMMANDS)], kib * 320) // 3)
        written += len(command)
        pty.run(command, b"line %d\r\n" % number * (1 + number % 7))
        pty.silence()
    line = b"one of many\r\n\x1b[32mok\x1b[0m caf\xc3\xa9\r\n"
    pty.run("show all", line * (2 * kib * 1024 // len(line)))
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
        # An engine that was killed: after one that has closed its files none checks again whether they are whole.
        if self.recover(killed=True) != self.clean:
            raise SystemExit("the undamaged conversation is not derived as it should be")
        outputs = sorted(self.clean.outputs, key=lambda name: int(name.split("/")[1].split("_")[0]))
        self._derived_last: tuple[list[Entry], Derived] = ([], self.clean)
        self.names = (TRUTH, STREAM, *DERIVED, *outputs[-OUTPUTS:])
        self.whole = {name: self._path(name).read_bytes() for name in self.names}

    def _path(self, name: str) -> Path:
        return self.layout.directory / name

    def put(self, name: str, content: bytes) -> None:
        """Have everything as it was, but this file."""
        for other in os.listdir(self.layout.outputs):
            if f"blocks/{other}" not in self.clean.outputs:
                (self.layout.outputs / other).unlink()
        # What was set aside is not looked at here, and would grow to gigabytes.
        for aside in self.layout.directory.rglob("*.torn"):
            aside.unlink()
        for other, whole in self.whole.items():
            path, wanted = self._path(other), content if other == name else whole
            if not path.exists() or path.read_bytes() != wanted:
                path.write_bytes(wanted)

    def recover(self, *, killed: bool = False) -> Derived:
        """Be the next engine; `killed`: it does not get to its own end."""
        found: list[Derived] = []

        async def recover() -> None:
            # Not returned: asyncio.run would make a text of it.
            found.append(await disk.recover(self.layout, killed=killed))

        asyncio.run(recover())
        return found[0]

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

    def _derive(self, entries: list[Entry]) -> Derived:
        """Return what follows from these entries: the same as for the case before, where only the torn end differs."""
        if entries != self._derived_last[0]:
            self._derived_last = (entries, disk.clean(Recording(self.recording.stream, entries)))
        return self._derived_last[1]

    def look(self, name: str, content: bytes) -> str | None:
        """Damage the file, look at everything, and return what is wrong."""
        self.put(name, content)
        try:
            if name == STREAM:
                return self._stream(content)
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
        expected, found = self._derive(entries), self.recover()
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
        return None if len(after) == len(lines) + 1 else "entries have come that were not written"

    def _stream(self, content: bytes) -> str | None:
        entries = [entry for entry in self.recording.entries if entry.offset <= len(content)]
        expected, found = disk.clean(Recording(content, entries)), self.recover()
        stream = self.recording.stream
        if len(content) >= len(stream) and not content.startswith(stream):
            # Nothing tells that a byte is another one: what had been derived may stay until it is derived again.
            self.layout.checkpoint.unlink()
            found = self.recover()
        if (found.events, found.blocks) != (expected.events, expected.blocks):
            return "what is derived is not what the stream says as far as it goes"
        return None

    def _derived(self, name: str) -> str | None:
        return None if self.recover() == self.clean else f"{name} or what belongs to it was not derived again"


# One try: the file, what is done to it, where, and the bit of a flip.
Try = tuple[str, str, int, int]
CUT, ZEROS, FLIP = "cut", "zeros", "bit"
# So many tries are handed to a process at once.
HANDED = 256


def damage(tail: int, flips: int, processes: int) -> Iterator[Row]:
    """Cut the last `tail` bytes of each file one by one, zero each of its last sectors, flip `flips` bits in all."""
    chance = random.Random(512)
    with tempfile.TemporaryDirectory(prefix="torture", dir=_in_memory()) as place:
        made = Damage(Path(place) / "made", max(1, tail // 1024))
        sizes = {name: len(whole) for name, whole in made.whole.items()}
        whole = sum(sizes.values())
        with ProcessPoolExecutor(processes, get_context("fork"), _begin, (Path(place), max(1, tail // 1024))) as pool:
            for name, size in sizes.items():
                first = max(0, size - tail)
                share = max(1, round(flips * size / whole)) if size else 0
                yield _row(pool, f"{name} cut at every byte of its last {size - first:,}",
                           [(name, CUT, at, 0) for at in range(first, size)])  # fmt: skip
                yield _row(pool, f"{name}, a sector of {SECTOR} zeros",
                           [(name, ZEROS, at, 0) for at in range(size // SECTOR * SECTOR, first - SECTOR, -SECTOR)
                            if 0 <= at < size])  # fmt: skip
                flipped = [(name, FLIP, chance.randrange(size), chance.randrange(8)) for _ in range(share)]
                yield _row(pool, f"{name}, one bit flipped", flipped)


def _in_memory() -> str | None:
    """Return a directory that is no disk, where there is one: nothing here depends on what a disk keeps."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK | os.X_OK) else None


def _row(pool: ProcessPoolExecutor, what: str, tries: list[Try]) -> Row:
    row = Row(what, len(tries))
    for wrong in pool.map(_several, [tries[at : at + HANDED] for at in range(0, len(tries), HANDED)]):
        row.wrong += wrong
    return row


# In a process of the pool

_own: list[Damage] = []


def _begin(place: Path, kib: int) -> None:
    _own.append(Damage(place / str(os.getpid()), kib))


def _several(tries: list[Try]) -> list[str]:
    problems = [(one, _own[0].look(one[0], changed(_own[0].whole[one[0]], *one[1:]))) for one in tries]
    return [f"{name} {act} {at} {bit}: {problem}" for (name, act, at, bit), problem in problems if problem is not None]


def changed(whole: bytes, act: str, at: int, bit: int) -> bytes:
    """Return what is left of a file."""
    if act == CUT:
        return whole[:at]
    if act == ZEROS:
        return whole[:at] + bytes(len(whole[at : at + SECTOR])) + whole[at + SECTOR :]
    made = bytearray(whole)
    made[at] ^= 1 << bit
    return bytes(made)
