"""Subscriptions to resources: a client is notified that a screen or the blocks have changed, until it unsubscribes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourceUpdated
from mcp_types import ResourceUpdatedNotification

import blockpty
from blockpty.surfaces.private_files import owner_token
from tests.support import http_client as http_server
from tests.support.async_tests import async_test
from tests.support.mcp_clients import connected, http_client, ok
from tests.support.profile import one_in_turn

pytestmark = [pytest.mark.needs("bash"), pytest.mark.filterwarnings("ignore:resources/")]
# The version of 2026 has a stream in the place of these requests.
requests = pytest.mark.parametrize("connection", one_in_turn(0, ("stdio 2025", "http 2025")))
streams = pytest.mark.parametrize("connection", one_in_turn(1, ("stdio 2026", "http 2026")))
BASE = "blockpty://conversations/c1"


class Heard:
    """What a client is notified of."""

    def __init__(self) -> None:
        self.uris: asyncio.Queue[str] = asyncio.Queue()

    async def __call__(self, message: Any) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            self.uris.put_nowait(str(message.params.uri))

    async def until(self, *uris: str) -> set[str]:
        """Return what came until there was a notification of each of these resources."""
        found: set[str] = set()
        while not found >= set(uris):
            found.add(await asyncio.wait_for(self.uris.get(), 30))
        return found


@requests
@async_test
async def test_a_client_is_notified_of_changes_until_it_unsubscribes(home: Path, connection: str) -> None:
    heard = Heard()
    async with connected(connection, home, message_handler=heard) as client:
        assert client.server_capabilities.resources is not None and client.server_capabilities.resources.subscribe
        await ok(client, "pty_open", conversation_id="c1", shell="bash")
        await client.subscribe_resource(f"{BASE}/blocks")  # type: ignore[deprecated]
        await client.subscribe_resource(f"{BASE}/screen")  # type: ignore[deprecated]
        await client.subscribe_resource(f"{BASE}/screen")  # type: ignore[deprecated]
        await ok(client, "pty_run", conversation_id="c1", command="echo one")
        both = {f"{BASE}/blocks", f"{BASE}/screen"}
        assert await heard.until(*both) == both
        shown = await client.read_resource(f"{BASE}/screen")
        assert "one" in shown.contents[0].text  # type: ignore[union-attr]

        await client.unsubscribe_resource(f"{BASE}/blocks")  # type: ignore[deprecated]
        await client.unsubscribe_resource(f"{BASE}/blocks")  # type: ignore[deprecated]
        while not heard.uris.empty():
            heard.uris.get_nowait()
        await ok(client, "pty_run", conversation_id="c1", command="echo two")
        assert await heard.until(f"{BASE}/screen") == {f"{BASE}/screen"}
        await ok(client, "pty_close", conversation_id="c1")


@requests
@async_test
async def test_what_cannot_be_followed(home: Path, connection: str) -> None:
    async with connected(connection, home) as client:
        for uri, what in (
            (f"{BASE}/screen", "c1"),
            ("blockpty://conversations/../screen", "conversation_id"),
            (f"{BASE}/blocks/b1", "cannot be followed"),
            (f"{BASE}/blocks?page=2", "cannot be followed"),
            (f"{BASE}/nothing", "no resource"),
        ):
            with pytest.raises(MCPError, match=what):
                await client.subscribe_resource(uri)  # type: ignore[deprecated]


@streams
@async_test
async def test_a_client_listens_until_it_leaves(home: Path, connection: str) -> None:
    async with connected(connection, home) as client:
        await ok(client, "pty_open", conversation_id="c1", shell="bash")
        screen, blocks = f"{BASE}/screen", f"{BASE}/blocks"
        wanted = [screen, blocks, screen, f"{BASE}/blocks/b1", "blockpty://conversations/missing/screen"]
        async with client.listen(resource_subscriptions=wanted, resources_list_changed=True) as stream:
            # What cannot be followed, and what this server says nothing of, the acknowledgement leaves out.
            assert list(stream.honored.resource_subscriptions or ()) == [screen, blocks]
            assert not stream.honored.resources_list_changed
            await ok(client, "pty_run", conversation_id="c1", command="echo one")
            heard: set[str] = set()
            async with asyncio.timeout(30):
                async for event in stream:
                    assert isinstance(event, ResourceUpdated)
                    heard.add(event.uri)
                    if heard == {screen, blocks}:
                        break
        shown = await client.read_resource(screen)
        assert "one" in shown.contents[0].text  # type: ignore[union-attr]
        # Another one begins anew, and nothing of the first is left.
        async with client.listen(resource_subscriptions=[blocks]) as stream:
            await ok(client, "pty_run", conversation_id="c1", command="echo two")
            async with asyncio.timeout(30):
                assert await anext(aiter(stream)) == ResourceUpdated(blocks)
        await ok(client, "pty_close", conversation_id="c1")


@async_test
async def test_a_stream_ends_with_its_server(home: Path) -> None:
    async with http_server.serving(home) as url, blockpty.Client(home) as ours:
        conversation = await ours.open("c1", shell="bash")
        async with (
            http_client(f"{url}/mcp", "2026", owner_token(home), tools=None) as client,
            client.listen(resource_subscriptions=[f"{BASE}/status"]) as stream,
        ):
            assert stream.honored.resource_subscriptions
            await conversation.close()
            await ours.post("/admin/stop")
            async with asyncio.timeout(5):
                # Not lost: it has an end.
                assert {event async for event in stream} <= {ResourceUpdated(f"{BASE}/status")}
