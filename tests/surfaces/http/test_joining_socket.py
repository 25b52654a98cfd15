"""A page joins a terminal in the middle: its state at a cursor, sizes in their place, never more than a window."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from blockpty import Client
from blockpty.engine.marks import INTRODUCER
from blockpty.screen.emulator import Emulator
from blockpty.spool.timeline import TimelineReader
from blockpty.surfaces.http import socket as endpoint
from tests.support.async_tests import async_test
from tests.support.emulators import shown
from tests.support.http_client import http, serving
from tests.support.terminal_sockets import joined

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

pytestmark = pytest.mark.needs("bash")


class Page:
    """What a page does with what comes: it draws all of it, and says so."""

    def __init__(self, socket: ClientConnection, *, acks: bool = False) -> None:
        self.socket = socket
        self.acks = acks
        self.emulator = Emulator(80, 24)
        self.cursor = self.acked = -1
        self.most_on_the_way = 0
        self.messages: list[dict[str, Any]] = []
        self.text = b""

    async def next(self) -> None:
        message = await self.socket.recv()
        if isinstance(message, bytes):
            self.emulator.feed(message)
            self.cursor += len(message)
            self.text = (self.text + message)[-4096:]
            self.most_on_the_way = max(self.most_on_the_way, self.cursor - self.acked)
        else:
            content = json.loads(message)
            self.messages.append(content)
            self.take(content)
        if self.acks and self.cursor > self.acked:
            await self.ack()

    def take(self, content: dict[str, Any]) -> None:
        kind = content["type"]
        if kind == "hello":
            self.cursor = self.acked = content["cursor"]
        elif kind == "screen":
            self.cursor = self.acked = content["cursor"]
            self.emulator = Emulator(content["cols"], content["rows"])
            self.emulator.feed(content["data"].encode())
            # What is waited for may lie in what was skipped.
            self.text = content["data"].encode()
        elif kind in ("resize", "restart"):
            assert content["cursor"] == self.cursor
            if kind == "resize":
                self.emulator.resize(content["cols"], content["rows"])
            else:
                self.emulator.feed(content["data"].encode())

    async def ack(self) -> None:
        self.acked = self.cursor
        await self.socket.send(json.dumps({"type": "ack", "cursor": self.cursor}))

    async def until(self, text: bytes) -> None:
        while text not in self.text:
            await self.next()

    async def until_cursor(self, cursor: int) -> None:
        while self.cursor < cursor:
            await self.next()

    async def until_message(self, kind: str, count: int = 1) -> dict[str, Any]:
        while len(found := [content for content in self.messages if content["type"] == kind]) < count:
            await self.next()
        return found[count - 1]


@async_test
async def test_who_joins_in_the_middle_sees_what_all_see(home: Path) -> None:
    async with serving(home) as url, Client(home) as client:
        conversation = await client.open("c1", shell="bash")
        await conversation.run("seq 1 300; printf '\\e[31mred \\e[4munder'; printf '\\e[5;20r\\e[3g\\e[1;9H\\eH'")
        async with joined(home, url, "?from_cursor=0&window=1048576&events=false") as whole, \
                joined(home, url, "?join=screen&events=false") as late, \
                joined(home, url, "?join=screen&scrollback=0&events=false") as bare:  # fmt: skip
            pages = [Page(whole), Page(late), Page(bare)]
            for page in pages[1:]:
                await page.until_message("screen")
            assert [one["type"] for one in pages[1].messages] == ["hello", "screen"]
            assert pages[1].messages[1]["seq"] > 1
            assert len(pages[1].emulator.history) == 100 and not pages[2].emulator.history
            assert "\r\n1\r\n2\r\n" in pages[1].messages[1]["data"]
            await conversation.run("printf '\\e[?1049h\\e[7mfull'; printf 'half \\303'; printf '\\251\\e['; echo 1mx")
            end = (await conversation.status()).cursor
            for page in pages:
                await page.until_cursor(end)
            seen = [shown(page.emulator) for page in pages]
            assert seen[0] == seen[1]
            assert seen[0]["screens"][:2] == seen[2]["screens"][:2]
        await conversation.close()


@async_test
async def test_what_a_joined_page_is_sent_has_no_secret(home: Path) -> None:
    token = "ghp_" + "Ab1" * 12
    async with serving(home) as url, Client(home) as client:
        conversation = await client.open("c1", shell="bash")
        await conversation.run(
            f"for i in 1 2; do echo token {token}; printf '\\e]2;{token}\\a\\e]8;;http://h/?t={token}\\ax\\e]8;;\\a';"
            f"seq 40; printf '\\e[?1049h%s\\r\\n' {token}; done; printf '\\e]2;%s' {token}"
        )
        async with joined(home, url, "?join=screen&events=false") as socket:
            page = Page(socket)
            data = (await page.until_message("screen"))["data"]
            assert "token ghp_****" in data and "ghp_A" not in data
            assert INTRODUCER.decode() not in data
        await conversation.close()


@async_test
async def test_sizes_stand_between_the_bytes_they_were_changed_between(home: Path) -> None:
    async with serving(home) as url, Client(home) as client:
        conversation = await client.open("c1", shell="bash", cols=80, rows=24)
        query = "?join=screen&events=false&window=1048576&max_lag=1073741824"
        async with joined(home, url, query) as socket:
            page = Page(socket, acks=True)
            await page.until_message("screen")
            over = home / "over"
            command = f"while ! test -e {over}; do seq 1 3000; sleep 0.02; done; echo 'the'' end'"
            flood = asyncio.ensure_future(conversation.run(command, timeout_ms=50_000))
            sizes = [(60 + step, 20 + step % 7) for step in range(20)]
            for cols, rows in sizes:
                begin = page.cursor
                await conversation.resize(cols, rows)
                await page.until_cursor(begin + 1000)
            over.touch()
            await flood
            await page.until(b"the end\r\n")
            await conversation.run("true")
            end = (await conversation.status()).cursor
            await page.until_cursor(end)
            resizes = [content for content in page.messages if content["type"] == "resize"]
            assert [(one["cols"], one["rows"]) for one in resizes] == sizes
            timeline = TimelineReader(home / "conversations" / "c1" / "timeline.jsonl")
            recorded = [entry for entry, _ in timeline.read_new() if entry.kind == "resize"]
            timeline.close()
            assert [one["cursor"] for one in resizes] == [entry.offset for entry in recorded]
            screen = json.loads((await conversation.screen(format="json")).content)
            frame = page.emulator.frame()
            assert ["".join(run["text"] for run in line["runs"]) for line in screen["lines"]] == [
                "".join(run.text for run in line.runs) for line in frame.lines
            ]
            assert (screen["cursor"]["x"], screen["cursor"]["y"]) == (frame.cursor.x, frame.cursor.y)
            # Another shell in the same terminal: the socket ends with the first one, and goes on from its cursor.
            await conversation.reset()
            await page.until_message("end")
        async with joined(home, url, f"?from_cursor={page.cursor}&window=65536&events=false") as socket:
            page = Page(socket)
            await page.until_message("restart")
            assert (await page.until_message("resize", 2))["fresh"] is True
        await conversation.close()


@async_test
async def test_no_more_than_a_window_is_on_its_way(home: Path) -> None:
    async with serving(home) as url, Client(home) as client:
        conversation = await client.open("c1", shell="bash")
        query = "?join=screen&events=false&window=65536&max_lag=262144"
        async with joined(home, url, query) as socket, joined(home, url, query) as other:
            page, still = Page(socket, acks=True), Page(other)
            flood = asyncio.ensure_future(conversation.run("seq 1 1500000; echo 'the'' end'", timeout_ms=50_000))
            await still.until_message("screen")
            # Nothing says that anything of it was drawn.
            while still.cursor - still.acked < 65536 - 16384:
                await still.next()
            await page.until(b"the end\r\n")
            await flood
            assert 0 < page.most_on_the_way <= 65536
            skipped = [content for content in page.messages if content["type"] == "screen"][1:]
            assert skipped and all(content["skipped_bytes"] > 0 for content in skipped)
            assert not [content for content in page.messages if content["type"] == "resync"]
            acks = ({}, {"cursor": "1"}, {"cursor": True}, {"cursor": -1}, {"cursor": 2**60}, {"cursor": 1, "x": 1})
            for wrong in acks:
                still.messages.clear()
                await other.send(json.dumps({"type": "ack", **wrong}))
                assert (await still.until_message("error"))["error"]["code"] == "bad_request"
            assert still.most_on_the_way <= 65536
            # Who wakes up goes on at what is there now.
            still.acks = True
            still.messages.clear()
            await still.ack()
            assert (await still.until_message("screen"))["skipped_bytes"] > 1_000_000
            end = (await conversation.status()).cursor
            await still.until_cursor(end)
            await page.until_cursor(end)
            assert still.emulator.frame().lines == page.emulator.frame().lines
        await conversation.close()


@async_test
async def test_join_points_are_made_once(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from blockpty.runtime import joining

    made: list[int] = []

    def counted(emulator: Emulator, above: int) -> bytes:
        made.append(above)
        return redraw(emulator, above)

    redraw = joining.redraw
    monkeypatch.setattr(joining, "redraw", counted)
    async with serving(home) as url, Client(home) as client:
        conversation = await client.open("c1", shell="bash")
        await conversation.run("seq 1 1000")

        async def join() -> str:
            async with joined(home, url, "?join=screen&events=false") as socket:
                return str((await Page(socket).until_message("screen"))["data"])

        assert len(set(await asyncio.gather(*[join() for _ in range(12)]))) == 1
        assert len(made) == 1
        await conversation.close()


@async_test
async def test_what_does_not_fit_together_is_refused(home: Path) -> None:
    assert endpoint.MAX_LAG == 1024 * 1024
    async with serving(home) as url, Client(home) as client, http(home, url) as plain:
        conversation = await client.open("c1", shell="bash")
        headers = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
                   "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="}  # fmt: skip
        wrong = ("join=all", "join=screen&from_cursor=1", "max_lag=65536", "window=1", "scrollback=1001", "window=x")
        for query in wrong:
            answer = await plain.get(f"/v1/conversations/c1/ws?{query}", headers=headers)
            assert answer.status_code == 400 and answer.json()["error"]["code"] == "bad_request", query
        await conversation.close()
