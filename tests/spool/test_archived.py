"""A stream in an object store: on the way there and back its bytes are always somewhere, and known to be whole."""

from __future__ import annotations

from pathlib import Path

import pytest

from blockpty.errors import Busy, SpoolCorrupt
from blockpty.spool import archived
from blockpty.spool.layout import Layout
from blockpty.spool.stream import StreamReader
from blockpty.testing import FakePty

pytest.importorskip("obstore", reason="obstore is not installed")


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """A record whose stream has three segments."""
    made = FakePty()
    made.spawn()
    made.prompt()
    made.output(b"some output\r\n" * 100)
    found = Layout(tmp_path / "conversations" / "c")
    found.directory.mkdir(parents=True)
    made.recording.save(found.directory)
    found.meta.write_text("{}")
    (only,) = found.stream.iterdir()
    content = only.read_bytes()
    only.unlink()
    for begin, end in ((0, 400), (400, 900), (900, len(content))):
        (found.stream / f"{begin:020d}").write_bytes(content[begin:end])
    return found


def content_of(layout: Layout) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(layout.stream.glob("0*")))


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"file://{tmp_path}/archive"


def test_there_and_back(layout: Layout, url: str) -> None:
    before = content_of(layout)
    assert archived.end_of(layout.stream) is None
    free = archived.here(layout)
    assert archived.ship(layout, url) == free > 0
    assert content_of(layout) == b"" and layout.timeline.exists() and layout.meta.exists()
    assert (archived.end_of(layout.stream), archived.here(layout)) == (len(before), 0)
    assert archived.fetch(layout.stream)
    assert content_of(layout) == before
    assert not archived.fetch(layout.stream) and archived.end_of(layout.stream) is None


def test_what_is_missing_in_part_comes_back(layout: Layout, url: str) -> None:
    before = content_of(layout)
    archived.ship(layout, url)
    archived.fetch(layout.stream)
    sorted(layout.stream.glob("0*"))[1].unlink()
    assert archived.end_of(layout.stream) == len(before)
    assert archived.fetch(layout.stream) and content_of(layout) == before


@pytest.mark.parametrize("moment", ["end_of", "fetch"])
def test_a_reader_that_begins_while_a_stream_is_shipped(
    layout: Layout, url: str, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, looked = content_of(layout), getattr(archived, moment)

    def looked_just_before(stream: str) -> object:
        seen = looked(stream)
        monkeypatch.setattr(archived, moment, looked)
        archived.ship(layout, url)
        return seen

    monkeypatch.setattr(archived, moment, looked_just_before)
    reader = StreamReader(layout.stream)
    try:
        if moment == "end_of":
            assert reader.size() == len(before)
            assert content_of(layout) == b""  # to know where it ends, nothing is fetched
        assert reader.read(0, 1 << 20) == before
        assert reader.size() == len(before)
    finally:
        reader.close()


def test_a_damaged_copy_is_not_taken(layout: Layout, url: str, tmp_path: Path) -> None:
    archived.ship(layout, url)
    (stored,) = (tmp_path / "archive").rglob(f"{400:020d}")
    stored.write_bytes(b"x" + stored.read_bytes()[1:])
    with pytest.raises(SpoolCorrupt, match="damaged in the archive"):
        archived.fetch(layout.stream)
    assert not (layout.stream / f"{400:020d}").exists()
    assert not list(layout.stream.glob(".*")), "no part of it is left"


def test_a_stream_that_grows_meanwhile_stays(layout: Layout, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    last = max(layout.stream.glob("0*"))
    real = archived.checkpoint.replace

    def grows(*arguments: object, **named: object) -> None:
        real(*arguments, **named)  # type: ignore[arg-type]
        with last.open("ab") as file:
            file.write(b"more")

    monkeypatch.setattr(archived.checkpoint, "replace", grows)
    with pytest.raises(Busy, match="has grown"):
        archived.ship(layout, url)
    assert last.read_bytes().endswith(b"more")


def test_a_deleted_conversation_leaves_nothing_there(layout: Layout, url: str, tmp_path: Path) -> None:
    archived.ship(layout, url)
    assert any(path.is_file() for path in (tmp_path / "archive").rglob("*"))
    archived.forget(layout)
    assert not any(path.is_file() for path in (tmp_path / "archive").rglob("*"))
