"""The feed of a home over a WebSocket: the list, its changes and pictures of screens, for who may see them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from blockpty import Client
from blockpty.surfaces.private_files import owner_token
from blockpty.surfaces.tokens import add_token, remove_token
from tests.support.async_tests import async_test
from tests.support.http_client import http, serving

pytestmark = pytest.mark.needs("bash")


def fed(home: Path, url: str, *, token: str | None = None) -> connect:
    headers = {"Authorization": f"Bearer {token or owner_token(home)}"}
    return connect(f"{url.replace('http', 'ws')}/v1/ws", additional_headers=headers, proxy=None, max_size=None)


class Viewer:
    """What a client has of the home: lines, pictures and whatever else was sent."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self.messages: list[dict[str, Any]] = []
        self.lines: dict[str, dict[str, Any]] = {}
        self.pictures: dict[str, dict[int, str]] = {}

    async def next(self) -> None:
        content = json.loads(await self._socket.recv())
        self.messages.append(content)
        if content["type"] == "conversation":
            self.lines[content["conversation"]["conversation_id"]] = content["conversation"]
        elif content["type"] == "gone":
            del self.lines[content["conversation_id"]]
        elif content["type"] == "picture":
            rows = self.pictures.setdefault(content["conversation_id"], {})
            for row, runs in content["lines"].items():
                rows[int(row)] = "".join(run["text"] for run in runs).rstrip()

    async def until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            await self.next()

    async def error(self, frame: str) -> str:
        """Send a frame and return the code of the error that answers it."""
        before = len(self.messages)
        await self._socket.send(frame)
        await self.until(lambda: any(message["type"] == "error" for message in self.messages[before:]))
        return str(self.messages[-1]["error"]["code"])


@async_test(timeout_seconds=20)
async def test_the_list_comes_first_and_then_what_changes(home: Path) -> None:
    async with serving(home) as url, Client(home) as client:
        one = await client.open("c1", shell="bash")
        async with fed(home, url) as socket:
            viewer = Viewer(socket)
            await viewer.until(lambda: bool(viewer.messages) and viewer.messages[-1]["type"] == "listed")
            assert [message["type"] for message in viewer.messages] == ["hello", "conversation", "listed"]
            (listed,) = (await client.list()).to_dict()["conversations"]
            assert {**viewer.lines["c1"], "used_ts": 0} == {**listed, "used_ts": 0}
            await one.run("sh -c 'exit 4'")
            await viewer.until(lambda: (viewer.lines["c1"]["last"] or {}).get("exit_status") == 4)
            await one.close()
            await one.delete()
            await viewer.until(lambda: not viewer.lines)


@async_test(timeout_seconds=20)
async def test_pictures_have_the_rows_that_changed(home: Path) -> None:
    async with serving(home) as url, Client(home) as client:
        one = await client.open("c1", shell="bash")
        await one.run("printf 'first\\nsecond\\n'")
        async with fed(home, url) as socket:
            viewer = Viewer(socket)
            await socket.send(json.dumps({"type": "screens", "ids": ["c1"], "fps": 10}))
            await viewer.until(lambda: "second" in viewer.pictures.get("c1", {}).values())
            assert len(viewer.pictures["c1"]) == 24
            await one.run("echo third")
            await viewer.until(lambda: "third" in viewer.pictures["c1"].values())
            last = next(message for message in reversed(viewer.messages) if message["type"] == "picture")
            assert 0 < len(last["lines"]) < 24
            screen = json.loads((await one.screen(format="json")).to_dict()["content"])
            shown = ["".join(run["text"] for run in line["runs"]).rstrip() for line in screen["lines"]]
            await viewer.until(lambda: [viewer.pictures["c1"][row] for row in range(24)] == shown)
        await one.close()


@async_test(timeout_seconds=20)
async def test_a_token_for_one_conversation_gets_that_one(home: Path) -> None:
    async with serving(home) as url, Client(home) as client:
        token = add_token(home, "narrow", "read", ("c2",), 1)
        opened = [await client.open(name, shell="bash") for name in ("c1", "c2")]
        async with fed(home, url, token=token) as socket:
            viewer = Viewer(socket)
            await viewer.until(lambda: bool(viewer.messages) and viewer.messages[-1]["type"] == "listed")
            assert [*viewer.lines] == ["c2"]
            asked = json.dumps({"type": "screens", "ids": ["c1"]})
            assert await viewer.error(asked) == "forbidden"
            assert viewer.pictures == {}
        for one in opened:
            await one.close()


