"""What has no files: scanner, machine, screens, redaction."""

from __future__ import annotations

import itertools
import json
import random
import tempfile
from collections.abc import Callable
from pathlib import Path

import orjson

from blockpty.engine.machine import Machine
from blockpty.model.entries import ENTRY_KINDS
from blockpty.redact.redaction import find_shown, redact_output
from blockpty.runtime.redactor import Redactor
from blockpty.screen import fastforward
from blockpty.screen.emulator import Emulator
from blockpty.spool.masking import Mask
from blockpty.spool.stream import StreamReader
from blockpty.testing import FakePty, Recording, derive
from tests.engine.test_scanner import scanned
from tests.support.machines import steps_after, stops_of, through_json
from tests.support.secret_shapes import SHAPES
from tools.fuzz.material import NONCE, chunks, cuts, mark, output, piece

Case = Callable[[random.Random], None]


def scanner(chance: random.Random) -> None:
    """The same pieces for every cut, and all bytes are in them."""
    data = output(chance)
    assert scanned(data, cuts(chance, len(data))) == scanned(data)


def recording(chance: random.Random) -> Recording:
    """Return a record of anything that shells, programs, persons and attackers do."""
    pty = FakePty()
    pty.spawn(nonce=NONCE)
    for _ in range(chance.randrange(1, 40)):
        _act(chance, pty)
    made = pty.recording
    made.entries.sort(key=lambda entry: entry.offset)
    return made


def _act(chance: random.Random, pty: FakePty) -> None:
    kind = chance.randrange(14)
    if kind < 4:
        pty.output(piece(chance))
    elif kind < 8:
        chance.choice([pty.begin, pty.end, pty.prompt, lambda: pty.submit("x"), lambda: pty.submit("y", "session")])()
    elif kind == 8:
        pty.output(pty.mark(chance.choice(["PROMPT", "OUT_END", "PS2", "CWD"]), x=0, d="/tmp"))
    elif kind == 9:
        icanon, echo = chance.random() < 0.5, chance.random() < 0.5
        pty.silence(icanon=icanon, echo=echo, foreground=chance.choice(["shell", "child"]))
    elif kind == 10:
        pty.type(chance.choice([b"x\r", b"ls\r", b"\x03"]), echo=chance.random() < 0.5)
    elif kind == 11:
        stream = pty.recording.stream
        pty.output(stream[chance.randrange(len(stream) + 1) :][:4000])
    elif kind == 12:
        pty.output(mark(chance))
    else:
        fields = {chance.choice(["cols", "rows", "ms", "note", "status", "data", "submit"]): _json(chance, 2)}
        pty.entry(chance.choice(sorted(ENTRY_KINDS)), **fields)


def _json(chance: random.Random, depth: int) -> object:
    kind = chance.randrange(7 if depth else 5)
    if kind == 5:
        return [_json(chance, depth - 1) for _ in range(chance.randrange(3))]
    if kind == 6:
        names = ["type", "seen", "wait_id", "a"]
        return {chance.choice(names): _json(chance, depth - 1) for _ in range(chance.randrange(3))}
    return [None, chance.random() < 0.5, chance.choice([0, -1, 7, 2**40]), 0.5, chance.choice(["", "x", "owner"])][kind]


def machine(chance: random.Random) -> None:
    """The same files for every cut, in order, without the nonce; and a snapshot goes on as if nothing had happened."""
    made = recording(chance)
    expected, places = derive(made), cuts(chance, len(made.stream))
    assert derive(made, places) == expected
    events = [orjson.loads(line) for line in expected.events.splitlines()]
    assert [event["seq"] for event in events] == list(range(len(events)))
    assert all(0 <= event["cursor"] <= len(made.stream) for event in events)
    spans = [orjson.loads(line)["span"] for line in expected.blocks.splitlines()]
    assert all(begin <= end for begin, end in spans)
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))
    for data in (expected.events, expected.blocks, *expected.outputs.values()):
        assert NONCE.encode() not in data
    stops, events_after = stops_of(made, places)
    stop = chance.choice(stops)
    restored, later = Machine(through_json(stop.state)), []
    for step in steps_after(made, stop):
        later += (restored.feed(step) if isinstance(step, bytes) else restored.apply(step))[0]
    assert later == events_after[stop.events :]


def screen(chance: random.Random) -> None:
    """The same picture for every cut, by fast-forward as well, and from a checkpoint; each row as wide as it."""
    size = chance.randrange(1, 60), chance.randrange(1, 20)
    parts: list[bytes | tuple[int, int]] = []
    for _ in range(chance.randrange(1, 4)):
        parts += [output(chance), (chance.randrange(1, 60), chance.randrange(1, 20))]
    whole, cut, fast = Emulator(*size), Emulator(*size), Emulator(*size)
    for part in parts:
        if isinstance(part, tuple):
            for one in (whole, cut, fast):
                one.resize(*part)
            continue
        whole.feed(part)
        fastforward.feed(fast, part)
        for chunk in chunks(part, cuts(chance, len(part))):
            cut.feed(chunk)
            if chance.random() < 0.02:
                cut = Emulator.restore(json.loads(json.dumps(cut.dump())))
    picture = whole.frame()
    assert cut.frame() == picture
    assert fast.frame() == picture
    assert len(picture.lines) == picture.rows
    assert all(sum(run.width for run in line.runs) == picture.cols for line in picture.lines)
    assert 0 <= picture.cursor.x < picture.cols
    assert 0 <= picture.cursor.y < picture.rows


def redaction(chance: random.Random) -> None:
    """Lengths stay, ranges as well, and no secret of a known shape is left."""
    data = output(chance)
    shown = redact_output(data)
    assert len(shown) == len(data)
    cut = chance.randrange(len(data) + 1)
    begun = find_shown(data[:cut], more=True)
    assert 0 <= begun.settled <= cut
    shape = chance.choice(SHAPES)
    text = shape.text.encode()
    around = b"before\r\n" + text + b"\r\nafter\r\n"
    for secret in [line for line in shape.secret.encode().replace(b"\\n", b"\n").split(b"\n") if len(line) > 3]:
        assert secret not in redact_output(around)
    _ranges(chance, data + b"\r\n" + around)


def _ranges(chance: random.Random, data: bytes) -> None:
    with tempfile.TemporaryDirectory(prefix="fuzz") as place:
        (Path(place) / f"{0:020d}").write_bytes(data)
        stream, redactor = StreamReader(Path(place)), Redactor(Mask([NONCE]))
        try:
            whole = redactor.read(stream, 0, len(data))
            assert len(whole) == len(data)
            assert NONCE.encode() not in whole
            at = 0
            for end in [*cuts(chance, len(data))[:50], len(data)]:
                assert len(redactor.read(stream, at, end - at)) == end - at
                at = end
        finally:
            stream.close()
