"""Cells and rows: the widths of characters, and rows that never hold half of a wide one."""

from __future__ import annotations

import random

import pytest

from blockpty.screen.cells import NARROW_RANGES, SPACER, Clusters, Row, cluster_width, is_narrow, joins, width


def test_what_counts_as_narrow_is_narrow_in_the_table() -> None:
    for code in range(0x20, 0x10000):
        character = chr(code)
        if is_narrow(character):
            assert width(character) == 1, hex(code)
    assert len(NARROW_RANGES) > 10


@pytest.mark.parametrize(
    ("character", "columns"), [("a", 1), ("é", 1), ("漢", 2), ("\u0301", 0), ("\u200d", 0), ("👨", 2), ("\x85", 0)]
)
def test_columns(character: str, columns: int) -> None:
    assert width(character) == columns


@pytest.mark.parametrize(
    ("cluster", "character", "belongs"),
    [
        ("e", "\u0301", True), ("a", "b", False), ("👨\u200d", "👩", True), ("👨", "👩", False),
        ("👍", "\U0001f3fd", True),
        ("\U0001f1e9", "\U0001f1ea", True), ("\U0001f1e9\U0001f1ea", "\U0001f1e9", False), ("a\u200d", "👩", False),
    ],
)  # fmt: skip
def test_grapheme_clusters(cluster: str, character: str, belongs: bool) -> None:
    assert joins(cluster, character) is belongs


@pytest.mark.parametrize(
    ("cluster", "columns"), [("e\u0301", 1), ("❤\ufe0f", 2), ("❤", 1), ("\U0001f1e9\U0001f1ea", 2), ("1\ufe0f", 2)]
)
def test_columns_of_clusters(cluster: str, columns: int) -> None:
    assert cluster_width(cluster) == columns


def test_no_change_leaves_half_of_a_wide_character() -> None:
    rng = random.Random(5)
    for _ in range(2000):
        row = Row(f"漢{SPACER}ab字{SPACER}c漢{SPACER}", "x" * 9)
        x, end = sorted(rng.sample(range(10), 2))
        change = rng.randrange(3)
        if change == 0:
            row.put(x, "-" * (end - x), "y")
        elif change == 1:
            row.insert(x, rng.randrange(1, 9), end, "y")
        else:
            row.delete(x, rng.randrange(1, 9), end, "y")
        assert len(row.text) == len(row.attrs) == 9
        for at, character in enumerate(row.text):
            wide = width(character) == 2
            assert wide is (row.text[at + 1 : at + 2] == SPACER), row.text


def test_a_copy_changes_on_its_own() -> None:
    row = Row("abc", "xxx", 1)
    twin = row.copy()
    row.put(0, "z", "y")
    assert (twin.text, twin.attrs, twin.wrapped) == ("abc", "xxx", 1)


def test_clusters_have_one_stand_in_each() -> None:
    clusters = Clusters()
    first = clusters.of("e\u0301")
    assert clusters.of("e\u0301") == first != clusters.of("o\u0301")
    assert clusters.text(f"a{first}b") == "ae\u0301b"
    assert clusters.text(clusters.joined(first, "\u0302")) == "e\u0301\u0302"
    assert len(clusters) == 3


def test_a_pile_of_marks_does_not_grow_without_bound() -> None:
    clusters = Clusters()
    cell = "e"
    for _ in range(1000):
        cell = clusters.joined(cell, "\u0301")
    assert len(clusters.text(cell)) == 64
