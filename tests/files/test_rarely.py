"""A check that is due at most once a second, on a clock that only the test moves."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from blockpty.files import rarely
from blockpty.files.rarely import SECONDS, Rarely


@pytest.fixture
def wait(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Have so many seconds go by."""
    now = 100.0
    monkeypatch.setattr(rarely, "monotonic", lambda: now)

    def later(seconds: float) -> None:
        nonlocal now
        now += seconds

    return later


def test_a_check_is_due_a_second_after_the_last_one(wait: Callable[[float], None]) -> None:
    check = Rarely()
    assert not check.due(), "what was just opened was there"
    wait(SECONDS / 2)
    assert not check.due()
    wait(SECONDS / 2)
    assert check.due() and not check.due(), "once"
    wait(10 * SECONDS)
    assert check.due() and not check.due(), "seconds that went by unasked are not made up for"
