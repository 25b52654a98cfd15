"""Progress in words."""

from __future__ import annotations

import pytest

from blockpty.api.progress import Progress
from blockpty.surfaces.progress_text import amount, in_words, size


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0 B"), (999, "999 B"), (1000, "1 kB"), (999_400, "999 kB"), (1_500_000, "1.5 MB"),
        (2_340_000_000, "2.34 GB"),
    ],
)  # fmt: skip
def test_bytes_have_the_unit_that_fits(count: int, shown: str) -> None:
    assert size(count) == shown


def progress(what: str, done: int, total: int | None) -> Progress:
    made = Progress()
    made.what, made.done, made.total = what, done, total
    return made


@pytest.mark.parametrize(
    ("made", "shown"),
    [
        (progress("", 5, 10), ""),
        (progress("reading", 5000, None), "5 kB"),
        (progress("reading", 5000, 20_000), "25 %, 5 kB of 20 kB"),
        # It may have come to its end without having ended, and files grow meanwhile.
        (progress("reading", 20_000, 20_000), "99 %, 20 kB of 20 kB"),
        (progress("reading", 30_000, 20_000), "99 %, 20 kB of 20 kB"),
    ],
)
def test_it_is_never_all_before_the_end(made: Progress, shown: str) -> None:
    assert amount(made) == shown


def test_the_rate_needs_a_time_and_something_done() -> None:
    made = progress("reading", 5000, None)
    assert in_words(made, 0.0) == "5 kB"
    assert in_words(made, 2.0) == "5 kB, 2 kB/s"
    assert in_words(progress("", 0, 0), 2.0) == ""
