"""Limits of the numbers in requests: both ends are allowed, and nothing that only looks like a number."""

from __future__ import annotations

import pytest

from blockpty.api.limits import BOUNDS, check
from blockpty.errors import BadRequest


@pytest.mark.parametrize("name", BOUNDS)
def test_both_ends_are_allowed_and_their_neighbours_are_not(name: str) -> None:
    low, high = BOUNDS[name]
    check(name, low)
    check(name, high)
    for value in (low - 1, high + 1, -(2**70), 2**70):
        with pytest.raises(BadRequest, match=f"{name} must be {low} to {high}, not {value}"):
            check(name, value)


@pytest.mark.parametrize("value", [None, True, False, 1.0, "1", b"1", [1], float("nan")])
def test_what_only_looks_like_a_number_is_refused(value: object) -> None:
    with pytest.raises(BadRequest):
        check("page", value)
