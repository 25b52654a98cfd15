"""The socket of a conversation that is opened again: what is asked for then, and how long it waits."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import Any, cast

from websockets.exceptions import ConnectionClosedError, ConnectionClosedOK
from websockets.frames import Close

from blockpty.errors import NotFound
from blockpty.surfaces.live_socket import ConnectionChange, LiveSocket, conversation_target, growing
from tests.support.async_tests import async_test


class Connection:
    """A connection that has some frames, and is then closed."""

    def __init__(self, frames: Iterable[Any], code: int | None) -> None:
        self._frames = iter(frames)
        self._code = code
        self.sent: list[Any] = []

    async def recv(self) -> Any:
        for frame in self._frames:
            return frame
        if self._code == 1000:
            raise ConnectionClosedOK(Close(1000, ""), None)
        raise ConnectionClosedError(None if self._code is None else Close(self._code, ""), None)

    async def send(self, frame: Any) -> None:
        self.sent.append(frame)


class Server:
    """A client whose connections are given; None is an attempt that fails."""

    def __init__(self, *connections: Connection | None) -> None:
        self._connections = list(connections)
        self.targets: list[str] = []

    async def websocket(self, target: str) -> Connection:
        self.targets.append(target)
        found = self._connections.pop(0)
        if found is None:
            raise NotFound("no server answers")
        return found


async def taken(socket: LiveSocket) -> list[Any]:
    frames = cast("AsyncGenerator[Any, None]", socket.frames())
    async with aclosing(frames):
        return [frame async for frame in frames]


@async_test
async def test_it_goes_on_where_it_was_after_a_lost_connection() -> None:
    server = Server(Connection([json.dumps({"seq": 7}), b"ab"], None), None, None, Connection([b"cd"], 1000))
    numbers = itertools.count(3)
    socket = LiveSocket(server, lambda: conversation_target("c1", next(numbers)), lambda: itertools.repeat(0.0))
    await socket.open()
    assert await taken(socket) == [
        {"seq": 7}, b"ab", ConnectionChange(False), ConnectionChange(False, "no server answers"),
        ConnectionChange(False, "no server answers"), ConnectionChange(True), b"cd",
    ]  # fmt: skip
    assert [target.partition("?")[2].partition("&")[0] for target in server.targets] == [
        f"from_seq={number}" for number in range(3, 7)
    ]


@async_test
async def test_a_close_for_good_is_the_end() -> None:
    for code in (1000, 4401):
        server = Server(Connection([b"x"], code))
        socket = LiveSocket(server, lambda: "/v1/ws")
        await socket.open()
        assert await taken(socket) == [b"x"]
        assert len(server.targets) == 1


@async_test
async def test_what_is_sent_without_a_connection_is_dropped() -> None:
    connection = Connection([], 1000)
    socket = LiveSocket(Server(connection), lambda: "/v1/ws")
    assert not socket.live and not await socket.send(b"lost")
    await socket.open()
    assert socket.live and await socket.send(b"typed")
    await socket.acknowledge(5)
    assert connection.sent == [b"typed", '{"type": "ack", "cursor": 5}']


def test_the_pauses_grow_to_five_seconds() -> None:
    assert list(itertools.islice(growing(), 7)) == [0.25, 0.5, 1.0, 2.0, 4.0, 5.0, 5.0]
