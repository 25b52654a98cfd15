"""The table of widths: in order, without overlaps, and with what each range is for."""

from __future__ import annotations

import itertools

import pytest

from blockpty.screen import widths
from blockpty.screen.cells import width

TABLES = {"zero": widths.ZERO, "wide": widths.WIDE, "spacing": widths.SPACING, "pictographs": widths.PICTOGRAPHS}


@pytest.mark.parametrize("name", TABLES)
def test_ranges_are_in_order_and_apart(name: str) -> None:
    table = TABLES[name]
    assert all(first <= last for first, last in table)
    assert all(last < first for (_, last), (first, _) in itertools.pairwise(table))
    assert table[-1][1] <= 0x10FFFF


def test_no_character_is_both_wide_and_of_no_width() -> None:
    wide = {code for first, last in widths.WIDE for code in range(first, last + 1)}
    assert not [code for first, last in widths.ZERO for code in range(first, last + 1) if code in wide]


@pytest.mark.parametrize(
    ("character", "columns"),
    [("a", 1), ("\u4e2d", 2), ("\u0301", 0), ("\u200d", 0), ("\U0001f600", 2), ("\u0903", 1), ("\u00e9", 1)],
)
def test_well_known_characters(character: str, columns: int) -> None:
    assert width(character) == columns
