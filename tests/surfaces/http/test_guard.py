"""S8, S9, S10: who may talk to the server at all: a foreign Host or page, no token are refused before anything runs."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Subprotocol

from blockpty.surfaces.http import server as server_module
from blockpty.surfaces.tokens import TokenBook, add_token, remove_token
from tests.support.async_tests import async_test
from tests.support.http_server import JSON_TYPE, Server, serving

PATHS = [
    ("GET", "/v1/conversations"),
    ("POST", "/v1/conversations"),
    ("GET", "/v1/conversations/c1/status"),
    ("POST", "/v1/conversations/c1/run"),
    ("GET", "/v1/conversations/c1/events"),
    ("GET", "/v1/conversations/c1/ws"),
    ("GET", "/openapi.json"),
    ("GET", "/metrics"),
    ("GET", "/healthz"),
    ("GET", "/readyz"),
    ("GET", "/docs"),
    ("POST", "/auth/code"),
    ("POST", "/auth/token"),
    ("POST", "/admin/stop"),
    ("POST", "/mcp"),
    ("GET", "/mcp"),
    ("DELETE", "/mcp"),
    ("GET", "/nothing-here"),
]
UPGRADE = [
    ("Connection", "Upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
]


def wrong_hosts(port: int) -> list[list[tuple[str, str]]]:
    named = [
        f"evil.test:{port}", "evil.test", f"127.0.0.1.evil.test:{port}", f"localhost.evil.test:{port}",
        "127.0.0.1:1", f"127.0.0.1:{port + 1}", f"localhost:{port + 1}", "127.0.0.1", "localhost", f":{port}", "",
        f"127.0.0.1:{port}.evil.test", f"evil.test@127.0.0.1:{port}", f"127.0.0.1:{port}, evil.test", f"0:{port}",
        f"127.1:{port}", f"2130706433:{port}", f"0.0.0.0:{port}", f"127.0.0.1.:{port}", f"127.0.0.1:0{port}",
    ]  # fmt: skip
    right = f"127.0.0.1:{port}"
    return [
        [],
        *([("Host", name)] for name in named),
        [("Host", right), ("Host", "evil.test")],
        [("Host", "evil.test"), ("Host", right)],
        [("Host", right), ("Host", right)],
    ]


@async_test
async def test_s8_a_request_that_came_by_another_name_is_refused_before_anything_runs(home: Path) -> None:
    async with serving(home) as server:
        wrong = []
        for hosts in wrong_hosts(server.port):
            for method, path in PATHS:
                headers = [*hosts, ("Authorization", f"Bearer {server.token}"), JSON_TYPE]
                upgrade = UPGRADE if path.endswith("/ws") else []
                answer = await server.raw(method, path, [*headers, *upgrade], b"{}" if method == "POST" else b"")
                if not 400 <= answer.status < 500 or answer.code not in ("forbidden", "bad_request"):
                    wrong.append((hosts, method, path, answer.status))
        assert not wrong
        assert await server.operations() == ""
        assert (await server.ask("GET", "/healthz")).status == 200, "the server went on"


@async_test
async def test_s8_without_a_host_even_the_old_protocol_gets_nothing(home: Path) -> None:
    async with serving(home) as server:
        head = f"GET /v1/conversations HTTP/1.0\r\nAuthorization: Bearer {server.token}\r\n\r\n"
        answer = await server.exchange(head.encode())
        assert (answer.status, answer.code) == (403, "forbidden")
        named = await server.exchange(head.replace("\r\n\r\n", f"\r\nHost: {server.host}\r\n\r\n").encode())
        assert named.status == 200, "only the name was missing"


@async_test
async def test_s8_names_that_were_allowed_are_ours_and_no_others(home: Path) -> None:
    async with serving(home, allowed_hosts=("Box.example",), allowed_origins=("https://page.example",)) as server:
        for host, status in (
            ("box.example", 200), (f"BOX.example:{server.port}", 200), ("box.example:1", 403), ("xbox.example", 403),
            ("localhost:" + str(server.port), 200), (f"[::1]:{server.port}", 200),
        ):  # fmt: skip
            headers = [("Host", host), ("Authorization", f"Bearer {server.token}")]
            assert (await server.raw("GET", "/v1/conversations", headers)).status == status, host
        for origin, status in (
            ("https://page.example", 200), ("http://page.example", 403), ("https://page.example:444", 403),
            ("https://page.example.evil.test", 403), (server.state["url"], 200),
        ):  # fmt: skip
            answer = await server.ask("GET", "/v1/conversations", headers=[("Origin", origin)])
            assert answer.status == status, origin


@async_test
async def test_s9_what_a_page_can_send_without_asking_is_refused(home: Path) -> None:
    simple = ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x", "", "text/json"]
    simple += ["application/json, text/plain", "application/jsonp", "application/json+x"]
    async with serving(home) as server:
        for path in [path for method, path in PATHS if method == "POST"]:
            for kind in simple:
                # With the token, so that nothing but the type is wrong.
                answer = await server.ask("POST", path, b'{"command": "true"}', headers=[("Content-Type", kind)])
                assert (answer.status, answer.code) == (415, "bad_request"), (path, kind)
            without = [("Host", server.host), ("Authorization", f"Bearer {server.token}")]
            assert (await server.raw("POST", path, without, b"{}")).status == 415, path
            twice = [JSON_TYPE, ("Content-Type", "text/plain")]
            assert (await server.ask("POST", path, b"{}", headers=twice)).status == 400, path
        assert await server.operations() == ""


@async_test
async def test_s9_a_page_of_another_site_is_refused_whatever_it_holds(home: Path) -> None:
    origins = ["https://evil.test", "null", "file://", "", f"http://127.0.0.1:{1}", "http://localhost"]
    async with serving(home) as server:
        for method, path in PATHS:
            pages = [[("Origin", origin)] for origin in origins]
            # A form, an image or a no-cors fetch of a GET has no Origin, but says where it comes from.
            pages += [[("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "no-cors")]]
            for page in pages:
                answer = await server.ask(method, path, b"{}" if method == "POST" else None, headers=page)
                assert (answer.status, answer.code) == (403, "forbidden"), (method, path, page)
        twice = [("Origin", server.state["url"]), ("Origin", "https://evil.test")]
        assert (await server.ask("GET", "/v1/conversations", headers=twice)).code == "bad_request"
        assert await server.operations() == ""


@async_test
async def test_s9_no_cookie_and_no_url_stands_for_a_token(home: Path) -> None:
    async with serving(home) as server:
        token = server.token
        for query in ("", f"?token={token}", f"?access_token={token}", f"?authorization=Bearer%20{token}"):
            path = f"/v1/conversations{query}"
            for header in (
                ("Cookie", f"token={token}"), ("X-Token", token), ("Authorization", token),
                ("Authorization", f"Basic {token}"), ("Authorization", "Bearer"), ("Authorization", "Bearer "),
                ("Authorization", f"Bearer {token[:-1]}"), ("Authorization", f"Bearer {token}x"),
                ("Authorization", "Bearer \xff\xfe"), ("Proxy-Authorization", f"Bearer {token}"),
                ("Sec-WebSocket-Protocol", f"blockpty.token.{token}"),
            ):  # fmt: skip
                answer = await server.ask("GET", path, token=None, headers=[header])
                assert (answer.status, answer.code) == (401, "unauthorized"), (path, header)
                assert "www-authenticate" in answer.headers
                assert token not in answer.body.decode()


@async_test
async def test_every_path_but_four_needs_a_token(home: Path) -> None:
    async with serving(home) as server:
        for method, path in PATHS:
            answer = await server.ask(method, path, b"{}" if method == "POST" else None, token=None)
            if path in ("/healthz", "/readyz"):
                assert answer.content == {"ok": True}
            elif path == "/docs":
                assert answer.status == 200
            elif path == "/auth/token":
                assert (answer.status, answer.code) == (400, "bad_request")
            else:
                assert (answer.status, answer.code) == (401, "unauthorized"), path
        assert await server.operations() == ""


async def refused(server: Server, **options: object) -> int:
    """Open a WebSocket that must not open; return the status of the refusal."""
    with pytest.raises(InvalidStatus) as caught:
        async with connect(f"ws://127.0.0.1:{server.port}/v1/conversations/c1/ws", **options):  # type: ignore[arg-type]
            pass
    body = caught.value.response.body
    assert b'"ok": false' in body and server.token.encode() not in body
    return caught.value.response.status_code


@async_test
async def test_s10_a_foreign_page_opens_no_websocket_even_with_the_token(home: Path) -> None:
    async with serving(home) as server:
        await server.client().open("c1", shell="bash")
        protocols = [Subprotocol("blockpty.v1"), Subprotocol(f"blockpty.token.{server.token}")]
        for origin in ("https://evil.test", "null", "http://127.0.0.1:1", f"http://evil.test:{server.port}", ""):
            assert await refused(server, subprotocols=protocols, origin=origin) == 403, origin
        assert await refused(server, subprotocols=protocols) == 403, "a page always sends its Origin"
        bearer = {"Authorization": f"Bearer {server.token}"}
        assert await refused(server, additional_headers=bearer, origin="https://evil.test") == 403
        own = server.state["url"]
        url = f"ws://127.0.0.1:{server.port}/v1/conversations/c1/ws"
        async with connect(url, subprotocols=protocols, origin=own) as socket:
            assert socket.subprotocol == "blockpty.v1", "never the one with the token in it"
            assert '"hello"' in str(await socket.recv())


@async_test
async def test_s10_an_unknown_or_expired_token_opens_no_websocket(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    books: list[TokenBook] = []

    class Noted(TokenBook):
        def __init__(self, home: Path) -> None:
            super().__init__(home)
            books.append(self)

    monkeypatch.setattr(server_module, "TokenBook", Noted)
    async with serving(home) as server:
        await server.client().open("c1", shell="bash")
        own = server.state["url"]
        removed = add_token(home, "gone", "admin", None, 0)
        remove_token(home, "gone")
        [book] = books
        long_ago = time.monotonic() - TokenBook.BROWSER_SECONDS - 1
        expired = book.change_code(book.make_code(book.principal(server.token, long_ago), long_ago), long_ago)
        for token in ("x", "x" * 43, removed, expired, server.token[:-1]):
            for options in (
                {"subprotocols": [Subprotocol("blockpty.v1"), Subprotocol(f"blockpty.token.{token}")], "origin": own},
                {"additional_headers": {"Authorization": f"Bearer {token}"}},
            ):
                assert await refused(server, **options) == 401, token
        two = [Subprotocol(f"blockpty.token.{token}") for token in ("x", server.token)]
        assert await refused(server, subprotocols=two, origin=own) == 401, "two tokens are none"
        assert await refused(server, origin=own) == 401
        in_url = f"ws://127.0.0.1:{server.port}/v1/conversations/c1/ws?token={server.token}"
        with pytest.raises(InvalidStatus), contextlib.suppress(OSError):
            async with connect(in_url, origin=own):
                pass
