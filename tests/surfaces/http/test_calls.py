"""What is wrong with a request is said in one shape, with the right status, and never with a traceback."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from blockpty.errors import BadRequest
from blockpty.ops.requests import MAX_COMMAND
from blockpty.surfaces.http import guard
from tests.support.async_tests import async_test
from tests.support.http_server import JSON_TYPE, Server, read_answer, serving

RUN = "/v1/conversations/c1/run"
WAIT = "/v1/conversations/c1/wait_for"
READ = "/v1/conversations/c1/read"
BAD: list[tuple[str, str, Any, int, str]] = [
    # wrong types
    ("POST", RUN, {"command": 5}, 400, "bad_request"),
    ("POST", RUN, {"command": None}, 400, "bad_request"),
    ("POST", RUN, {"command": ["true"]}, 400, "bad_request"),
    ("POST", RUN, {"command": "true", "timeout_ms": "5"}, 400, "bad_request"),
    ("POST", RUN, {"command": "true", "timeout_ms": 1.5}, 400, "bad_request"),
    ("POST", RUN, {"command": "true", "timeout_ms": True}, 400, "bad_request"),
    ("POST", RUN, {"command": "true", "timeout_ms": -1}, 400, "bad_request"),
    ("POST", RUN, {"command": "true", "timeout_ms": 10**30}, 400, "bad_request"),
    ("POST", RUN, b'{"command": "true", "timeout_ms": NaN}', 400, "bad_request"),
    ("POST", RUN, b'{"command": "true", "timeout_ms": 1e999}', 400, "bad_request"),
    ("POST", RUN, b'{"command": "true", "max_bytes": ' + b"9" * 6000 + b"}", 400, "bad_request"),
    ("POST", RUN, {"command": "a\0b"}, 400, "bad_request"),
    ("POST", RUN, b'{"command": "\\ud800"}', 400, "bad_request"),
    ("POST", RUN, {"command": "true", "cwd": "/tmp\0/x"}, 400, "bad_request"),
    ("POST", RUN, {"command": "true", "cwd": ""}, 400, "bad_request"),
    ("POST", "/v1/conversations/c1/resize", {"cols": 0, "rows": 24}, 400, "bad_request"),
    ("POST", "/v1/conversations/c1/resize", {"cols": 80}, 400, "bad_request"),
    ("POST", "/v1/conversations/c1/send", {}, 400, "bad_request"),
    ("POST", "/v1/conversations/c1/send", {"data": "x", "data_b64": "eA=="}, 400, "bad_request"),
    ("POST", "/v1/conversations/c1/send", {"data_b64": "!!!"}, 400, "bad_request"),
    ("POST", "/v1/conversations/c1/send", {"data_b64": "é"}, 400, "bad_request"),
    ("POST", "/v1/conversations/c1/kill", {"signal": "SEGV"}, 400, "bad_request"),
    ("POST", "/v1/conversations", {"env": {"A": 5}}, 400, "bad_request"),
    ("POST", "/v1/conversations", {"env": {"A=B": "x"}}, 400, "bad_request"),
    ("POST", "/v1/conversations", {"env": {"A": "\0"}}, 400, "bad_request"),
    ("POST", "/v1/conversations", {"env": {"": "x"}}, 400, "bad_request"),
    ("POST", "/v1/conversations", {"cwd": "a\0"}, 400, "bad_request"),
    ("POST", "/v1/conversations", {"shell": "bash\0"}, 422, "spawn_failed"),
    ("POST", "/v1/conversations", {"shell": "no-such-shell"}, 422, "spawn_failed"),
    ("POST", "/v1/conversations", {"cwd": "/no/such/directory"}, 422, "spawn_failed"),
    ("POST", "/v1/conversations/c1/resize", b'{"cols": 80.0, "rows": 24}', 400, "bad_request"),
    ("GET", READ + "?from_cursor=1.0", None, 400, "bad_request"),
    ("GET", READ + "?from_cursor=1_0", None, 400, "bad_request"),
    ("GET", READ + "?from_cursor=%201", None, 400, "bad_request"),
    # unknown and doubled fields
    ("POST", RUN, {"command": "true", "comand": 1}, 400, "bad_request"),
    ("POST", RUN, {"command": "true", "conversation_id": "c1"}, 400, "bad_request"),
    ("POST", RUN, b'{"command": "true", "command": "false"}', 400, "bad_request"),
    ("POST", "/v1/conversations", b'{"env": {"A": "1", "A": "2"}}', 400, "bad_request"),
    ("POST", RUN + "?command=true", {"command": "true"}, 400, "bad_request"),
    ("GET", READ + "?from_cursor=1&from_cursor=2", None, 400, "bad_request"),
    ("GET", READ + "?nonsense=1", None, 400, "bad_request"),
    ("GET", READ + "?conversation_id=c2", None, 400, "bad_request"),
    ("GET", READ + "?view=%ff", None, 400, "bad_request"),
    ("GET", READ + "?max_bytes=1e3", None, 400, "bad_request"),
    ("GET", READ + "?max_bytes=", None, 400, "bad_request"),
    ("GET", READ + "?max_bytes=" + "9" * 5000, None, 400, "bad_request"),
    # no JSON, or not what is meant
    ("POST", RUN, b"{", 400, "bad_request"),
    ("POST", RUN, b"command=true", 400, "bad_request"),
    ("POST", RUN, b"\xff\xfe\x00", 400, "bad_request"),
    ("POST", RUN, b"\x00", 400, "bad_request"),
    ("POST", RUN, b"[]", 400, "bad_request"),
    ("POST", RUN, b'"true"', 400, "bad_request"),
    ("POST", RUN, b"null", 400, "bad_request"),
    ("POST", RUN, b"", 400, "bad_request"),
    ("POST", RUN, b"[" * 200_000, 400, "bad_request"),
    ("POST", RUN, b'{"a":' * 100_000 + b"1" + b"}" * 100_000, 400, "bad_request"),
    ("POST", WAIT, b'{"match": ' + b"[" * 900 + b'"x"' + b"]" * 900 + b"}", 400, "bad_condition"),
    # conditions and cursors
    ("POST", WAIT, {"match": 5}, 400, "bad_condition"),
    ("POST", WAIT, {"match": {"regex": "("}}, 400, "bad_condition"),
    ("POST", WAIT, {"match": {"regex": "a" * 5000}}, 400, "bad_condition"),
    ("POST", WAIT, {"match": {"regex": "x", "token": "EOF"}}, 400, "bad_condition"),
    ("POST", WAIT, {"match": {"idle_ms": "5"}}, 400, "bad_condition"),
    ("POST", WAIT, b'{"match": {"idle_ms": NaN}}', 400, "bad_condition"),
    ("POST", WAIT, {"match": []}, 400, "bad_condition"),
    ("POST", WAIT, {"match": ""}, 400, "bad_condition"),
    ("POST", WAIT, b'{"match": "\\udfff"}', 400, "bad_condition"),
    ("POST", WAIT, b'{"match": ["x", "\\ud800\\ud800"]}', 400, "bad_condition"),
    ("POST", WAIT, {"match": "x", "from_cursor": 10**12}, 400, "bad_cursor"),
    ("POST", WAIT, {"match": "x", "from_cursor": -1}, 400, "bad_request"),
    ("GET", READ + "?from_cursor=999999999999", None, 400, "bad_cursor"),
    ("GET", READ + "?from_cursor=9999999999999999999999", None, 400, "bad_cursor"),
    ("GET", READ + "?from_cursor=-1", None, 400, "bad_request"),
    ("GET", READ + "?from_cursor=x", None, 400, "bad_request"),
    ("GET", "/v1/conversations/c1/blocks?page=99999999999999999999", None, 400, "bad_request"),
    ("GET", "/v1/conversations/c1/events?from_seq=-1", None, 400, "bad_request"),
    # what is not there
    ("GET", "/v1/conversations/c1/blocks/b99", None, 404, "not_found"),
    ("GET", "/v1/conversations/c1/blocks/%2e%2e", None, 404, "not_found"),
    ("GET", READ + "?block_id=../../meta.json", None, 404, "not_found"),
    ("GET", "/v1/conversations/c9/status", None, 404, "not_found"),
    ("GET", "/v1/conversations/c9/events", None, 404, "not_found"),
    ("POST", "/v1/conversations/c9/run", {"command": "true"}, 404, "not_found"),
    *[("GET", path, None, 404, "not_found") for path in (
        "/v1", "/v1/", "/v2/conversations", "/v1/conversations/", "/v1/conversations/c1", "/v1/conversations/c1/",
        "/v1/conversations/c1/nonsense", "/v1/conversations/c1/status/", "/openapi.json/", "//v1/conversations",
        "/.env", "/%2e%2e/%2e%2e/etc/passwd", "/v1/conversations/c1/ws", "/mcp/", "/admin", "/static/x", "*",
    )],
]  # fmt: skip


def ids() -> Iterator[str]:
    yield from (f"{method} {path[:60]} {str(content)[:40]}" for method, path, content, _, _ in BAD)


@async_test
async def test_everything_that_is_wrong_has_its_code_and_the_one_shape(home: Path) -> None:
    async with serving(home) as server:
        conversation = await server.client().open("c1", shell="bash")
        cursor = (await conversation.status()).cursor
        wrong = []
        for (method, path, content, status, code), name in zip(BAD, ids(), strict=True):
            answer = await server.ask(method, path, content)
            found = (answer.status, answer.code if answer.status != 200 else "")
            if found != (status, code):
                wrong.append((name, found, (status, code)))
        assert not wrong
        assert (await conversation.status()).cursor == cursor, "nothing of it reached the shell"
        assert (await conversation.run("echo fine")).output == "fine\n"


async def post(server: Server, path: str, length: int, *, chunked: bool) -> int:
    """Send a body of a length in pieces, as long as the server takes it; return the status."""
    way = ("Transfer-Encoding", "chunked") if chunked else ("Content-Length", str(length))
    headers = [("Host", server.host), ("Authorization", f"Bearer {server.token}"), JSON_TYPE, way]
    head = f"POST {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers)
    async with server.connected() as (reader, writer):
        writer.write(head.encode() + b"\r\n")
        sending = asyncio.ensure_future(send(writer, length, chunked=chunked))
        try:
            answer = await read_answer(reader)
        finally:
            sending.cancel()
            await asyncio.wait((sending,))
        assert answer.code == "bad_request"
        return answer.status


async def send(writer: asyncio.StreamWriter, length: int, *, chunked: bool) -> None:
    piece = b" " * 65536
    with contextlib.suppress(OSError):  # it has been answered already
        for _ in range(length // len(piece) + 1):
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
            await writer.drain()


@pytest.mark.parametrize("path", [RUN, "/v1/conversations", "/auth/code", "/auth/token", "/mcp"])
@async_test
async def test_a_body_that_is_too_large_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setattr(guard, "MAX_BODY", 200_000)
    async with serving(home) as server:
        if path != "/auth/code":  # it has no body, and does not read one
            assert await post(server, path, 300_000, chunked=True) == 413
        assert await post(server, path, 300_000, chunked=False) == 413
        assert (await server.ask("GET", "/healthz")).status == 200


@async_test(timeout_seconds=110)
async def test_the_largest_command_runs_and_a_larger_one_is_refused_where_it_breaks_nothing(home: Path) -> None:
    async with serving(home) as server:
        assert await post(server, RUN, guard.MAX_BODY + 1, chunked=False) == 413
        assert await post(server, RUN, 10**19, chunked=False) == 413
        conversation = await server.client().open("c1", shell="bash")
        before, after = ": '", "'\nprintf %s $?"
        room = MAX_COMMAND - len(before) - len(after)
        ran = await conversation.run(before + "x" * room + after, timeout_ms=100_000)
        assert (ran.output, ran.timed_out) == ("0", False)
        # The first is not longer, but each of its bytes takes six in the JSON that goes to the host.
        for command in (before + "\x01" * room + after, before + "x" * (room + 1) + after):
            with pytest.raises(BadRequest):
                await conversation.run(command, timeout_ms=100_000)
        assert (await conversation.run("echo fine")).output == "fine\n"


@async_test
async def test_who_has_no_token_yet_sends_little(home: Path) -> None:
    async with serving(home) as server:
        for chunked in (True, False):
            assert await post(server, "/auth/token", 100_000, chunked=chunked) == 413


async def given(server: Server, path: str, content: bytes, length: int) -> asyncio.StreamWriter:
    """Send a request with a body, or the beginning of one, and do not stay for the answer."""
    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
    head = f"POST {path} HTTP/1.1\r\nHost: {server.host}\r\nAuthorization: Bearer {server.token}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    writer.write(head.encode() + content)
    await writer.drain()
    return writer


@pytest.mark.parametrize("abort", [True, False])
@async_test
async def test_a_wait_ends_with_its_client_and_the_program_runs_on(home: Path, abort: bool) -> None:
    async with serving(home) as server:
        conversation = await server.client().open("c1", shell="bash")
        block = await conversation.exec_block("echo begun; read -r line; echo got $line")
        await conversation.wait_for("begun", from_cursor=block.cursor)
        asked = json.dumps({"match": "never", "from_cursor": block.cursor, "timeout_ms": 600_000}).encode()
        waiting = await given(server, WAIT, asked, len(asked))
        begun = False
        async for event in conversation.events():
            fields = event.to_dict("c1")
            if event.type == "wait_begin" and fields["match"] == ["never"]:
                begun = True
                waiting.transport.abort() if abort else waiting.close()
            if event.type == "wait_end" and begun:
                assert (fields["reason"], fields["matched"]) == ("cancelled", False)
                break
        assert (await conversation.status()).mode == "block_running"
        await conversation.send("it\n")
        assert (await conversation.wait_for("got it", from_cursor=block.cursor)).matched


@async_test
async def test_half_a_request_does_nothing(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    async with serving(home) as server:
        conversation = await server.client().open("c1", shell="bash")
        cursor = (await conversation.status()).cursor
        for content in (b'{"command": "echo half"}', b'{"command": "ec', b""):
            for path in (RUN, "/v1/conversations", "/auth/token", "/mcp"):
                leaving = await given(server, path, content, 40)
                leaving.transport.abort()
                with contextlib.suppress(OSError):
                    await leaving.wait_closed()
        assert [one.conversation_id for one in (await server.client().list()).conversations] == ["c1"]
        assert (await conversation.status()).cursor == cursor
        assert 'operation="run"' not in await server.operations()
    assert capfd.readouterr().err == "", "every stranger could fill the log"


@pytest.mark.linux
@async_test
async def test_who_asks_and_never_reads_costs_one_answer(home: Path) -> None:
    async with serving(home) as server:
        conversation = await server.client().open("c1", shell="bash")
        ran = await conversation.run("head -c 4000000 /dev/zero | tr '\\0' x", max_bytes=100)
        assert ran.truncated
        path = f"{READ}?from_cursor={ran.block.span[0]}&max_bytes=4000000"
        assert len((await server.ask("GET", path)).body) > 4_000_000
        before = resident()
        one = f"GET {path} HTTP/1.1\r\nHost: {server.host}\r\nAuthorization: Bearer {server.token}\r\n\r\n"
        async with server.connected() as (_, writer):
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(one.encode() * 100)
            while await reads(server) < 2:  # the first of them is on its way, and stays there
                pass
            # Others are served meanwhile.
            for _ in range(100):
                assert (await conversation.status()).mode == "idle"
            assert resident() - before < 60_000_000, "100 answers of 4 MB would be 400"
            assert await reads(server) <= 4, "the next one is looked at when the one before has gone"


async def reads(server: Server) -> float:
    """How often `read` has been answered."""
    asked = 'blockpty_operations_total{code="ok",operation="read"}'
    [line] = [line for line in (await server.operations()).splitlines() if line.startswith(asked)]
    return float(line.split()[-1])


def resident() -> int:
    """Bytes of memory that this process, in which the server is, has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
