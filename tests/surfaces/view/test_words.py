"""Numbers, times and states in words."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from blockpty.surfaces.view import words


@dataclass
class Ended:
    state: str = "ended"
    exit_status: int | None = 0
    signal: str | None = None


@pytest.mark.parametrize(
    ("block", "sign", "ending"),
    [
        (Ended(), "ok", ""),
        (Ended(exit_status=2), "fail", "exit 2"),
        (Ended("running", None), "run", ""),
        (Ended("interrupted", 130, "SIGINT"), "stop", "interrupted"),
        (Ended("ended", 130, "SIGINT"), "fail", "interrupted"),
        (Ended("ended", 137, "SIGKILL"), "fail", "killed (SIGKILL)"),
        (Ended("cancelled", None), "stop", "cancelled"),
        (Ended("stopped", 148, "SIGTSTP"), "stop", "stopped"),
        (Ended("lost", None), "unknown", "unknown"),
    ],
)
def test_how_a_block_ended(block: Ended, sign: str, ending: str) -> None:
    assert (words.sign(block), words.ending(block)) == (sign, ending)
    assert words.sign(block) in words.SIGNS


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (-5, "now"), (1_999, "now"), (2_000, "2 s"), (59_999, "59 s"), (60_000, "1 m"), (3_600_000, "1 h"),
        (86_399_999, "23 h"), (86_400_000, "1 d"), (10 * 86_400_000, "10 d"),
    ],
)  # fmt: skip
def test_ages(ms: int, text: str) -> None:
    assert words.age(ms) == text


def test_counts_sizes_and_authors() -> None:
    assert [words.lines(count) for count in (0, 1, 1234)] == ["0 lines", "1 line", "1,234 lines"]
    assert [words.size(count) for count in (999, 1000, 999_499, 1_000_000)] == ["999 B", "1 kB", "999 kB", "1.0 MB"]
    assert [words.author(name) for name in ("agent", "user", "engine", "ada", "")] == ["A", "Y", "E", "A", ""]
