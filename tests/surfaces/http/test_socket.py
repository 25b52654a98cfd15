"""A terminal over a WebSocket: the recorded bytes, exactly, from a cursor on; input, sizes and events beside them."""

from __future__ import annotations

import asyncio
import base64
import json
import socket as socket_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import InvalidStatus

from blockpty import Client, UserInControl
from blockpty.surfaces.http import socket as endpoint
from blockpty.surfaces.tokens import add_token
from tests.support.async_tests import async_test
from tests.support.http_client import serving
from tests.support.terminal_sockets import Terminal, joined

pytestmark = pytest.mark.needs("bash")


@async_test
async def test_bytes_input_sizes_and_events(home: Path) -> None:
    async with serving(home) as url, Client(home) as client:
        conversation = await client.open("c1", shell="bash")
        await conversation.run("echo before")
        async with joined(home, url, "?from_cursor=0") as socket:
            terminal = Terminal(socket)
            await terminal.next()
            assert terminal.messages[0]["status"]["mode"] == "idle" and terminal.cursor == 0
            await terminal.until(b"before")
            await socket.send(json.dumps({"type": "resize", "cols": 132, "rows": 43}))
            await socket.send(b"stty size; read -r a; echo got-$a\r")
            await terminal.until(b"43 132")
            await socket.send(json.dumps({"type": "input", "data": "x1\r"}))
            await terminal.until(b"got-x1")
            event = await terminal.until_message("event")
            assert event["event"]["conversation_id"] == "c1"
            await conversation.wait_for({"token": "PROMPT"})
            for wrong in ("no json", "[]", '{"type": "dance"}', '{"type": "input", "keys": "x"}', '{"type": "resize"}'):
                await socket.send(wrong)
            while sum(content["type"] == "error" for content in terminal.messages) < 5:
                await terminal.next()
            # Joining late is exact: what came over the socket is the recorded stream, nonces redacted.
            while terminal.cursor < (await conversation.status()).cursor:
                await terminal.next()
        whole = await _stream(conversation, terminal.cursor)
        assert b"".join(data for _, data in terminal.pieces) == whole
        user = [one async for one in conversation.events(follow=False) if one.fields.get("author") == "user"]
        assert user
        await conversation.close()


async def _stream(conversation: Any, end: int) -> bytes:
    parts, cursor = [], 0
    while cursor < end:
        piece = await conversation.read(cursor, view="raw", max_bytes=min(1 << 20, end - cursor))
        parts.append(base64.b64decode(piece.data_b64))
        cursor = piece.cursor
    return b"".join(parts)


@async_test
async def test_events_of_output_have_their_text_or_only_its_span(home: Path) -> None:
    async with serving(home) as url, Client(home) as client:
        conversation = await client.open("c1", shell="bash")
        await conversation.run("echo some output")
        found: dict[str, list[dict[str, Any]]] = {}
        for query in ("?from_seq=0", "?from_seq=0&data=false"):
            async with joined(home, url, query) as socket:
                terminal = Terminal(socket)
                while not any(
                    message.get("event", {}).get("type") == "agent_block_end" for message in terminal.messages
                ):
                    await terminal.next()
            events = [message["event"] for message in terminal.messages if message["type"] == "event"]
            found[query] = [event for event in events if event["type"] == "agent_block_delta"]
        whole, bare = found.values()
        assert "".join(event["data"] for event in whole) == "some output\n"
        assert bare == [{name: value for name, value in event.items() if name != "data"} for event in whole]
        await conversation.close()


@async_test
async def test_a_slow_viewer_is_sent_on_by_cursor(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "LIMIT_BYTES", 256 * 1024)
    async with serving(home) as url, Client(home) as client:
        conversation = await client.open("c1", shell="bash")
        # The system holds some megabytes for a connection by itself: here it may hold little, and the library nothing.
        raw = socket_module.socket()
        raw.setsockopt(socket_module.SOL_SOCKET, socket_module.SO_RCVBUF, 64 * 1024)
        raw.setblocking(False)
        await asyncio.get_running_loop().sock_connect(raw, (urlsplit(url).hostname, urlsplit(url).port))
        async with joined(home, url, "?events=false", sock=raw, max_queue=1) as socket:
            terminal = Terminal(socket)
            await terminal.next()
            # Next to nothing is taken while 19 MB go by; then the end is near at once, and what lies between is named.
            result = await conversation.run("seq 1 2500000; echo the'' end", timeout_ms=60_000)
            assert result.block.out_bytes > 18_000_000
            await terminal.until(b"the end\r\n")
            skipped = sum(content["skipped_bytes"] for content in terminal.messages if content["type"] == "resync")
            taken = sum(len(data) for _, data in terminal.pieces)
            assert skipped > 10_000_000 and taken < 10_000_000
            for begin, data in terminal.pieces[-3:]:
                piece = await conversation.read(begin, view="raw", max_bytes=len(data))
                assert base64.b64decode(piece.data_b64 or "") == data
        await conversation.close()


