"""Events become files: the same bytes whatever was written before, wherever it is resumed, and when space runs out."""

from __future__ import annotations

import itertools
import json
import os
import stat
from pathlib import Path
from typing import Any

import orjson
import pytest

from blockpty.engine.machine import Machine
from blockpty.engine.machine_state import MachineState
from blockpty.errors import SpoolCorrupt, StorageFull
from blockpty.model.events import Event
from blockpty.spool.journal import Journal, OutputFile
from blockpty.spool.layout import Layout
from blockpty.spool.masking import Mask
from blockpty.spool.sink import FileSink
from blockpty.spool.stream import StreamReader
from blockpty.testing import Recording, every_split
from tests.support import disk

RECORDING = disk.conversation()
CLEAN = disk.clean(RECORDING)


class Desk:
    """A journal that writes to a conversation's directory, and everything that has to be closed with it."""

    def __init__(self, layout: Layout, snapshot: dict[str, Any] | None = None) -> None:
        self.stream = StreamReader(layout.stream)
        saved = None if snapshot is None else json.loads(json.dumps(snapshot))
        self.sink = FileSink(layout, marks=saved and saved["files"])
        self.journal = Journal(disk.NAME, self.stream, self.sink, Mask())
        if saved is not None:
            self.journal.restore(saved["journal"])

    def snapshot(self) -> dict[str, Any]:
        return {"journal": self.journal.snapshot(), "files": self.sink.marks()}

    def take(self, events: list[Event], machine: Machine, spawned: bool) -> None:
        if spawned:
            self.journal.mask.add(machine.state.current.nonce)
        self.journal.append(events)

    def close(self) -> None:
        self.sink.close()
        self.stream.close()


def test_the_files_are_those_of_a_clean_derivation(tmp_path: Path) -> None:
    layout = disk.store(RECORDING, tmp_path / "c1")
    desk = Desk(layout)
    for events, machine, entry in disk.steps(RECORDING):
        desk.take(events, machine, entry is not None and entry.kind == "spawn")
    assert (desk.sink.events.mark.last, desk.sink.blocks.mark.last) == (CLEAN.events.count(b"\n") - 1, 3)
    assert desk.sink.sizes() == (len(CLEAN.events), len(CLEAN.blocks))
    desk.close()
    assert disk.derived_files(layout) == CLEAN
    for path in (layout.events, layout.blocks, *layout.outputs.iterdir()):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0
    assert not list(layout.directory.glob("*.torn"))


def test_what_the_files_say() -> None:
    """The sample holds what it is meant to hold; otherwise the tests of this file would prove little."""
    events = [orjson.loads(line) for line in CLEAN.events.splitlines()]
    blocks = [orjson.loads(line) for line in CLEAN.blocks.splitlines()]
    assert [event["seq"] for event in events] == list(range(len(events)))
    assert [block["seq"] for block in blocks] == [1, 2, 3]
    assert [block["kind"] for block in blocks] == ["command", "command", "session"]
    shown = {int(name.split("/")[1].split("_")[0]): data for name, data in CLEAN.outputs.items()}
    assert shown[1] == b"one\n"
    assert shown[2] == b"caf\xc3\xa9 \xff \x1b[31mred\x1b[0m\nn=" + b"*" * 22 + b";\n\r\nlast"
    assert shown[3] == b"name? x\n"
    assert shown[4] == b"half a line\nand ", "what may be the beginning of the nonce is not written yet"
    for block in blocks:
        assert CLEAN.outputs[block["out_path"]] == shown[block["seq"]]
        assert block["out_bytes"] == len(shown[block["seq"]])
    ends = [event["block"] for event in events if event["type"] == "agent_block_end"]
    assert ends == blocks
    for nonce in disk.NONCES:
        assert nonce.encode() not in CLEAN.events + CLEAN.blocks + b"".join(CLEAN.outputs.values())


