"""A shell counts as one at work after a second of it, and as one that waits at once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from blockpty.host.workload import LONG_SECONDS, Workload


class _Seen:
    """A workload with a clock by hand; `said` is what the keeper was notified of."""

    def __init__(self, *, working: bool = False) -> None:
        self.now = 100.0
        self.said: list[bool] = []
        self.shell = SimpleNamespace(working=working)
        recorder = SimpleNamespace(tell_keeper=lambda shell: self.said.append(shell.working))
        context = cast("Any", SimpleNamespace(shell=self.shell, recorder=recorder))
        self._workload = Workload(context, lambda: self.now)

    def note(self, after: float, *, working: bool) -> None:
        self.now += after
        self._workload.note(working=working)


def test_the_keeper_is_not_notified_of_a_short_command() -> None:
    seen = _Seen()
    for _ in range(5):
        seen.note(10, working=True)
        seen.note(LONG_SECONDS * 0.9, working=True)
        seen.note(0, working=False)
    assert seen.said == []


def test_the_keeper_is_notified_of_work_once_and_of_its_end_at_once() -> None:
    seen = _Seen()
    seen.note(0, working=True)
    seen.note(LONG_SECONDS, working=True)
    seen.note(5, working=True)
    assert seen.said == [True]
    seen.note(0.01, working=False)
    seen.note(5, working=False)
    assert seen.said == [True, False]


def test_work_begins_anew_after_a_pause() -> None:
    seen = _Seen()
    seen.note(0, working=True)
    seen.note(LONG_SECONDS * 0.6, working=False)
    seen.note(LONG_SECONDS * 0.6, working=True)
    assert seen.said == []


def test_work_that_a_killed_recorder_had_reported_stays_until_it_ends() -> None:
    seen = _Seen(working=True)
    seen.note(0, working=True)
    assert seen.said == []
    seen.note(0, working=False)
    assert seen.said == [False]
