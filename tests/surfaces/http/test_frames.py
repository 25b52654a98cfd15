"""Frames of one WebSocket: one at a time, errors as messages, and nothing of a token that was removed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from blockpty.errors import BadRequest, Unauthorized
from blockpty.surfaces.http.frames import Frames, accept, object_of
from blockpty.surfaces.http.guard import PROTOCOL
from tests.support.async_tests import async_test


class Wire:
    """The other side: what was sent, and messages to come."""

    def __init__(self, *messages: Mapping[str, Any]) -> None:
        self.sent: list[Any] = []
        self._messages = [*messages, {"type": "websocket.disconnect"}]

    async def send(self, message: Any) -> None:
        await asyncio.sleep(0)
        self.sent.append(message)

    async def receive(self) -> Any:
        return self._messages.pop(0)


@pytest.mark.parametrize(("offered", "chosen"), [([], None), (["other"], None), (["other", PROTOCOL], PROTOCOL)])
@async_test
async def test_only_our_own_protocol_is_chosen(offered: list[str], chosen: str | None) -> None:
    wire = Wire()
    await accept({"subprotocols": offered}, wire.send)
    assert wire.sent == [{"type": "websocket.accept", "subprotocol": chosen}]


@async_test
async def test_an_error_of_one_message_is_sent_and_the_next_is_read() -> None:
    wire, seen = Wire({"type": "websocket.receive", "text": "1"}, {"type": "websocket.receive", "text": "2"}), []
    frames = Frames(wire.receive, wire.send, lambda: None)

    async def take(message: Mapping[str, Any]) -> None:
        seen.append(message["text"])
        if message["text"] == "1":
            raise BadRequest("not that")

    await frames.read(take)
    assert seen == ["1", "2"]
    (error,) = [json.loads(frame["text"]) for frame in wire.sent]
    assert error["type"] == "error" and error["error"]["code"] == "bad_request"


@async_test
async def test_nothing_is_sent_or_taken_without_a_token() -> None:
    wire = Wire({"type": "websocket.receive", "text": "1"})

    def renew() -> None:
        raise Unauthorized("it was removed")

    frames = Frames(wire.receive, wire.send, renew)
    with pytest.raises(Unauthorized):
        await frames.tell({"type": "hello"})
    with pytest.raises(Unauthorized):
        await frames.read(lambda message: pytest.fail("it was taken"))
    assert not wire.sent


@async_test
async def test_closing_what_has_gone_is_no_error() -> None:
    async def gone(message: Any) -> None:
        raise OSError("gone")

    await Frames(Wire().receive, gone, lambda: None).close(1000)


@pytest.mark.parametrize(
    ("message", "content"),
    [
        ({"text": '{"type": "ack"}'}, {"type": "ack"}), ({"text": "[1]"}, None), ({"text": "{"}, None),
        ({"bytes": b"{}"}, None), ({"text": None}, None), ({"text": "[" * 100_000}, None),
    ],
)  # fmt: skip
def test_the_object_in_a_text_frame(message: dict[str, Any], content: Any) -> None:
    assert object_of(message) == content