@async_test(timeout_seconds=20)
async def test_what_is_no_request_is_refused_and_the_feed_goes_on(home: Path) -> None:
    async with serving(home) as url, Client(home) as client, fed(home, url) as socket:
        viewer = Viewer(socket)
        for frame in (
            "{", "[]", '{"type": "input", "data": "x"}', '{"type": "screens"}',
            '{"type": "screens", "ids": ["c1"], "fps": 1000}', '{"type": "screens", "ids": "c1"}',
            '{"type": "screens", "ids": ["../c1"]}', json.dumps({"type": "screens", "ids": ["c1"] * 25}),
        ):  # fmt: skip
            assert await viewer.error(frame) == "bad_request", frame
        one = await client.open("c1", shell="bash")
        await viewer.until(lambda: "c1" in viewer.lines)
        await one.close()


@async_test(timeout_seconds=20)
async def test_who_has_lost_the_token_gets_no_more_pictures(home: Path) -> None:
    """Nothing changes in the list meanwhile: it is the pictures that notice."""
    async with serving(home) as url, Client(home) as client:
        token = add_token(home, "lent", "read", None, 1)
        one = await client.open("c1", shell="bash")
        await one.exec_block("while [ ! -e stop ]; do date +%N; sleep 0.02; done", cwd=str(home))
        async with fed(home, url, token=token) as socket:
            viewer = Viewer(socket)
            await socket.send(json.dumps({"type": "screens", "ids": ["c1"], "fps": 10}))
            await viewer.until(lambda: "c1" in viewer.pictures)
            remove_token(home, "lent")
            with pytest.raises(ConnectionClosed) as closed:
                await viewer.until(lambda: False)
            assert closed.value.rcvd is not None and closed.value.rcvd.code == 4401
        (home / "stop").touch()
        await one.wait_for({"token": "PROMPT"})
        await one.close()


@async_test(timeout_seconds=20)
async def test_without_a_token_there_is_no_feed(home: Path) -> None:
    async with serving(home) as url:
        with pytest.raises(InvalidStatus) as refused:
            async with fed(home, url, token="bp_" + "0" * 40):
                pass
        assert refused.value.response.status_code == 401


@async_test(timeout_seconds=20)
async def test_the_same_comes_as_server_sent_events(home: Path) -> None:
    async with serving(home) as url, Client(home) as client, http(home, url) as plain:
        await client.open("c1", shell="bash")
        await client.open("c2", shell="bash")
        async with plain.stream("GET", "/v1/feed") as response:
            assert response.status_code == 200
            events = httpx2.EventSource(response, max_event_size=None).__aiter__()
            messages = []
            while not messages or messages[-1]["type"] != "listed":
                messages.append(json.loads((await anext(events)).data))
            assert [one["conversation"]["conversation_id"] for one in messages[:-1]] == ["c2", "c1"]
            await (await client.conversation("c2")).run("false")
            async for message in events:
                content = json.loads(message.data)
                assert message.event == content["type"] == "conversation"
                assert content["conversation"]["conversation_id"] == "c2"
                if (content["conversation"]["last"] or {}).get("exit_status") == 1:
                    break
        # Only of what a token may see, and not without one.
        one = add_token(home, "of-c1", "read", ("c1",), 1)
        async with plain.stream("GET", "/v1/feed", headers={"Authorization": f"Bearer {one}"}) as response:
            events = httpx2.EventSource(response, max_event_size=None).__aiter__()
            first, second = [json.loads((await anext(events)).data) for _ in range(2)]
            assert first["conversation"]["conversation_id"] == "c1" and second["type"] == "listed"
        assert (await plain.get("/v1/feed", headers={"Authorization": "Bearer none"})).status_code == 401
        for name in ("c1", "c2"):
            await (await client.conversation(name)).close()
