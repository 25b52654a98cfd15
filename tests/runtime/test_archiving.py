"""Streams in an object store: they go whole, come back when they are read, and no crash in between loses a byte."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import blockpty
from blockpty.errors import ArchiveUnreachable, BadRequest, Busy, NotFound, SpoolCorrupt
from blockpty.spool import archived, checkpoint, objects
from blockpty.spool.layout import Layout
from blockpty.spool.log_start import LogStart
from blockpty.spool.stream import StreamReader
from tests.support.async_tests import async_test
from tests.support.homes import fill, recording

pytest.importorskip("obstore")


@pytest.fixture(autouse=True, scope="module")
def library() -> None:
    """Begin what the library keeps for the life of the process: no test has left that."""
    objects.opened("memory:///begin").delete("nothing")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a store that is the archive."""
    place = tmp_path / "store"
    monkeypatch.setenv("BLOCKPTY_ARCHIVE_URL", f"file://{place}")
    return place


def segments(layout: Layout) -> list[str]:
    return sorted(path.name for path in layout.stream.iterdir() if path.name.isdigit())


def stream_of(layout: Layout) -> bytes:
    reader = StreamReader(layout.stream)
    try:
        return reader.read(0, 1 << 30)
    finally:
        reader.close()


@pytest.mark.damages_files
@async_test
async def test_a_stream_goes_and_comes_back_when_it_is_read(home: Path, store: Path) -> None:
    recorded = recording(ended=True)
    layouts = await fill(home, ["a", "b"], recorded)
    async with blockpty.Engine(home) as engine:
        # It waits for the index, which needs the stream until it is whole.
        assert (await engine.overview()).total_blocks == 4
        before = (await engine.list()).conversations
        found = await engine.search("1", mode="substring")
        result = await engine.archive()
        assert result.archived == ["a", "b"] and result.freed_bytes > 0
        assert [segments(layout) for layout in layouts] == [[], []]
        # What needs no stream leaves it where it is.
        assert (await engine.list()).conversations == before
        assert (await engine.overview()).total_blocks == 4
        assert (await engine.archive()).archived == []
        assert [segments(layout) for layout in layouts] == [[], []]
        conversation = await engine.conversation("a")
        assert (await conversation.verify()).clean
        assert (await conversation.read(0, view="text")).data.endswith("/c/2\n1\n$ ")
        assert [len(segments(layout)) for layout in layouts] == [1, 0]
        assert stream_of(layouts[0]) == recorded.stream
        again = await engine.search("1", mode="substring")
        assert [hit.snippet for hit in again.hits] == [hit.snippet for hit in found.hits] and found.hits
        # A second time the stream is there already; of the timeline, which has grown, the old copy goes.
        stored = sorted(path.name for path in store.rglob("*") if path.is_file())
        assert (await engine.archive("a")).freed_bytes > 0 and segments(layouts[0]) == []
        assert sorted(path.name for path in store.rglob("*") if path.is_file()) == stored
        await (await engine.conversation("a")).delete()
        assert not [path for path in (store / "a").rglob("*") if path.is_file()]
        assert [path for path in (store / "b").rglob("*") if path.is_file()]


@pytest.mark.damages_files
@async_test
async def test_what_is_in_use_or_has_no_place_to_go_stays(home: Path, store: Path, monkeypatch: Any) -> None:
    (layout,) = await fill(home, ["ended"], recording(ended=True))
    (running,) = await fill(home, ["r"], recording(ended=False))
    async with blockpty.Engine(home) as engine:
        with pytest.raises(NotFound):
            await engine.archive("none")
        with pytest.raises(BadRequest):
            await engine.archive("../ended")
        with pytest.raises(Busy, match="does not have the end"):
            await engine.archive("r")
        assert (await engine.archive(keep_days=1)).archived == []
        async with blockpty.Engine(home) as other:
            await other.conversation("ended")
            with pytest.raises(Busy, match="another engine"):
                await engine.archive("ended")
            assert (await engine.archive()).archived == []
        monkeypatch.setenv("BLOCKPTY_ARCHIVE_URL", "gopher://x")
        with pytest.raises(ArchiveUnreachable, match="no archive"):
            await engine.archive("ended")
        monkeypatch.delenv("BLOCKPTY_ARCHIVE_URL")
        with pytest.raises(ArchiveUnreachable, match="there is no archive"):
            await engine.archive()
    assert segments(layout) and segments(running) and not store.exists()


