"""Reserve of descriptors: new work stops before the conversations that are open need them."""

from __future__ import annotations

import os
import resource

import pytest

from blockpty.host.descriptors import bound, has_room


@pytest.mark.parametrize(
    ("limit", "part", "expected"),
    [(1024, 1.0, 960), (1024, 0.5, 992), (100, 1.0, 75), (resource.RLIM_INFINITY, 1.0, 1 << 30)],
)
def test_a_reserve_stays_above_what_new_work_may_reach(
    monkeypatch: pytest.MonkeyPatch, limit: int, part: float, expected: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (limit, limit))
    assert bound(part) == expected


def test_room_ends_where_the_reserve_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    lowest = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest)
    monkeypatch.setattr("blockpty.host.descriptors.bound", lambda: lowest + 5)
    assert has_room(5)
    assert not has_room(6)


def test_without_any_descriptor_there_is_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*arguments: object) -> int:
        raise OSError(24, "too many open files")

    monkeypatch.setattr(os, "open", refused)
    assert not has_room(1)
