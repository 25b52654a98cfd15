"""Event loop: readiness, timers in their order, and calls in threads."""

from __future__ import annotations

import os

from blockpty.host.loop import IN, OUT, Loop
from tests.support.recorder_bench import ManualLoop


def test_timers_are_due_in_their_order_and_none_before() -> None:
    loop, called = ManualLoop(), []
    loop.after(2.0, lambda: called.append("late"))
    loop.after(1.0, lambda: called.append("first"))
    loop.after(1.0, lambda: called.append("second"))
    loop.after(1.0, lambda: called.append("never")).cancel()
    loop.advance(0.9)
    assert called == []
    loop.advance(0.1)
    assert called == ["first", "second"]
    loop.advance(1.0)
    assert called == ["first", "second", "late"]


def test_a_descriptor_is_reported_for_what_it_is_watched_for() -> None:
    loop, read_end, write_end, seen = Loop(), *os.pipe(), []
    loop.watch(read_end, IN, seen.append)
    loop.watch(write_end, OUT, lambda mask: loop.forget(write_end))
    loop.turn()
    assert seen == []
    os.write(write_end, b"x")
    loop.turn()
    assert seen == [IN]
    loop.watch(read_end, IN, lambda mask: seen.append(-mask))
    loop.turn()
    assert seen == [IN, -IN]
    os.read(read_end, 1)
    os.close(write_end)
    loop.turn()
    assert seen == [IN, -IN, -IN], "a hang-up is readiness"
    loop.watch(read_end, 0, seen.append)
    loop.after(0.0, lambda: None)
    loop.turn()
    assert len(seen) == 3
    os.close(read_end)
    loop.close()


def test_a_watch_that_an_earlier_call_stopped_is_not_called() -> None:
    loop, called = Loop(), []
    pipes = [os.pipe(), os.pipe()]
    for (read_end, write_end), (other, _) in zip(pipes, reversed(pipes), strict=True):
        os.write(write_end, b"x")
        loop.watch(read_end, IN, lambda mask, other=other: (called.append(other), loop.forget(other)))  # type: ignore[misc]
    loop.turn()
    assert len(called) == 1
    loop.close()
    for pipe in pipes:
        for fd in pipe:
            os.close(fd)


def test_work_is_done_beside_and_its_error_kept() -> None:
    loop, ended = Loop(), []

    def fails() -> None:
        raise OSError(5, "no")

    work = loop.beside(fails, lambda work: ended.append(work.error))
    work.wait()
    assert ended == []
    while not ended:
        loop.turn()
    assert isinstance(ended[0], OSError)
    loop.close()
