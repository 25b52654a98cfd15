"""Blocks: their JSON form there and back, and the signals that shells report as exit statuses."""

from __future__ import annotations

import pytest

from blockpty.model.block import Block, signal_name, signal_of, was_stopped
from tests.support.blocks import BLOCK


def test_there_and_back() -> None:
    record = BLOCK.to_dict()
    assert record["span"] == [10, 20]
    assert Block.from_dict(record) == BLOCK
    assert Block.from_dict({**record, "of_a_later_version": 1}) == BLOCK


def test_older_records_lack_what_came_later() -> None:
    record = BLOCK.to_dict()
    del record["session_id"], record["degraded"]
    assert Block.from_dict(record) == BLOCK


@pytest.mark.parametrize(
    ("status", "system", "name"),
    [
        (None, "linux", None), (0, "linux", None), (128, "linux", None), (193, "linux", None),
        (130, "linux", "SIGINT"), (130, "darwin", "SIGINT"), (138, "linux", "SIGUSR1"), (138, "darwin", "SIGBUS"),
        (164, "linux", "SIGRTMIN+2"), (160, "darwin", "SIG32"), (135, "plan9", "SIG7"),
    ],
)  # fmt: skip
def test_signals_by_exit_status(status: int | None, system: str, name: str | None) -> None:
    assert signal_of(status, system) == name


def test_signals_that_stop() -> None:
    stopping = {number for number in range(1, 32) if was_stopped(signal_name(number))}
    assert stopping == {19, 20, 21, 22}
    assert not was_stopped(None)
