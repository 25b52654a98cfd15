"""Events for those who follow them: growth of output is joined, and a long file is read in turn with others."""

from __future__ import annotations

import asyncio
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import blockpty
from blockpty.model.events import Event
from blockpty.runtime.event_feed import Growth, follow_events
from tests.support.async_tests import async_test
from tests.support.counting import ReadBytes, turns_beside

pytestmark = pytest.mark.needs("bash")


@async_test
async def test_growth_without_its_text_is_few_events_and_adds_up(home: Path) -> None:
    """Events without their text: a flood is few of them, which say as much as all of them."""
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        live: Any = conversation.live
        received: list[Event] = []

        async def follow() -> None:
            async for event in follow_events(live, 0, True, with_data=False):
                received.append(event)

        following = asyncio.create_task(follow())
        await conversation.run("seq 1 400000", max_bytes=100)
        await conversation.run("echo one; sleep 0.3; echo two")
        every = [event async for event in follow_events(live, 0, False)]
        while not received or received[-1].seq < every[-1].seq:
            await live.subscribers.changed(0.02)
        following.cancel()
        await asyncio.wait((following,))

        assert all("data" not in event.fields for event in received)
        others = [event for event in received if event.type != "agent_block_delta"]
        assert others == [event for event in every if event.type != "agent_block_delta"]
        assert [event.seq for event in received] == sorted({event.seq for event in received})
        for block_id in {event.fields["block_id"] for event in every if "block_id" in event.fields}:
            spans = _spans(every, block_id)
            joined = _spans(received, block_id)
            assert joined[0][0] == spans[0][0] and joined[-1][1] == spans[-1][1]
            # Each ends where one of the record ends, and begins where the next one begins.
            follows = {end: begin for (_, end), (begin, _) in pairwise(spans)}
            assert all(follows[end] == begin for (_, end), (begin, _) in pairwise(joined))
        flood = next(event.fields["block_id"] for event in received if event.type == "agent_block_begin")
        assert len(_spans(received, flood)) < len(_spans(every, flood)) / 2
        await conversation.close()


def test_growth_is_sent_four_times_a_second() -> None:
    now, sent = 100.0, []
    growth = Growth(lambda: now)
    for number in range(2048):
        now += 1 / 1024
        assert not [*growth.take({"type": "agent_block_delta", "block_id": "1.1", "span": [number, number + 1]})]
        if (grown := growth.due(closed=False)) is not None:
            sent.append((now, grown["span"]))
    assert [span for _, span in sent] == [[0, 1], *([begin, begin + 256] for begin in range(1, 1793, 256))]
    assert {later - at for (at, _), (later, _) in pairwise(sent)} == {0.25}
    assert growth.left() == 1 / 1024
    # What is left is sent at the end, or in front of the next event of another kind.
    assert growth.due(closed=True) == {"type": "agent_block_delta", "block_id": "1.1", "span": [1793, 2048]}
    last = {"type": "agent_block_delta", "block_id": "1.1", "span": [2048, 2049]}
    end = {"type": "agent_block_end", "block_id": "1.1"}
    assert [*growth.take(last), *growth.take(end)] == [last, end] and not growth.is_held


@async_test
async def test_what_is_not_wanted_comes_between_no_growth(home: Path) -> None:
    wanted = ("agent_block_begin", "agent_block_delta", "agent_block_end")
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        live, seen = conversation.live, []

        async def follow() -> None:
            async for event in follow_events(live, 0, True, with_data=False, types=wanted, clock=lambda: 100.0):
                seen.append(event)

        following = asyncio.create_task(follow())
        await conversation.exec_interactive("cat")
        for number in range(40):
            await conversation.send_line(f"line {number}", match=f"line {number}")
        await conversation.ctrl_d()
        while not seen or seen[-1].type != "agent_block_end":
            await live.subscribers.changed(0.02)
        following.cancel()
        await asyncio.wait((following,))
        every = [event async for event in follow_events(live, 0, False)]
        assert sum(event.type == "input" for event in every) >= 40
        assert {event.type for event in seen} == set(wanted)
        block_id = seen[0].fields["block_id"]
        # Its time stands still: what has come is sent once, if it looks before the end of the block, and then the rest.
        assert len(_spans(seen, block_id)) <= 2
        assert _spans(seen, block_id)[-1][1] == _spans(every, block_id)[-1][1]
        await conversation.close()


def _spans(events: list[Event], block_id: str) -> list[tuple[int, int]]:
    growth = (event for event in events if event.type == "agent_block_delta" and event.fields["block_id"] == block_id)
    return [tuple(event.fields["span"]) for event in growth]


@async_test
async def test_events_from_a_number_on_are_read_from_there_and_others_have_their_turn(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.run("true")
        live = conversation.live
        every = [event async for event in follow_events(live, 0, False)]
        events = live.layout.events
        own = events.stat().st_size
        # More of them than a shell makes in a reasonable time: copies of the last, with numbers that go on.
        line, last = events.read_bytes().splitlines()[-1], every[-1].seq
        copies = [line.replace(b'"seq":%d,' % last, b'"seq":%d,' % seq, 1) for seq in range(last + 1, last + 8_000)]
        with events.open("ab") as file:
            file.write(b"".join([copy + b"\n" for copy in copies]))

        read = ReadBytes(monkeypatch)
        for first in (last + 7_990, last + 7_999, last + 8_005):
            numbers = [event.seq async for event in follow_events(live, first, False)]
            assert numbers == list(range(first, last + 8_000))
        assert read.count < 2 * events.stat().st_size  # three times all of it, if each read all

        async def read_all() -> None:
            numbers = [event.seq async for event in follow_events(live, 0, False)]
            assert numbers == list(range(every[0].seq, last + 8_000))

        turns = await turns_beside(read_all())
        assert turns >= events.stat().st_size // (128 * 1024)
        os.truncate(events, own)
