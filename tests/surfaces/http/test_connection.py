"""Connections of HTTP: strangers keep no client out, and what is no HTTP ends them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from urllib.parse import urlsplit

from blockpty.surfaces.private_files import owner_token
from tests.support.async_tests import async_test
from tests.support.http_client import http, serving


@async_test
async def test_a_connection_that_has_shown_a_token_is_no_stranger(home: Path) -> None:
    async with serving(home) as url, http(home, url) as client:
        assert (await client.get("/v1/conversations")).status_code == 200
        place = urlsplit(url)
        idle = [await asyncio.open_connection(place.hostname, place.port) for _ in range(200)]
        streams = list(client._transport._pool.connections)  # type: ignore[attr-defined]
        assert (await client.get("/v1/conversations")).status_code == 200
        assert streams == list(client._transport._pool.connections)  # type: ignore[attr-defined]
        ended = [reader for reader, _ in idle[:100]]
        async with asyncio.timeout(5):
            for reader in ended:
                try:
                    assert await reader.read() == b""
                except ConnectionResetError:
                    continue
        for _, writer in idle:
            writer.close()


@async_test
async def test_a_length_that_is_said_twice_closes_the_connection(home: Path) -> None:
    async with serving(home) as url:
        place = urlsplit(url)
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        smuggled = b"GET /healthz HTTP/1.1\r\nHost: localhost:%d\r\n\r\n" % place.port
        writer.write(
            b"POST /v1/search HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAuthorization: Bearer %s\r\n"
            b"Content-Type: application/json\r\nContent-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
            % (place.port, owner_token(home).encode(), 5 + len(smuggled)) + smuggled
        )  # fmt: skip
        async with asyncio.timeout(10):
            answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 400 "), answer
        assert answer.count(b"HTTP/1.1 ") == 1
        writer.close()
