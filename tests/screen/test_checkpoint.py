"""Checkpoints of a screen: it goes on from one as if nothing had happened, and other layouts are refused."""

from __future__ import annotations

import json
import random

import pytest

from blockpty.screen import Emulator
from tests.support.emulators import random_output, state


@pytest.mark.parametrize("seed", range(60))
def test_a_checkpoint_goes_on_as_if_nothing_had_happened(seed: int) -> None:
    rng = random.Random(seed)
    size = rng.randrange(1, 30), rng.randrange(1, 10)
    data = random_output(rng, 60)
    cut = rng.randrange(len(data))
    straight = Emulator(*size)
    straight.feed(data)
    first = Emulator(*size)
    first.feed(data[:cut])
    second = Emulator.restore(json.loads(json.dumps(first.dump())))
    assert state(second) == state(first)
    second.feed(data[cut:])
    assert state(second) == state(straight)


def test_a_checkpoint_of_another_layout_is_refused() -> None:
    dumped = Emulator().dump() | {"version": 0}
    with pytest.raises(ValueError, match="layout 0"):
        Emulator.restore(dumped)


def test_a_checkpoint_does_not_change_with_its_screen() -> None:
    emulator = Emulator(20, 4)
    emulator.feed(b"one\r\n\x1b[31mtwo \xe6\xbc")
    taken = emulator.dump()
    before = json.dumps(taken)
    emulator.feed(b"\xa2\x1b[2J\x1b]0;title\x07")
    assert json.dumps(taken) == before
    assert json.dumps(Emulator.restore(json.loads(before)).dump()) == before
