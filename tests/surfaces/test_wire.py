"""One call over a unix socket: answers whole, begun, broken off or missing."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from blockpty import Client
from blockpty.errors import ConnectionLost, InternalError
from blockpty.surfaces import launching
from blockpty.surfaces.private_files import server_directory
from blockpty.surfaces.wire import Exchange, Unanswered, ask
from tests.support.async_tests import async_test

OK = b'{"ok": true}'


async def answered(*parts: bytes, content: bytes | None = None) -> tuple[tuple[int, bytes], bytes]:
    """Ask a server that answers with these bytes, in pieces; return what came of it and what was asked."""
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=theirs)

    async def answer() -> bytes:
        head = await reader.readuntil(b"\r\n\r\n")
        body = await reader.readexactly(len(content or b""))
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0)
        writer.close()
        return head + body

    answering = asyncio.ensure_future(answer())
    found = await ask(ours, "POST", "/v1/x", {"Authorization": "Bearer secret"}, content)
    return found, await answering


@async_test
async def test_an_answer_is_taken_whole_however_it_comes() -> None:
    whole = b"HTTP/1.1 409 \r\ncontent-type: application/json\r\nContent-Length: 12\r\n\r\n" + OK
    for parts in ([whole], [whole[:5], whole[5:]], [whole[:-1], whole[-1:]], [bytes([byte]) for byte in whole]):
        found, asked = await answered(*parts, content=b'{"a": 1}')
        assert found == (409, OK)
    assert asked.startswith(b"POST /v1/x HTTP/1.0\r\n") and asked.endswith(b'\r\n\r\n{"a": 1}')
    assert b"\r\nAuthorization: Bearer secret\r\n" in asked and b"\r\nContent-Length: 8\r\n" in asked


@async_test
async def test_an_answer_can_be_waited_for_by_blocking_and_then_by_a_loop() -> None:
    ours, theirs = socket.socketpair()
    exchange = Exchange(ours, "GET", "/v1/x", {}, None)
    assert theirs.recv(4096).startswith(b"GET /v1/x HTTP/1.0\r\n")
    theirs.sendall(b"HTTP/1.1 200 OK\r\n\r\n ")
    assert not exchange.wait(0)
    rest = asyncio.ensure_future(exchange.rest())
    theirs.sendall(OK)
    theirs.close()
    assert await rest == (200, b" " + OK)

    ours, theirs = socket.socketpair()
    exchange = Exchange(ours, "GET", "/v1/x", {}, None)
    theirs.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + OK)
    theirs.shutdown(socket.SHUT_WR)
    assert exchange.wait() and exchange.answer() == (200, OK)
    theirs.recv(4096)
    assert theirs.recv(4096) == b"", "the connection is closed"
    theirs.close()


@async_test
async def test_a_long_answer_has_no_length() -> None:
    found, _ = await answered(b"HTTP/1.1 200 OK\r\n\r\n ", b"  ", OK)
    assert found == (200, b"   " + OK)


@pytest.mark.parametrize(
    "parts", [(), (b"HTTP/1.1 200",), (b"nonsense\r\n\r\n",), (b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n" + OK,)]
)
@async_test
async def test_no_answer_and_half_an_answer(parts: Sequence[bytes]) -> None:
    with pytest.raises(Unanswered) as found:
        await answered(*parts)
    assert found.value.sent


@contextlib.asynccontextmanager
async def pretending(home: Path, *answers: bytes) -> AsyncIterator[list[bytes]]:
    """Stand in for the server of a home, with one answer for each request; gives the requests."""
    asked: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        asked.append(head.partition(b"\r\n")[0])
        writer.write(answers[len(asked) - 1])
        writer.close()

    path = str(server_directory(home) / launching.SOCKET_NAME)
    async with await asyncio.start_unix_server(answer, path):
        yield asked


def http(content: Any) -> bytes:
    return b"HTTP/1.1 200 OK\r\n\r\n" + json.dumps(content).encode()


@async_test
async def test_what_only_looks_is_asked_for_again_and_nothing_else(home: Path) -> None:
    found = {"ok": True, "conversations": []}
    async with pretending(home, http(found)[:-3], http(found), b"", b"", http([])) as asked, Client(home) as client:
        assert (await client.list()).conversations == []
        assert len(asked) == 2, "half an answer, and then a whole one"
        conversation = await client.conversation("c1")
        with pytest.raises(ConnectionLost, match="lost before the answer"):
            await conversation.run("true")
        assert len(asked) == 3, "it may have run"
        with pytest.raises(ConnectionLost, match="lost before the answer"):
            await conversation.enter()
        with pytest.raises(InternalError, match="not one of a blockpty server"):
            await client.list()
        assert len(asked) == 5
