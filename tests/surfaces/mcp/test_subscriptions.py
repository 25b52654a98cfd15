"""Subscriptions to resources: a client hears that a screen or the blocks have changed, until it wants no more."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import ResourceUpdatedNotification

from tests.support.async_tests import async_test
from tests.support.mcp_clients import connected, ok

# The version of 2026 has no such request.
pytestmark = [
    pytest.mark.needs("bash"),
    pytest.mark.parametrize("connection", ["stdio 2025", "http 2025"]),
    pytest.mark.filterwarnings("ignore:resources/"),
]
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


@async_test
async def test_a_client_hears_of_changes_until_it_wants_no_more(home: Path, connection: str) -> None:
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
