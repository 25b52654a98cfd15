"""Replay frames: each type's JSON form there and back, with nothing in it that the type does not have."""

from __future__ import annotations

import json

import pytest

from blockpty.model.replay_frames import MOMENT_TYPES, Moment
from tests.support.blocks import BLOCK

MOMENTS = [
    Moment("screen", 0, 5, 0, b"\x1b[2J", 80, 24),
    Moment("output", 1, 6, 3, b"abc"),
    Moment("output", 1, 6, 4, b"\xff"),
    Moment("resize", 2, 7, 3, cols=10, rows=5),
    Moment("resize", 2, 7, 3, cols=10, rows=5, fresh=True),
    Moment("block_begin", 3, 8, 3, block=BLOCK),
    Moment("block_end", 4, 9, 9, block=BLOCK),
    Moment("exit", 5, 10, 9, exit_status=None),
]


@pytest.mark.parametrize("moment", MOMENTS)
def test_there_and_back(moment: Moment) -> None:
    content = json.loads(json.dumps(moment.to_dict()))
    assert Moment.from_dict(content) == moment
    assert Moment.from_dict({**content, "of_a_later_version": 1}) == moment


def test_every_type_is_there() -> None:
    assert {moment.type for moment in MOMENTS} == set(MOMENT_TYPES)


def test_a_type_has_its_fields_only() -> None:
    assert set(MOMENTS[1].to_dict()) == {"type", "at_ms", "ts", "cursor", "data"}
    assert set(MOMENTS[2].to_dict()) == {"type", "at_ms", "ts", "cursor", "data_b64"}
    assert set(MOMENTS[3].to_dict()) == {"type", "at_ms", "ts", "cursor", "cols", "rows"}
    assert set(MOMENTS[7].to_dict()) == {"type", "at_ms", "ts", "cursor", "exit_status"}
