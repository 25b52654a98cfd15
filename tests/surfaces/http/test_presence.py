"""Who watches a conversation: counted by socket, named by token, followed without a queue."""

from __future__ import annotations

from contextlib import aclosing
from pathlib import Path

import pytest

from blockpty import Client
from blockpty.surfaces.http.presence import Presence
from blockpty.surfaces.tokens import add_token
from tests.support.async_tests import async_test
from tests.support.http_client import serving
from tests.surfaces.http.test_socket import Terminal, joined


@async_test
async def test_a_follower_gets_what_is_so_and_what_changes() -> None:
    presence = Presence()
    async with aclosing(presence.follow("c1")) as changes:
        assert await anext(changes) == ()
        with presence.here("c1", "ann"):
            with presence.here("c1", "ann"), presence.here("c2", "bob"):
                assert await anext(changes) == ("ann", "ann")
            assert await anext(changes) == ("ann",)
        assert await anext(changes) == ()


@pytest.mark.needs("bash")
@async_test
async def test_sockets_are_told_who_else_watches(home: Path) -> None:
    async with serving(home) as url, Client(home, start=False) as client:
        conversation = await client.open("c1", shell="bash")
        token = add_token(home, "helper", "read", None, 0)
        async with joined(home, url, "?watchers=true") as first:
            terminal = Terminal(first)
            assert await terminal.until_told("watchers") == {"type": "watchers", "count": 1, "names": ["owner"]}
            async with joined(home, url, token=token):
                terminal.told.clear()
                assert await terminal.until_told("watchers") == {
                    "type": "watchers", "count": 2, "names": ["helper", "owner"],
                }  # fmt: skip
            terminal.told.clear()
            assert (await terminal.until_told("watchers"))["count"] == 1
        await conversation.close()
