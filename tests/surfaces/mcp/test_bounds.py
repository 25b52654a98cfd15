"""Results for a model: always JSON, always small enough, and what is left out is said."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blockpty.ops.table import OPERATIONS
from blockpty.surfaces.mcp.bounds import (
    DEFAULTS,
    LIMITS,
    MAX_JSON_BYTES,
    MAX_OUTPUT_BYTES,
    MODEL_BYTES,
    fit,
    json_bytes,
    lowered,
    shortened,
)
from blockpty.surfaces.mcp.schemas import NOTE

VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=40) | st.sampled_from(["x" * 3000, "é" * 9000]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


def test_limits_and_defaults_are_of_parameters_that_there_are() -> None:
    for table in (LIMITS, DEFAULTS):
        for name, fields in table.items():
            assert set(fields) <= set(OPERATIONS[name].request.model_fields), name


@pytest.mark.parametrize(
    ("given_bytes", "taken"),
    [(None, MODEL_BYTES), (5, 5), (MAX_OUTPUT_BYTES + 1, MAX_OUTPUT_BYTES), ("many", "many"), (True, True)],
)
def test_what_is_asked_for_is_lowered(given_bytes: Any, taken: Any) -> None:
    params = {"command": "ls"} if given_bytes is None else {"command": "ls", "max_bytes": given_bytes}
    found = lowered("run", params, OPERATIONS["run"].request.model_fields)
    assert found == {"command": "ls", "max_bytes": taken, "view": "rendered"}
    assert lowered("run", {"view": "ansi"}, OPERATIONS["run"].request.model_fields)["view"] == "ansi"


@given(VALUES)
def test_a_shortened_value_has_the_same_form(value: Any) -> None:
    def same(one: Any, other: Any) -> bool:
        if isinstance(one, dict):
            return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
        if isinstance(one, list):
            return len(one) == len(other) and all(map(same, one, other))
        if isinstance(one, str) and len(one) > 2048:
            return len(other) < 2048 and "left out" in other and one[:900] == other[:900] and one[-900:] == other[-900:]
        return bool(one == other)

    assert same(value, shortened(value))


@pytest.mark.parametrize("items", [0, 3, 50, 5000])
def test_everything_fits_and_says_what_is_missing(items: int) -> None:
    payload = {"ok": True, "text": "é" * 70_000, "blocks": [{"cmd": "é" * 100, "seq": seq} for seq in range(items)]}
    found = fit(payload, "ask with pty_blocks")
    assert json_bytes(found) <= MAX_JSON_BYTES
    assert json.loads(json.dumps(found)) == found
    kept = len(found["blocks"])
    assert found["blocks"] == payload["blocks"][:kept]  # type: ignore[index]
    assert (f"{kept} of {items} blocks are here; ask with pty_blocks" in found[NOTE]) == (kept < items)
    assert (kept < items) == (items == 5000)


def test_what_is_small_stays_as_it_is() -> None:
    payload = {"ok": True, "text": "x" * 3000}
    assert fit(payload) is payload
