"""A person asks another one for control of a conversation, over their sockets."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from blockpty import Client
from blockpty.runtime import control
from blockpty.surfaces.private_files import owner_token
from blockpty.surfaces.tokens import add_token, remove_token
from tests.support.async_tests import async_test
from tests.support.http_client import serving
from tests.support.terminal_sockets import Person, joined

pytestmark = pytest.mark.needs("bash")


@async_test
async def test_control_is_asked_for_given_and_kept(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(home) as url, Client(home, start=False) as client, AsyncExitStack() as stack:
        conversation = await client.open("c1", shell="bash")
        tokens = {name: add_token(home, name, "write", None, 0, "user") for name in ("ann", "bob", "carol", "dave")}
        tokens |= {"owner": owner_token(home), "robot": add_token(home, "robot", "admin", None, 0)}

        async def joining(name: str) -> Person:
            return Person(await stack.enter_async_context(joined(home, url, "?watchers=true", token=tokens[name])))

        ann, bob, carol, bob_again = [await joining(name) for name in ("ann", "bob", "carol", "bob")]
        await ann.does("keep_control")
        assert (await ann.sees("error"))["error"]["message"] == "no person has control of this conversation"
        # Where no person has control, asking takes it. The answer says which event is the first after it.
        await ann.does("ask_control")
        taken = await ann.sees("control")
        assert taken["who"] == "ann"
        events = [one async for one in conversation.events(0, follow=False) if one.type == "control"]
        assert [(one.seq < taken["seq"], one.fields["who"]) for one in events] == [(True, "ann")]
        await bob.does("ask_control")
        assert await bob.sees("asking") == {"type": "asking", "state": "waits", "who": "ann"}
        await ann.sees("watchers", asking=["bob"])
        await bob.does("keep_control")
        assert (await bob.sees("error"))["error"]["code"] == "user_in_control"
        await ann.does("keep_control")
        assert await bob.sees("asking") == {"type": "asking", "state": "kept", "who": "ann"}
        await ann.sees("watchers", asking=[])

        # Of two who ask the first gets it, in all places where that one asks; the other then asks that one.
        for one in (bob, carol, bob_again):
            await one.does("ask_control")
            await one.sees("asking", state="waits")
        await carol.does("ask_control")  # which changes nothing
        await ann.sees("watchers", asking=["bob", "carol"])
        await ann.does("release_control")
        for one in (bob, bob_again):
            assert (await one.sees("control"))["who"] == "bob"
        await bob.sees("watchers", asking=["carol"])
        # One who stops asking gets nothing; control of who goes is given to who asks then.
        await carol.does("stop_asking")
        await carol.sees("asking", state="ended")
        await bob.sees("watchers", asking=[])
        await carol.does("ask_control")
        await carol.sees("asking", state="waits")
        await ann.does("ask_control")
        await ann.sees("asking", state="waits")
        monkeypatch.setattr(control, "LEASE_SECONDS", 0.05)
        await bob._socket.close()
        await bob_again._socket.close()
        assert (await carol.sees("control"))["who"] == "carol"
        # An ask ends with its socket or its token, and its turn with it.
        dave, owner = await joining("dave"), await joining("owner")
        for one in (dave, owner):
            await one.does("ask_control")
            await one.sees("asking", state="waits")
        await carol.sees("watchers", asking=["ann", "dave", "owner"])
        await ann._socket.close()
        await carol.sees("watchers", asking=["dave", "owner"])
        remove_token(home, "dave")
        await carol.does("release_control")
        assert (await owner.sees("control"))["who"] == "owner"
        recorded = [one.fields async for one in conversation.events(0, follow=False) if one.type == "control"]
        assert [one["who"] for one in recorded if one["reason"] == "taken"] == ["ann", "bob", "bob", "carol", "owner"]

        robot = await joining("robot")
        await robot.does("ask_control")
        assert (await robot.sees("error"))["error"]["code"] == "forbidden"
        for wrong in ('{"type": "ask_control", "who": "eve"}', '{"type": "keep_control", "x": 1}'):
            refused = (await robot.answer(wrong, "error"))["error"]
            assert refused["code"] == "bad_request" and refused["hint"].startswith('{"type": "')
        await conversation.release_control()
        await conversation.close()
