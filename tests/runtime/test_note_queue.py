"""Notes for the timeline: in order, whatever finds no space and whichever host is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import pytest

from blockpty.errors import InternalError, StorageFull
from blockpty.host.client import HostClient
from blockpty.runtime import note_queue
from blockpty.runtime.note_queue import NoteQueue
from tests.support.async_tests import async_test


class Host:
    """Keeps what it is asked to note, with the answer to each."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, asyncio.Future[Any]]] = []
        self.sent = asyncio.Event()

    def note(self, conversation_id: str, note: Mapping[str, Any], *, epoch: int) -> asyncio.Future[Any]:
        assert (conversation_id, epoch) == ("c1", 7)
        self.sent.set()
        self.asked.append((note["number"], asyncio.get_running_loop().create_future()))
        return self.asked[-1][1]

    @property
    def numbers(self) -> list[int]:
        return [number for number, _ in self.asked]

    async def answer(self, problem: Exception | None = None) -> None:
        """Answer all that has no answer yet, in the same way."""
        for _, answer in self.asked:
            if not answer.done():
                _ = answer.set_result(None) if problem is None else answer.set_exception(problem)
        await asyncio.sleep(0)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(note_queue, "RETRY_SECONDS", 0.0)


def queue(host: Host) -> NoteQueue:
    return NoteQueue(cast("HostClient", host), "c1")


@async_test
async def test_notes_are_sent_without_waiting_and_waited_for_together() -> None:
    host = Host()
    notes = queue(host)
    await notes.written()
    for number in range(3):
        notes.add({"number": number}, 7)
    assert host.numbers == [0, 1, 2]
    written = asyncio.create_task(notes.written())
    await asyncio.sleep(0)
    assert not written.done()
    await host.answer()
    await written


@pytest.mark.usefixtures("at_once")
@async_test
async def test_what_found_no_space_is_sent_again_before_what_came_after_it() -> None:
    host = Host()
    notes = queue(host)
    notes.add({"number": 0}, 7)
    notes.add({"number": 1}, 7)
    await host.answer(StorageFull("no space"))
    notes.add({"number": 2}, 7)
    host.sent.clear()
    await host.sent.wait()
    assert host.numbers == [0, 1, 0, 1, 2]
    await host.answer()


@async_test
async def test_another_host_is_sent_what_the_old_one_did_not_answer_for() -> None:
    old, new = Host(), Host()
    notes = queue(old)
    notes.add({"number": 0}, 7)
    await old.answer()
    notes.add({"number": 1}, 7)
    await old.answer(InternalError("the host is gone"))
    notes.add({"number": 2}, 7)
    assert old.numbers == [0, 1], "a host that is gone is sent nothing"
    notes.adopt(cast("HostClient", new))
    assert new.numbers == [1, 2]
    await new.answer()


@pytest.mark.usefixtures("at_once")
@async_test
async def test_a_queue_that_is_closed_sends_nothing_again() -> None:
    host = Host()
    notes = queue(host)
    notes.add({"number": 0}, 7)
    await host.answer(StorageFull("no space"))
    notes.close()
    for _ in range(5):
        await asyncio.sleep(0)
    assert host.numbers == [0]