class Killed(BaseException):
    """The process ends here."""


def dying(function: Callable[..., Any], calls: int, after: bool) -> Callable[..., Any]:
    """Return the function, of which a call is the last thing that happens, or does not happen any more."""
    left = [calls]

    def call(*args: Any, **kwargs: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            if after:
                function(*args, **kwargs)
            raise Killed
        return function(*args, **kwargs)

    return call


STEPS: list[tuple[Any, str]] = [
    (objects.ObjectStore, "put"), (objects.ObjectStore, "get"), (checkpoint, "replace"), (archived, "sync_directory"),
    (Path, "unlink"), (os, "replace"), (os, "fdatasync"),
]  # fmt: skip


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(("where", "name"), STEPS, ids=[name for _, name in STEPS])
def test_a_process_killed_on_the_way_loses_nothing(
    tmp_path: Path, store: Path, monkeypatch: pytest.MonkeyPatch, where: Any, name: str, after: bool
) -> None:
    url, died = os.environ["BLOCKPTY_ARCHIVE_URL"], 0
    whole = b"".join(b"%08d" % number for number in range(300))
    for work in ("ship", "fetch"):
        for calls in (1, 2, 5):
            layout = Layout(tmp_path / f"{work}{calls}")
            layout.stream.mkdir(parents=True)
            for number in range(3):
                (layout.stream / f"{800 * number:020d}").write_bytes(whole[800 * number : 800 * (number + 1)])
            layout.meta.write_bytes(b"{}")
            layout.timeline.write_bytes(b"")
            if work == "fetch":
                archived.ship(layout, url)
                assert segments(layout) == [] and archived.end_of(layout.stream) == len(whole)
            with monkeypatch.context() as patched:
                patched.setattr(where, name, dying(getattr(where, name), calls, after))
                try:
                    archived.ship(layout, url) if work == "ship" else archived.fetch(layout.stream)
                except Killed:
                    died += 1
            assert stream_of(layout) == whole
            archived.ship(layout, url)
            assert segments(layout) == [] and stream_of(layout) == whole
    assert died >= 1


def test_a_store_that_is_damaged_or_gone_is_reported_and_nothing_is_put_in_its_place(
    tmp_path: Path, store: Path
) -> None:
    layout = Layout(tmp_path / "c")
    layout.stream.mkdir(parents=True)
    (layout.stream / f"{0:020d}").write_bytes(b"what was printed")
    layout.meta.write_bytes(b"{}")
    layout.timeline.write_bytes(b"")
    archived.ship(layout, os.environ["BLOCKPTY_ARCHIVE_URL"])
    (stored,) = [path for path in store.rglob(f"{0:020d}") if path.is_file()]
    stored.write_bytes(b"what was Printed")
    with pytest.raises(SpoolCorrupt, match="damaged in the archive"):
        stream_of(layout)
    shutil.rmtree(stored.parents[1])
    with pytest.raises(ArchiveUnreachable):
        stream_of(layout)
    assert os.listdir(layout.stream) == [archived.NAME]
    reader = StreamReader(layout.stream)
    assert reader.size() == 16
    reader.close()


def test_a_store_in_memory_will_do(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "c")
    layout.stream.mkdir(parents=True)
    (layout.stream / f"{0:020d}").write_bytes(b"x" * 100_000)
    layout.meta.write_bytes(b"{}")
    layout.timeline.write_bytes(b"")
    assert archived.ship(layout, "memory:///") > 0
    assert segments(layout) == [] and stream_of(layout) == b"x" * 100_000


def test_what_was_removed_for_good_does_not_come_back(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "c")
    layout.stream.mkdir(parents=True)
    for number in range(3):
        (layout.stream / f"{100 * number:020d}").write_bytes(b"%d" % number * 100)
    layout.meta.write_bytes(b"{}")
    layout.timeline.write_bytes(b"")
    archived.ship(layout, "memory:///")
    cut = LogStart(150, 0, 100, 150, {}, {}, {})
    checkpoint.replace(layout.directory / "begin.json", cut.to_dict())
    reader = StreamReader(layout.stream)
    assert (reader.size(), reader.begin, reader.read(150, 1000)) == (300, 150, b"1" * 50 + b"2" * 100)
    reader.close()
    assert [int(name) for name in segments(layout)] == [100, 200]
    archived.ship(layout, "memory:///")
    assert segments(layout) == [] and archived.end_of(layout.stream) == 300