@pytest.mark.parametrize("behind", [False, True], ids=["files_end_there", "files_are_ahead"])
def test_resumed_after_any_event(tmp_path: Path, behind: bool) -> None:
    """A checkpoint may be taken anywhere; the files are as far as it, or further when the engine was killed later."""
    found = disk.steps(RECORDING)
    for stop in range(len(found) + 1):
        layout = disk.store(RECORDING, tmp_path / "c1")
        first = Desk(layout)
        snapshot, state = first.snapshot(), MachineState().to_dict()
        for number, (events, machine, entry) in enumerate(found):
            if number >= stop and not behind:
                break
            first.take(events, machine, entry is not None and entry.kind == "spawn")
            if number < stop:
                snapshot, state = first.snapshot(), machine.snapshot().to_dict()
        first.close()
        second = Desk(layout, snapshot)
        resumed = MachineState.from_dict(json.loads(json.dumps(state)))
        assert resumed == (found[stop - 1][1].snapshot() if stop else MachineState())
        for events, machine, entry in found[stop:]:
            second.take(events, machine, entry is not None and entry.kind == "spawn")
        second.close()
        assert disk.derived_files(layout) == CLEAN, f"resumed after step {stop}"


def test_events_one_at_a_time_or_all_at_once(tmp_path: Path) -> None:
    found = disk.steps(RECORDING)
    layout = disk.store(RECORDING, tmp_path / "c1")
    desk = Desk(layout)
    desk.journal.mask = Mask(disk.NONCES)
    desk.journal.append([event for events, _, _ in found for event in events])
    desk.close()
    assert disk.derived_files(layout) == CLEAN
    layout = disk.store(RECORDING, tmp_path / "c2")
    desk = Desk(layout)
    desk.journal.mask = Mask(disk.NONCES)
    for events, _, _ in found:
        for event in events:
            desk.journal.append([event])
            assert not desk.journal.pending
    desk.close()
    assert disk.derived_files(layout) == CLEAN


@pytest.mark.parametrize("budget", [0, 1, 7, 100, 1000])
def test_space_runs_out_and_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budget: int) -> None:
    """Every write that is short or refused is made up for; no line is ever on disk in part."""
    layout = disk.store(RECORDING, tmp_path / "c1")
    desk = Desk(layout)
    write, pwrite, left = os.write, os.pwrite, [budget]

    def take(data: Any) -> memoryview:
        if not left[0]:
            raise OSError(28, "No space left on device")
        piece = memoryview(data)[: left[0]]
        left[0] -= len(piece)
        return piece

    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, take(data)))
    monkeypatch.setattr(os, "pwrite", lambda descriptor, data, at: pwrite(descriptor, take(data), at))
    refusals = 0
    for events, machine, entry in disk.steps(RECORDING):
        try:
            desk.take(events, machine, entry is not None and entry.kind == "spawn")
        except StorageFull:
            refusals += 1
            for path in (layout.events, layout.blocks):
                assert path.read_bytes().endswith(b"\n") or not path.stat().st_size
            if refusals % 2:
                continue  # what comes next finds the rest waiting
            left[0] = 100_000
            desk.journal.append([])
            assert not desk.journal.pending
            left[0] = budget
    left[0] = 100_000
    desk.journal.append([])
    desk.close()
    assert refusals
    assert disk.derived_files(layout) == CLEAN


def test_output_at_every_split() -> None:
    data = b"\r\n\r\r\na\rb\n\r\n\n\rc\r"
    for cuts in every_split(data, pairs=100):
        places = [0, *(cut for cut in cuts if 0 < cut < len(data)), len(data)]
        output = OutputFile("blocks/1_0.out")
        shown = b"".join(output.take(data[a:b], Mask()) for a, b in itertools.pairwise(places))
        assert shown + output.take(b"", Mask(), last=True) == b"\n\r\na\rb\n\n\n\rc\r"


def test_only_cr_lf_changes_in_an_output() -> None:
    for size in range(6):
        for letters in itertools.product((b"a", b"\r", b"\n", b"\x85", b"\xff"), repeat=size):
            data = b"".join(letters)
            output = OutputFile("blocks/1_0.out")
            shown = output.take(data, Mask()) + output.take(b"", Mask(), last=True)
            assert shown == data.replace(b"\r\n", b"\n")


def test_links_are_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    for name in ("events.jsonl", "blocks.jsonl", "blocks/1_5.out"):
        layout = disk.store(Recording(), tmp_path / "c1")
        victim.write_bytes(b"precious\n")
        (layout.directory / name).symlink_to(victim)
        with pytest.raises(SpoolCorrupt):
            FileSink(layout).out("blocks/1_5.out", 0, b"x")
        assert victim.read_bytes() == b"precious\n"
