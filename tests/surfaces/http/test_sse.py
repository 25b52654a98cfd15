"""Events over HTTP: in order, resumable, live with data, and at no cost to a server whose client does not read."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from blockpty import Client
from blockpty.surfaces.http import sse
from tests.support.async_tests import async_test
from tests.support.http_client import http, serving

pytestmark = pytest.mark.needs("bash")

EVENTS = "/v1/conversations/c1/events"


async def messages(response: httpx2.Response) -> AsyncIterator[tuple[int, dict[str, Any]]]:
    """Yield number and content, as a browser's EventSource sees them."""
    async for message in httpx2.EventSource(response, max_event_size=None):
        if message.event == "end":
            return
        content = json.loads(message.data)
        assert content["type"] == message.event and content["seq"] == int(message.id)
        yield int(message.id), content


@async_test
async def test_resumed_where_the_last_one_was_seen(home: Path) -> None:
    async with serving(home) as url, Client(home) as client, http(home, url) as plain:
        conversation = await client.open("c1", shell="bash")
        await conversation.run("echo one")
        async with plain.stream("GET", EVENTS) as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            first = []
            async for number, content in messages(response):
                first.append(number)
                if content["type"] == "agent_block_end":
                    break
        assert first == list(range(len(first)))
        await conversation.run("echo two")
        rest = []
        async with plain.stream("GET", EVENTS, headers={"Last-Event-ID": str(first[-1])}) as response:
            async for number, content in messages(response):
                rest.append(number)
                if content["type"] == "agent_block_delta":
                    assert content["data"] == "two\n" and content["span"]
                if content["type"] == "agent_block_end":
                    break
        assert rest[0] == first[-1] + 1 and rest == list(range(rest[0], rest[0] + len(rest)))
        recorded = await plain.get(EVENTS, params={"follow": "false", "from_seq": str(rest[0])})
        assert recorded.text.endswith("event: end\ndata: {}\n\n")
        assert '"data"' not in recorded.text  # on record is the span; the text is sent live only
        await conversation.close()


@async_test
async def test_what_is_no_event_or_no_conversation(home: Path) -> None:
    async with serving(home) as url, Client(home) as client, http(home, url) as plain:
        assert (await plain.get(EVENTS)).status_code == 404
        conversation = await client.open("c1", shell="bash")
        for headers, params in (({"Last-Event-ID": "x"}, {}), ({}, {"from_seq": "-1"}), ({}, {"follow": "perhaps"})):
            answer = await plain.get(EVENTS, headers=headers, params=params)
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_request")
        await conversation.close()


@pytest.mark.linux
@pytest.mark.timeout(300)
@async_test(timeout_seconds=290)
async def test_a_client_that_does_not_read_costs_no_memory_and_misses_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # How long the commands take depends on the machine; one that reads nothing for that long is disconnected.
    monkeypatch.setattr(sse, "STALLED_SECONDS", 3600.0)
    async with serving(home) as url, Client(home) as client, http(home, url) as plain:
        conversation = await client.open("c1", shell="bash")
        # What engine, index and allocator take once, and keep of what came last, is there before.
        for _ in range(60):
            await conversation.run(f": {'x' * 200_000}; echo done")
        async with plain.stream("GET", EVENTS) as response:
            reader = messages(response)
            assert (await anext(reader))[0] == 0
            before = resident_kib()
            # Every command makes some events; with its text each is kilobytes that the server could have queued.
            for _ in range(120):
                await conversation.run(f": {'x' * 200_000}; echo done")
            grown = resident_kib() - before
            seen = [0]
            async for number, _content in reader:
                seen.append(number)
                if _content["type"] == "agent_block_end" and len(seen) > 180 * 5:
                    break
        assert seen == list(range(len(seen)))
        # After it had stopped reading 24 MB of commands went by twice (begin and end), of which half would be too much;
        # client and server are both in this process.
        assert grown < 24 * 1024, f"{grown} KiB"
        await conversation.close()


@async_test
async def test_subscribers_do_not_hold_each_other_up(home: Path) -> None:
    async with serving(home) as url, Client(home) as client, http(home, url) as plain:
        conversation = await client.open("c1", shell="bash")

        async def ends(number: int) -> int:
            seen = 0
            async with plain.stream("GET", EVENTS) as response:
                async for _, content in messages(response):
                    seen += content["type"] == "agent_block_end"
                    if seen == number:
                        return seen
            raise AssertionError("the stream ended")

        readers = [asyncio.ensure_future(ends(20)) for _ in range(25)]
        for _ in range(20):
            await conversation.run("true")
        assert await asyncio.gather(*readers) == [20] * 25
        await conversation.close()


def resident_kib() -> int:
    """Return the memory that this process has now; its greatest, ever, says nothing where other tests came before."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") // 1024
