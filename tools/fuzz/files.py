"""Readers of files that may be damaged: timeline, journal, checkpoint, stream; and the next start."""

from __future__ import annotations

import asyncio
import random
import tempfile
from pathlib import Path

from blockpty.errors import SpoolError
from blockpty.model.entries import DAMAGED, Entry
from blockpty.runtime.follower import RecordFollower
from blockpty.spool.checkpoint import load_checkpoint, load_meta
from blockpty.spool.line_reader import LineReader, iterate_lines, last_line
from blockpty.spool.stream import StreamReader
from blockpty.spool.timeline import TimelineReader
from tests.support import disk
from tools.fuzz.material import damaged, output
from tools.torture.files import TRUTH, Damage

_made: dict[str, Damage] = {}


def _record() -> Damage:
    """Return a conversation to damage; made once."""
    if "one" not in _made:
        _made["one"] = Damage(Path(tempfile.mkdtemp(prefix="fuzz")), 2)
    return _made["one"]


def readers(chance: random.Random) -> None:
    """Whatever stands in a file, its reader returns what is sound, raises nothing, and comes to an end."""
    record = _record()
    name = chance.choice(record.names)
    record.put(name, damaged(chance, record.whole[name]))
    layout = record.layout
    whole = [entry for entry in _entries(record) if entry.kind != DAMAGED]
    known = set(record.whole[TRUTH].splitlines())
    lines = layout.timeline.read_bytes().split(b"\n")[:-1]
    assert len(whole) >= sum(line.lstrip(b"\0") in known for line in lines)
    for path in (layout.events, layout.blocks):
        reader = LineReader(path)
        read = reader.read_new()
        reader.close()
        assert [line for line, _ in read] == list(iterate_lines(path))
        line, position = last_line(path)
        assert (line is None) == (position == 0)
    load_checkpoint(layout.checkpoint)
    try:
        load_meta(layout.meta)
    except SpoolError:
        pass
    _stream(chance)


def _entries(record: Damage) -> list[Entry]:
    reader = TimelineReader(record.layout.timeline)
    try:
        return [entry for entry, _ in reader.read_new()]
    finally:
        reader.close()


def _stream(chance: random.Random) -> None:
    """A stream in segments is one file."""
    data = output(chance)
    with tempfile.TemporaryDirectory(prefix="fuzz") as place:
        at = 0
        while at < len(data) or at == 0:
            size = chance.randrange(1, 400)
            (Path(place) / f"{at:020d}").write_bytes(data[at : at + size])
            at += size
        stream = StreamReader(Path(place))
        try:
            assert stream.size() == len(data)
            for _ in range(10):
                begin, length = chance.randrange(len(data) + 1), chance.randrange(len(data) + 1)
                assert stream.read(begin, length) == data[begin : begin + length]
        finally:
            stream.close()


def recovery(chance: random.Random) -> None:
    """The next start after damage: nothing raises, no sound entry is lost, what is derived is repaired."""
    record = _record()
    name = chance.choice(record.names)
    content = damaged(chance, record.whole[name])
    if name == TRUTH:
        # Whole lines that were copied are sound, and no disk does that; several files at once are for the next part.
        copied = content.split(b"\n")
        content = b"\n".join(line for at, line in enumerate(copied) if line not in copied[:at] or not line)
    problem = record.look(name, content)
    assert problem is None, f"{name}: {problem}"
    for other in chance.sample(record.names, 2):
        (record.layout.directory / other).write_bytes(damaged(chance, record.whole[other]))
    first = asyncio.run(disk.recover(record.layout))
    assert asyncio.run(disk.recover(record.layout)) == first, "recovery is not idempotent"
    asyncio.run(_follow(record))


async def _follow(record: Damage) -> None:
    live = RecordFollower("c1", record.layout, owner=False)
    try:
        await live.drain()
    finally:
        live.close()
