"""Durations and times as a person writes them."""

from __future__ import annotations

import time
from datetime import datetime

import click
import pytest

from blockpty.surfaces.cli.values import Duration, PointInTime, duration_ms


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("0s", 0), ("500ms", 500), ("30s", 30_000), ("1.5s", 1500), ("5m", 300_000), ("5min", 300_000),
        ("2h", 7_200_000), ("1h30m", 5_400_000), ("1d", 86_400_000), ("2w", 1_209_600_000),
        ("", None), ("30", None), ("s", None), ("30x", None), ("-5s", None), ("5s ", None), ("\u0665s", None),
    ],
)  # fmt: skip
def test_durations(text: str, milliseconds: int | None) -> None:
    assert duration_ms(text) == milliseconds


def test_a_number_has_the_unit_of_its_parameter() -> None:
    assert Duration(1).convert("250", None, None) == 250
    assert Duration(1).convert("2s", None, None) == 2000
    assert Duration(1000).convert("90", None, None) == 90
    # Rather longer than shorter.
    assert Duration(1000).convert("1500ms", None, None) == 2
    assert Duration(1).convert("-5", None, None) == -5
    with pytest.raises(click.BadParameter, match="30s"):
        Duration(1).convert("soon", None, None)


def test_moments() -> None:
    assert PointInTime().convert("1764000000000", None, None) == 1764000000000
    assert PointInTime().convert("2026-11-22", None, None) == datetime(2026, 11, 22).timestamp() * 1000  # noqa: DTZ001
    assert PointInTime().convert("2026-11-22T14:30+00:00", None, None) == 1795357800000
    before = time.time_ns() // 1_000_000
    found = PointInTime().convert("2h", None, None)
    assert before - 7_200_000 <= found <= time.time_ns() // 1_000_000 - 7_200_000
    for wrong in ("yesterday", "2026-13-01", "1h ago"):
        with pytest.raises(click.BadParameter, match="2026-11-22"):
            PointInTime().convert(wrong, None, None)
