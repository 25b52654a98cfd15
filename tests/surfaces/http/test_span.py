"""The bytes of a span over HTTP: exact, redacted without a change of length, bounded, and safe to save."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from blockpty import Client, Engine
from blockpty.surfaces.http import span
from blockpty.surfaces.tokens import add_token
from tests.support.async_tests import async_test
from tests.support.counting import turns_beside
from tests.support.http_client import http, serving

if TYPE_CHECKING:
    import httpx2

pytestmark = pytest.mark.needs("bash")
STREAM = "/v1/conversations/c1/stream"
SECRET = "correct-h0rse-battery"


def error_of(answer: httpx2.Response) -> tuple[int, str]:
    error = answer.json()["error"]
    assert error["message"] and error["hint"], error
    return answer.status_code, error["code"]


@async_test
async def test_the_bytes_are_those_of_the_record(home: Path) -> None:
    async with serving(home) as url, Client(home) as client, http(home, url) as plain:
        conversation = await client.open("c1", shell="bash")
        block = (await conversation.run("printf 'one\\377\\033[31mtwo\\033[0m\\n'; seq 1000")).block
        begin, end = block.span
        assert end is not None
        answer = await plain.get(STREAM, params={"from": begin, "to": end})
        assert answer.content.startswith(b"one\xff\x1b[31mtwo\x1b[0m\r\n1\r\n2\r\n")
        assert len(answer.content) == end - begin
        exact = await conversation.read(begin, to_cursor=end, view="raw")
        assert base64.b64decode(exact.data_b64 or "") == answer.content and exact.eof and exact.cursor == end
        headers = answer.headers
        assert (headers["content-type"], headers["blockpty-cursor"]) == ("application/octet-stream", str(end))
        assert (headers["blockpty-eof"], headers["x-content-type-options"]) == ("true", "nosniff")
        assert headers["content-disposition"] == f'attachment; filename="c1-{begin}-{end}.bin"'
        assert "default-src 'none'" in headers["content-security-policy"]
        # Any two pieces are the whole.
        for cut in (begin, begin + 4, begin + 5, end - 1, end):
            parts = [
                (await plain.get(STREAM, params={"from": one, "to": two})).content
                for one, two in ((begin, cut), (cut, end))
            ]
            assert [len(part) for part in parts] == [cut - begin, end - cut] and b"".join(parts) == answer.content
        text = await plain.get(STREAM, params={"from": begin, "to": end, "view": "text"})
        assert text.text.startswith("one\ufffdtwo\n1\n2\n")
        assert text.headers["content-type"] == "text/plain; charset=utf-8"
        assert text.headers["content-disposition"] == f'attachment; filename="c1-{begin}-{end}.txt"'
        assert text.headers["x-content-type-options"] == "nosniff"
        await conversation.close()


@async_test
async def test_secrets_and_nonces_keep_their_length_and_nothing_else(home: Path) -> None:
    async with serving(home) as url, Client(home) as client:
        conversation = await client.open("c1", shell="bash")
        await conversation.run(f"echo DB_PASSWORD={SECRET}")
        reader = add_token(home, "reader", "read", ("c1",), 0)
        async with http(home, url, token=reader) as plain:
            whole = (await plain.get(STREAM)).content
        await conversation.close()
    async with Engine(home, redact=False) as engine:
        seen = await engine.conversation("c1")
        size = seen.cursor
        shown = base64.b64decode((await seen.read(view="raw", to_cursor=len(whole))).data_b64 or "")
        nonce = min(seen.live.mask.nonces).encode()
        stream = seen.layout.stream
    recorded = b"".join([path.read_bytes() for path in sorted(stream.iterdir()) if path.name.isdigit()])
    assert SECRET.encode() in shown and SECRET.encode() not in whole
    assert nonce and nonce in recorded and nonce not in whole and nonce not in shown
    assert 0 < len(whole) == len(shown) <= size
    async with serving(home) as url, http(home, url) as plain:
        at = recorded.index(SECRET.encode())
        # A span that begins or ends inside of a secret shows none of it.
        for begin, end in ((at + 5, at + 40), (at - 20, at + 5), (at + 3, at + 9), (at, at + len(SECRET))):
            piece = (await plain.get(STREAM, params={"from": begin, "to": end})).content
            assert piece == whole[begin:end]
        masked = recorded.index(nonce)
        for begin, end in ((masked, masked + 5), (masked + 7, masked + len(nonce) + 3)):
            piece = (await plain.get(STREAM, params={"from": begin, "to": end})).content
            assert piece == whole[begin:end] != recorded[begin:end]


@async_test
async def test_an_answer_is_bounded_and_says_where_the_next_begins(home: Path) -> None:
    async with serving(home) as url, Client(home) as client, http(home, url) as plain:
        conversation = await client.open("c1", shell="bash")
        block = (await conversation.run("head -c 3000000 /dev/zero | tr '\\0' x", timeout_ms=60_000)).block
        begin, end = block.span
        assert end is not None and end - begin == 3_000_000
        for view in ("raw", "text"):
            at, pieces, eof = begin, [], "false"
            while eof == "false":
                answer = await plain.get(STREAM, params={"from": at, "to": end, "view": view})
                assert 0 < len(answer.content) <= span.MAX_SPAN
                pieces.append(answer.content)
                at, eof = int(answer.headers["blockpty-cursor"]), answer.headers["blockpty-eof"]
            assert b"".join(pieces) == b"x" * 3_000_000 and len(pieces) == 3 and at == end
        # Others have their turn while it is read.
        async with Engine(home) as engine:
            seen = await engine.conversation("c1")
            assert await turns_beside(seen.read(begin, to_cursor=end, max_bytes=4_000_000, view="raw")) > 1
        await conversation.close()


@async_test
async def test_a_live_conversation_and_one_without_output(home: Path) -> None:
    async with serving(home) as url, Client(home) as client, http(home, url) as plain:
        conversation = await client.open("c1", shell="bash")
        begun = await conversation.exec_block("echo begun; read -r line; echo $line")
        await conversation.wait_for("begun")
        head = int((await plain.get(STREAM)).headers["blockpty-cursor"])
        live = await plain.get(STREAM, params={"from": begun.cursor})
        assert b"begun\r\n" in live.content and live.headers["blockpty-eof"] == "false"
        at_head = await plain.get(STREAM, params={"from": head})
        assert (at_head.status_code, at_head.content, at_head.headers["blockpty-eof"]) == (200, b"", "false")
        empty = await plain.get(STREAM, params={"from": head, "to": head})
        assert (empty.status_code, empty.content, empty.headers["blockpty-eof"]) == (200, b"", "true")
        beyond = 10**9
        for params in ({"from": beyond}, {"to": beyond}, {"from": beyond, "to": beyond + 1}, {"from": head, "to": 1}):
            assert error_of(await plain.get(STREAM, params=params)) == (400, "bad_cursor")
        await conversation.enter()
        await conversation.wait_for({"token": "PROMPT"})
        await conversation.close()
        ended = await plain.get(STREAM)
        assert ended.headers["blockpty-eof"] == "true" and len(ended.content) == int(ended.headers["blockpty-cursor"])


@async_test
async def test_what_is_refused(home: Path) -> None:
    async with serving(home) as url, Client(home) as client, http(home, url) as plain:
        conversation = await client.open("c1", shell="bash")
        for wrong in ("from=x", "from=-1", "to=1.0", "from=1_0", "from=", "view=rendered", "view=", "begin=1",
                      "from=1&from=2", "to=%ff", "from=" + "9" * 30):  # fmt: skip
            answer = await plain.get(f"{STREAM}?{wrong}")
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, "bad_request"), wrong
        assert error_of(await plain.get("/v1/conversations/c2/stream")) == (404, "not_found")
        assert error_of(await plain.get("/v1/conversations/..c2/stream"))[0] == 400
        assert (await plain.post(STREAM, json={})).status_code == 405
        other = add_token(home, "other", "read", ("c2",), 0)
        async with http(home, url, token=other) as stranger:
            assert error_of(await stranger.get(STREAM)) == (403, "forbidden")
        async with http(home, url, token="nonsense") as stranger:
            assert (await stranger.get(STREAM)).status_code == 401
        await conversation.close()
