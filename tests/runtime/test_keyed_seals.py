"""Seals by a key: only the key that made one knows it again, for this record and this place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from blockpty.errors import BadRequest
from blockpty.runtime.keyed_seals import KEY_BYTES, Key, seals_in
from blockpty.runtime.record_reader import Position

KEY = Key("k" * KEY_BYTES)
AT = Position(10, 200)


def test_a_short_key_is_refused() -> None:
    with pytest.raises(BadRequest, match="16 bytes or more"):
        Key("k" * (KEY_BYTES - 1))


def test_the_name_does_not_tell_the_key() -> None:
    assert KEY.name == Key("k" * KEY_BYTES).name != Key("l" * KEY_BYTES).name
    assert "k" * 4 not in KEY.name


@pytest.mark.parametrize(
    ("key", "name", "at", "head"),
    [
        (Key("l" * KEY_BYTES), "c1", AT, "aa"), (KEY, "c2", AT, "aa"), (KEY, "c1", Position(11, 200), "aa"),
        (KEY, "c1", Position(10, 201), "aa"), (KEY, "c1", AT, "ab"),
    ],
    ids=["another key", "another record", "another offset", "another entry", "another link"],
)  # fmt: skip
def test_a_seal_holds_for_one_record_at_one_place(key: Key, name: str, at: Position, head: str) -> None:
    note = KEY.seal("c1", AT, "aa")
    assert KEY.made(note, "c1", AT, "aa")
    assert not key.made(note, name, at, head)


@pytest.mark.parametrize("mac", [None, 5, "", "é"])
def test_a_note_without_a_seal_in_it_is_none(mac: Any) -> None:
    assert not KEY.made({"mac": mac}, "c1", AT, "aa")


def test_a_timeline_that_is_empty_has_no_seals(tmp_path: Path) -> None:
    (tmp_path / "timeline.jsonl").write_bytes(b"")
    assert seals_in(tmp_path / "timeline.jsonl", 1000) == []
