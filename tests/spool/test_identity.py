"""Identity of a record: what was removed may be made again, and nothing is written into another record."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from blockpty.errors import SpoolCorrupt
from blockpty.spool.checkpoint import replace
from blockpty.spool.identity import RecordIdentity
from blockpty.spool.layout import Layout, make_private


def made(home: Path, created_ts: int = 1) -> Layout:
    """Return a conversation of a home, with a stream and what it is known by."""
    layout = Layout(home / "conversations" / "c1")
    for directory in (home, layout.directory.parent, layout.directory):
        make_private(directory)
    replace(layout.meta, {"format": 2, "conversation_id": "c1", "created_ts": created_ts})
    layout.events.write_bytes(b"")
    return layout


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return made(tmp_path / "home")


def check(identity: RecordIdentity, path: Path, *, made_again: bool = False) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        identity.check(descriptor, made_again=made_again)
    finally:
        os.close(descriptor)


def test_a_record_that_was_not_touched_is_the_same(layout: Layout) -> None:
    identity = RecordIdentity(layout)
    check(identity, layout.events)
    replace(layout.meta, {"format": 3, "conversation_id": "c1", "created_ts": 1})
    check(identity, layout.events)
    check(identity, layout.events)


def test_a_record_made_again_under_its_name_is_another(layout: Layout, tmp_path: Path) -> None:
    identity = RecordIdentity(layout)
    layout.directory.rename(tmp_path / "moved")
    made(tmp_path / "home", created_ts=2)
    with pytest.raises(SpoolCorrupt) as refused:
        check(identity, tmp_path / "moved" / "events.jsonl")
    assert refused.value.details["path"] == str(layout.directory)


def test_a_copy_in_the_place_of_a_moved_record_is_another(layout: Layout, tmp_path: Path) -> None:
    identity = RecordIdentity(layout)
    layout.directory.rename(tmp_path / "moved")
    made(tmp_path / "home")
    with pytest.raises(SpoolCorrupt):
        check(identity, tmp_path / "moved" / "events.jsonl")


def test_what_was_removed_and_made_again_is_the_same(layout: Layout, tmp_path: Path) -> None:
    identity = RecordIdentity(layout)
    descriptor = os.open(layout.events, os.O_RDONLY)
    layout.events.unlink()
    layout.meta.unlink()
    layout.directory.rmdir()
    try:
        identity.check(descriptor, made_again=False)
        made(tmp_path / "home")
        identity.check(descriptor, made_again=True)
    finally:
        os.close(descriptor)
    check(identity, layout.events)


@pytest.mark.parametrize("replaced", [False, True], ids=["moved", "replaced"])
def test_nothing_is_written_where_the_home_was(layout: Layout, tmp_path: Path, replaced: bool) -> None:
    identity = RecordIdentity(layout)
    (tmp_path / "home").rename(tmp_path / "elsewhere")
    if replaced:
        made(tmp_path / "home")
    with pytest.raises(SpoolCorrupt):
        check(identity, tmp_path / "elsewhere" / "conversations" / "c1" / "events.jsonl", made_again=True)
