"""How often subscribers are notified: at once of little, at the end of each window in a flood, always of the last."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from blockpty.host.notifier import FLOOD_SECONDS, WINDOW_BYTES, WINDOW_SECONDS, Notifier


class ManualClock:
    """Time that passes when the test says so, with the timers of a Loop."""

    def __init__(self) -> None:
        self.now = 100.0
        self.timers: list[tuple[float, Callable[[], None]]] = []

    def clock(self) -> float:
        return self.now

    def after(self, seconds: float, call: Callable[[], None]) -> None:
        self.timers.append((self.now + seconds, call))

    def pass_to(self, when: float) -> None:
        while self.timers and min(self.timers)[0] <= when:
            due = min(self.timers)
            self.timers.remove(due)
            self.now = due[0]
            due[1]()
        self.now = when


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


class Subscriber:
    def __init__(self, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
        self.times: list[float] = []
        self.clock = clock
        self.notifier = Notifier()
        self.notifier.fds.append(-1)
        monkeypatch.setattr(os, "write", lambda fd, data: self.times.append(clock.now))

    def grow(self, count: int) -> None:
        loop: Any = self.clock
        self.notifier.grown += count
        self.notifier.notify(loop, self.clock.now)


def test_a_client_that_comes_late_is_notified_of_what_was_before(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []
    subscriber = Subscriber(clock, monkeypatch)
    monkeypatch.setattr(os, "write", lambda fd, data: written.append(fd))
    subscriber.notifier.add(7)
    assert written == [7]
    subscriber.grow(1)
    assert written == [7, -1, 7]


def test_little_rings_at_once(clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    subscriber = Subscriber(clock, monkeypatch)
    for number in range(1, 11):
        subscriber.grow(WINDOW_BYTES // 20)
        assert len(subscriber.times) == number
    clock.pass_to(clock.now + 1)
    subscriber.grow(0)
    assert len(subscriber.times) == 11
    assert clock.timers == []


@pytest.mark.parametrize("count", [500, 4096, WINDOW_BYTES, 10 * WINDOW_BYTES])
def test_a_flood_rings_once_in_a_window(clock: ManualClock, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    subscriber = Subscriber(clock, monkeypatch)
    start = clock.now
    for step in range(10_000):
        clock.pass_to(start + step * 10e-6)
        subscriber.grow(count)
    seconds = clock.now - start
    clock.pass_to(clock.now + 1)
    assert subscriber.times[-1] >= start + seconds
    # The first window rings for what came before it was a flood.
    assert len(subscriber.times) <= seconds / FLOOD_SECONDS + WINDOW_BYTES / count + 2


def test_after_a_flood_little_rings_at_once_again(clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    subscriber = Subscriber(clock, monkeypatch)
    subscriber.grow(WINDOW_BYTES)
    assert subscriber.times == []
    clock.pass_to(clock.now + WINDOW_SECONDS)
    assert len(subscriber.times) == 1
    clock.pass_to(clock.now + FLOOD_SECONDS)
    subscriber.grow(10)
    assert len(subscriber.times) == 2
    assert subscriber.times[-1] == clock.now
