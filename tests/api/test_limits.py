"""Limits of the numbers in requests: both ends are allowed, and nothing that only looks like a number."""

from __future__ import annotations

import pytest

from blockpty.api.limits import BOUNDS, check
from blockpty.errors import BadRequest
from blockpty.ops.table import OPERATIONS

# Not the number of a page but the entry to go on from; and a search has a limit of its own.
OTHERS = {("audit", "page"), ("search", "timeout_ms")}


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


def test_the_request_models_have_the_same_bounds() -> None:
    found = {}
    for operation in OPERATIONS.values():
        for name, field in operation.request.model_json_schema().get("properties", {}).items():
            number = next((one for one in (field, *field.get("anyOf", ())) if one.get("type") == "integer"), None)
            if number is not None and name in BOUNDS and (operation.name, name) not in OTHERS:
                found[operation.name, name] = (number.get("minimum"), number.get("maximum"))
    assert found == {(operation, name): BOUNDS[name] for operation, name in found}
    assert {name for _, name in found} == set(BOUNDS)
