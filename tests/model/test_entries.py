"""Timeline entries: their line there and back."""

from __future__ import annotations

from typing import Any

import pytest

from blockpty.model.entries import DAMAGED, Entry, terminal_size


def test_there_and_back() -> None:
    entry = Entry(7, 1000, "silence", {"ms": 50, "icanon": True})
    line = entry.to_dict()
    assert list(line) == ["offset", "ts", "kind", "ms", "icanon"]
    assert Entry.from_dict(line) == entry


def test_what_vouches_for_a_line_is_no_field_of_it() -> None:
    line = {"offset": 1, "ts": 2, "kind": "eof", "sum": "0", "prev": "1", "crc": "2"}
    assert Entry.from_dict(line) == Entry(1, 2, "eof", {})


@pytest.mark.parametrize(
    "line",
    [{}, {"offset": 0, "ts": 0}, {"offset": "x", "ts": 0, "kind": "eof"}, {"offset": 0, "ts": 0, "kind": DAMAGED}],
)
def test_what_is_no_entry_is_refused(line: dict[str, Any]) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        Entry.from_dict(line)


@pytest.mark.parametrize(
    ("kind", "fields", "size"),
    [
        ("spawn", {"cols": 80, "rows": 24}, (80, 24)),
        ("resize", {"cols": 1000, "rows": 1}, (1000, 1)),
        ("resize", {"cols": 1001, "rows": 1}, None),
        ("resize", {"cols": 0, "rows": 24}, None),
        ("resize", {"cols": "80", "rows": 24}, None),
        ("spawn", {}, None),
        ("note", {"cols": 80, "rows": 24}, None),
    ],
)
def test_the_size_that_an_entry_gives(kind: str, fields: dict[str, Any], size: tuple[int, int] | None) -> None:
    assert terminal_size(Entry(0, 0, kind, fields)) == size
