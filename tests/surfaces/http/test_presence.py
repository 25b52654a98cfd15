"""Who watches a conversation: counted by socket, named by token, followed without a queue."""

from __future__ import annotations

from contextlib import ExitStack, aclosing
from pathlib import Path

import pytest

from blockpty import Client
from blockpty.surfaces.http.presence import Presence, Present
from blockpty.surfaces.tokens import add_token
from tests.support.async_tests import async_test
from tests.support.http_client import serving
from tests.support.terminal_sockets import Terminal, joined


@async_test
async def test_a_follower_gets_what_is_so_and_what_changes() -> None:
    presence = Presence()
    async with aclosing(presence.follow("c1")) as changes:
        assert await anext(changes) == Present()
        with presence.here("c1", "ann"):
            with presence.here("c1", "ann"), presence.here("c2", "bob"):
                assert await anext(changes) == Present(("ann", "ann"))
            assert await anext(changes) == Present(("ann",))
            with presence.asking("c1", "bob"):
                assert await anext(changes) == Present(("ann",), ("bob",))
        assert await anext(changes) == Present()


@async_test
async def test_who_asks_first_is_first() -> None:
    presence = Presence()
    with presence.asking("c1", "ann") as ann, presence.asking("c2", "eve") as eve, ExitStack() as stack:
        with presence.asking("c1", "bob") as bob, presence.asking("c1", "ann") as again:
            carol = stack.enter_context(presence.asking("c1", "carol"))
            firsts = [one.name for one in (ann, bob, again, carol, eve) if one.is_first.is_set()]
            assert firsts == ["ann", "ann", "eve"], "all sockets of a person together"
            presence.keep("c1", "dan")
            assert [one.kept.done() for one in (ann, bob, again, carol, eve)] == [True, True, True, True, False]
            assert carol.kept.result() == "dan"
        assert not carol.is_first.is_set()
    with presence.asking("c1", "bob") as bob, presence.asking("c1", "carol") as carol:
        assert [bob.is_first.is_set(), carol.is_first.is_set(), bob.kept.done()] == [True, False, False]


@pytest.mark.needs("bash")
@async_test
async def test_sockets_are_notified_who_else_watches(home: Path) -> None:
    async with serving(home) as url, Client(home, start=False) as client:
        conversation = await client.open("c1", shell="bash")
        token = add_token(home, "helper", "read", None, 0)
        async with joined(home, url, "?watchers=true") as first:
            terminal = Terminal(first)
            assert await terminal.until_message("watchers") == {
                "type": "watchers", "count": 1, "names": ["owner"], "asking": [],
            }  # fmt: skip
            async with joined(home, url, token=token):
                terminal.messages.clear()
                assert await terminal.until_message("watchers") == {
                    "type": "watchers", "count": 2, "names": ["helper", "owner"], "asking": [],
                }  # fmt: skip
            terminal.messages.clear()
            assert (await terminal.until_message("watchers"))["count"] == 1
        await conversation.close()
