"""A crash at any byte: what the next engine leaves on disk is what a clean derivation gives.

Stream and timeline are the truth; everything else may be short, torn or gone. The order in which an engine writes
(`.out`, events, blocks, checkpoint) means that after its own death a checkpoint is never ahead of the files. After a
loss of power it can be, because nothing is synced; then it must not be trusted.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from blockpty.spool.layout import Layout
from blockpty.testing import Recording
from tests.support import disk
from tests.support.async_tests import async_test
from tests.support.profile import LONG

# Within its lines a file is cut at every byte only in a long run; where they end it always is. Without a checkpoint all
# is derived again, which takes longer.
STEP = 1 if LONG else 31
STEP_BEHIND = 1 if LONG else 11
RECORDING = disk.conversation()
CLEAN = disk.clean(RECORDING)
DERIVED = ("events.jsonl", "blocks.jsonl", *sorted(CLEAN.outputs))


async def finished(directory: Path) -> Layout:
    """Return a conversation that an engine has followed to the end and left in order."""
    layout = disk.store(RECORDING, directory)
    assert await disk.recover(layout) == CLEAN
    assert layout.checkpoint.exists()
    return layout


def without_checkpoint(layout: Layout) -> None:
    layout.checkpoint.unlink()


async def early_checkpoint(layout: Layout) -> None:
    """Leave the checkpoint that an engine had written when two blocks were over."""
    copy = layout.directory.with_name("early")
    offset = json.loads(CLEAN.blocks.splitlines()[1])["span"][1] + 200
    entries = [entry for entry in RECORDING.entries if entry.offset <= offset]
    await disk.recover(disk.store(Recording(RECORDING.stream[:offset], entries), copy))
    shutil.copy(copy / "checkpoint.json", layout.checkpoint)


def cut(layout: Layout, name: str, end: int) -> None:
    path = layout.directory / name
    path.write_bytes(path.read_bytes()[:end])


def near(content: bytes) -> set[int]:
    """Return the ends of lines, the whole and nothing, and what is one byte beside."""
    borders = [0, len(content), *(place + 1 for place, byte in enumerate(content) if byte == 0x0A)]
    return {border + more for border in borders for more in (-1, 0, 1) if 0 <= border + more <= len(content)}


@pytest.mark.parametrize("name", DERIVED)
@async_test(timeout_seconds=110)
async def test_cut_at_every_byte_without_a_checkpoint(tmp_path: Path, name: str) -> None:
    layout = await finished(tmp_path / "c1")
    content = (layout.directory / name).read_bytes()
    for end in sorted({*range(0, len(content), STEP if len(content) > 100 else 1), *near(content)}, reverse=True):
        without_checkpoint(layout)
        cut(layout, name, end)
        assert await disk.recover(layout) == CLEAN, f"{name} cut at {end}"


@pytest.mark.parametrize("name", DERIVED)
@async_test(timeout_seconds=110)
async def test_cut_at_every_byte_behind_a_checkpoint(tmp_path: Path, name: str) -> None:
    """The engine was killed: the files are at least as far as its last checkpoint."""
    layout = await finished(tmp_path / "c1")
    await early_checkpoint(layout)
    checkpoint = layout.checkpoint.read_bytes()
    early = tmp_path / "early" / name
    least = early.stat().st_size if early.exists() else 0
    content = (layout.directory / name).read_bytes()
    ends = {*range(least, len(content), STEP_BEHIND if len(content) > 100 else 1), *near(content)}
    for end in sorted((end for end in ends if end >= least), reverse=True):
        layout.checkpoint.write_bytes(checkpoint)
        cut(layout, name, end)
        assert await disk.recover(layout) == CLEAN, f"{name} cut at {end}"


@pytest.mark.parametrize("name", [name for name in DERIVED if name.endswith(".jsonl")])
@async_test(timeout_seconds=110)
async def test_cut_before_a_checkpoint(tmp_path: Path, name: str) -> None:
    """Power was lost: the checkpoint speaks of lines that are not there."""
    layout = await finished(tmp_path / "c1")
    checkpoint = layout.checkpoint.read_bytes()
    content = (layout.directory / name).read_bytes()
    for end in sorted({*range(0, len(content), 29), *near(content)}, reverse=True):
        layout.checkpoint.write_bytes(checkpoint)
        cut(layout, name, end)
        assert await disk.recover(layout) == CLEAN, f"{name} cut at {end}"


@async_test(timeout_seconds=110)
async def test_the_open_output_cut_before_a_checkpoint(tmp_path: Path) -> None:
    layout = await finished(tmp_path / "c1")
    checkpoint = layout.checkpoint.read_bytes()
    name = DERIVED[-1]
    for end in range((layout.directory / name).stat().st_size, -1, -1):
        layout.checkpoint.write_bytes(checkpoint)
        cut(layout, name, end)
        assert await disk.recover(layout) == CLEAN, f"{name} cut at {end}"


@async_test
async def test_everything_derived_is_gone(tmp_path: Path) -> None:
    layout = await finished(tmp_path / "c1")
    without_checkpoint(layout)
    for name in DERIVED:
        (layout.directory / name).unlink()
    assert await disk.recover(layout) == CLEAN


@pytest.mark.parametrize("name", ["events.jsonl", "blocks.jsonl", DERIVED[-1]])
@async_test
async def test_one_file_is_gone_and_the_checkpoint_is_not(tmp_path: Path, name: str) -> None:
    layout = await finished(tmp_path / "c1")
    (layout.directory / name).unlink()
    assert await disk.recover(layout) == CLEAN


@pytest.mark.parametrize("name", sorted(CLEAN.outputs)[:-1])
@async_test
async def test_a_finished_output_comes_back_without_the_checkpoint(tmp_path: Path, name: str) -> None:
    """No start checks the outputs of finished blocks; verify does, and this is then the way to repair them."""
    layout = await finished(tmp_path / "c1")
    (layout.directory / name).write_bytes(b"something else, and longer than what was there")
    without_checkpoint(layout)
    assert await disk.recover(layout) == CLEAN


@pytest.mark.parametrize("eighths", range(8))
@async_test
async def test_the_truth_is_shorter_than_the_checkpoint_says(tmp_path: Path, eighths: int) -> None:
    """Power was lost, and the ends of stream and timeline with it. What is left of them is the truth now."""
    layout = await finished(tmp_path / "c1")
    place = len(RECORDING.stream) * eighths // 8
    left = Recording(RECORDING.stream[:place], [entry for entry in RECORDING.entries if entry.offset <= place])
    left.save(layout.directory)
    found, expected = await disk.recover(layout), disk.clean(left)
    assert (found.events, found.blocks) == (expected.events, expected.blocks)
    # Outputs that follow from nothing any more are set aside; the open one is cut to its length when its block ends.
    assert found.outputs.keys() == expected.outputs.keys()
    for output, data in expected.outputs.items():
        assert found.outputs[output].startswith(data)
    RECORDING.save(layout.directory)
    assert await disk.recover(layout) == CLEAN, "and what comes then is read on"


def _edit(change: Callable[[dict[str, Any]], object]) -> Callable[[bytes], bytes]:
    def edit(content: bytes) -> bytes:
        record = json.loads(content)
        change(record)
        return json.dumps(record).encode()

    return edit


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: b"\0" * len(content),
        lambda content: content[: len(content) // 2],
        lambda content: b"null",
        lambda content: b"[]",
        _edit(lambda record: record.update(format=2)),
        _edit(lambda record: record.pop("points")),
        _edit(lambda record: record.update(points=[])),
        _edit(lambda record: record.update(points=None)),
        _edit(lambda record: record.update(points=[{}])),
        _edit(lambda record: record.pop("journal")),
        _edit(lambda record: record.update(journal=None)),
        _edit(lambda record: record.update(journal={})),
        _edit(lambda record: record["journal"].update(output=["blocks/1_0.out"])),
        _edit(lambda record: record["points"][-1].update(timeline=7)),
        _edit(lambda record: record["points"][-1]["state"].update(shell="nowhere")),
        _edit(lambda record: record["points"][-1]["state"].pop("nonce")),
        _edit(lambda record: record["points"][-1]["state"].update(inputs=[[1, 2]])),
        _edit(lambda record: record["points"][-1]["state"].update(block={})),
        _edit(lambda record: record["points"][-1]["state"].update(block=[])),
    ],
    ids=lambda damage: None,
)
@async_test
async def test_a_checkpoint_that_cannot_be_used_is_not_used(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    """Also by an engine of another version, whose state has other fields."""
    layout = await finished(tmp_path / "c1")
    layout.checkpoint.write_bytes(damage(layout.checkpoint.read_bytes()))
    assert await disk.recover(layout) == CLEAN
    assert await disk.recover(layout) == CLEAN


@async_test
async def test_a_checkpoint_at_every_place(tmp_path: Path) -> None:
    """The record grows entry by entry, and another engine takes it up each time."""
    places = sorted({entry.offset for entry in RECORDING.entries} | set(range(0, len(RECORDING.stream), 37)))
    directory = tmp_path / "c1"
    layout = Layout(directory)
    for place in places:
        recording = Recording(RECORDING.stream[:place], [entry for entry in RECORDING.entries if entry.offset <= place])
        recording.save(directory)
        layout.outputs.mkdir(exist_ok=True)
        assert await disk.recover(layout) == disk.clean(recording), f"at {place}"
    RECORDING.save(directory)
    assert await disk.recover(layout) == CLEAN


@async_test
async def test_damage_in_the_middle_of_the_timeline_is_the_same_for_everybody(tmp_path: Path) -> None:
    """A damaged entry is passed over, and that is then the record: live, after a restart and on replay alike."""
    layout = disk.store(RECORDING, tmp_path / "c1")
    lines = layout.timeline.read_bytes().splitlines(keepends=True)
    damaged = next(number for number, line in enumerate(lines) if b'"cmd":"show"' in line)
    lines[damaged] = b"\0" * (len(lines[damaged]) - 1) + b"\n"
    layout.timeline.write_bytes(b"".join(lines))
    expected = disk.clean(Recording.load(layout.directory))
    assert expected != CLEAN
    assert await disk.recover(layout) == expected
    without_checkpoint(layout)
    assert await disk.recover(layout) == expected
