"""Subscribers to a record: each is notified once, and one that has gone is forgotten."""

from __future__ import annotations

import asyncio

from blockpty.runtime.subscribers import Subscribers
from tests.support.async_tests import async_test


@async_test
async def test_all_are_notified_of_what_comes_after_they_asked() -> None:
    subscribers = Subscribers()
    subscribers.notify()
    first, second = subscribers.watch(), subscribers.watch()
    assert not first.done() and not second.done(), "what came before is none of theirs"
    subscribers.notify()
    assert first.done() and second.done()
    third = subscribers.watch()
    assert not third.done()
    subscribers.notify()
    assert third.done()


@async_test
async def test_one_that_was_cancelled_is_forgotten() -> None:
    subscribers = Subscribers()
    gone, stays = subscribers.watch(), subscribers.watch()
    gone.cancel()
    await asyncio.sleep(0)
    assert subscribers._futures == {stays}
    subscribers.notify()
    assert stays.done() and not stays.cancelled()


@async_test
async def test_a_change_ends_the_wait_for_one_and_so_does_the_time() -> None:
    subscribers = Subscribers()
    waiting = asyncio.create_task(subscribers.changed(3600))
    await asyncio.sleep(0)
    assert not waiting.done()
    subscribers.notify()
    await waiting
    await subscribers.changed(0)
    await asyncio.sleep(0)
    assert not subscribers._futures, "nothing of either is left"