@async_test
async def test_the_end_of_the_shell_is_reported(home: Path) -> None:
    async with serving(home) as url, Client(home) as client:
        conversation = await client.open("c1", shell="bash")
        async with joined(home, url) as socket:
            terminal = Terminal(socket)
            await conversation.close()
            await terminal.until_message("end")
        async with joined(home, url, "?from_cursor=0") as socket:
            terminal = Terminal(socket)
            await terminal.until_message("end")
            assert terminal.cursor == (await conversation.status()).cursor


@async_test
async def test_a_token_that_may_only_look(home: Path) -> None:
    token = add_token(home, "viewer", "read", ("c1",), 0)
    async with serving(home) as url, Client(home) as client:
        conversation = await client.open("c1", shell="bash")
        async with joined(home, url, token=token) as socket:
            terminal = Terminal(socket)
            await socket.send(b"echo never\r")
            assert (await terminal.until_message("error"))["error"]["code"] == "forbidden"
            await conversation.run("echo seen")
            await terminal.until(b"seen")
        inputs = [one.fields async for one in conversation.events(follow=False)]
        assert not any("never" in str(fields) for fields in inputs)
        await conversation.close()


@async_test
async def test_many_viewers_see_the_same(home: Path) -> None:
    async with serving(home) as url, Client(home) as client:
        conversation = await client.open("c1", shell="bash")

        async def view() -> bytes:
            async with joined(home, url, "?from_cursor=0&events=false") as socket:
                terminal = Terminal(socket)
                await terminal.until(b"finished\r\n")
                return b"".join(data for _, data in terminal.pieces).partition(b"finished\r\n")[0]

        viewers = [asyncio.ensure_future(view()) for _ in range(20)]
        await conversation.run("seq 1 5000; echo fin'ished'")
        seen = await asyncio.gather(*viewers)
        assert len(set(seen)) == 1 and b"\r\n5000\r\n" in seen[0]
        await conversation.close()


@async_test
async def test_control_over_a_socket(home: Path) -> None:
    async with serving(home) as url, Client(home) as client, Client(home, agent="bot") as agent:
        conversation = await client.open("c1", shell="bash")
        theirs = await agent.conversation("c1")
        async with joined(home, url) as socket:
            terminal = Terminal(socket)
            await terminal.next()
            taken = await terminal.answer(json.dumps({"type": "take_control", "who": "ann"}), "control")
            assert (taken["control"], taken["who"]) == ("user", "ann")
            with pytest.raises(UserInControl, match="ann"):
                await theirs.run("true")
            for wrong in ('{"type": "take_control", "who": 7}', '{"type": "take_control", "lease": false, "x": 1}'):
                assert (await terminal.answer(wrong, "error"))["error"]["code"] == "bad_request"
            assert (await terminal.answer('{"type": "release_control"}', "control"))["control"] == "agent"
            assert (await theirs.run("echo on")).output == "on\n"
            await terminal.answer('{"type": "take_control"}', "control")
            # Between two keys, and at the prompt: it stays where it was typed.
            for frame in (b"ec", json.dumps({"type": "paste", "text": "ho pa''st"}), b"ed\r"):
                await socket.send(frame)
            await terminal.until(b"pasted\r\n")
            wrong = '{"type": "paste", "text": 7}'
            assert (await terminal.answer(wrong, "error"))["error"]["code"] == "bad_request"
        # The lease outlives the socket: nothing is taken from a person whose connection broke a moment ago.
        assert (await conversation.status()).control == "user"
        agents_token = add_token(home, "robot", "admin", None, 0)
        async with joined(home, url, token=agents_token) as socket:
            terminal = Terminal(socket)
            await terminal.next()
            for frame in ('{"type": "take_control"}', '{"type": "release_control"}'):
                assert (await terminal.answer(frame, "error"))["error"]["code"] == "forbidden"
            refused = await terminal.answer(b"x", "error")
            assert refused["error"]["code"] in ("user_in_control", "no_session")
        await conversation.release_control()
        await conversation.close()


@async_test
async def test_only_the_types_of_events_that_were_asked_for_are_sent(home: Path) -> None:
    async with serving(home) as url, Client(home, start=False) as client:
        conversation = await client.open("c1", shell="bash")
        async with joined(home, url, "?from_seq=0&types=agent_block_begin,agent_block_end") as socket:
            terminal = Terminal(socket)
            await conversation.run("echo one")
            await conversation.run("echo two")
            while sum(content["type"] == "event" for content in terminal.messages) < 4:
                await terminal.next()
            types = [content["event"]["type"] for content in terminal.messages if content["type"] == "event"]
            assert types == ["agent_block_begin", "agent_block_end"] * 2
        with pytest.raises(InvalidStatus) as refused:
            async with joined(home, url, "?types=nothing"):
                pass
        assert refused.value.response.status_code == 400
        await conversation.close()
