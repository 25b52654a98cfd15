"""Requests to the recorder: what is refused, and what is entered as it was sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from blockpty.errors import BadRequest, Busy, SpawnFailed
from tests.support.async_tests import async_test
from tests.support.host_driver import BASH, ENV, SH, running_host


@async_test
async def test_a_conversation_has_one_shell(home: Path) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        first = await one.open("/bin/cat", entry={"nonce": "n1"})
        with pytest.raises(Busy):
            await one.open("/bin/cat", entry={"nonce": "n2"})
        again = await one.open("/bin/cat", entry={"nonce": "n1"})
        assert again.pid == first.pid
        assert len(one.entries("spawn")) == 1


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "../x", "-x", ".x", "a b", "a\0b", "x" * 129, "\u0430", "a\n"]
)  # fmt: skip
def test_invalid_names_are_refused_not_corrected(home: Path, name: str) -> None:
    @async_test
    async def check() -> None:
        async with running_host(home) as host:
            one = host.conversation("good")
            with pytest.raises(BadRequest):
                await host.client.open(name, one.directory, [SH], ENV, "/")

    check()


@async_test
async def test_directories_outside_the_home_are_refused(home: Path) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        outside = home / "outside"
        outside.mkdir(mode=0o700)
        link = home / "conversations" / "link"
        link.symlink_to(outside)
        missing = home / "conversations" / "missing"
        for directory in (outside, link, missing, home / "conversations", one.directory / "..", Path("/tmp")):
            with pytest.raises(BadRequest):
                await host.client.open("c1", directory, [SH], ENV, "/")
        one.directory.chmod(0o750)
        with pytest.raises(SpawnFailed, match="0750"):
            await one.sh("true")


@async_test
async def test_fields_are_checked(home: Path) -> None:
    async with running_host(home) as host:
        one = host.conversation()
        with pytest.raises(BadRequest):
            await one.open()
        with pytest.raises(BadRequest):
            await one.sh("true", cols=0)
        with pytest.raises(BadRequest):
            await one.open(SH, env={"A=B": "c"})
        with pytest.raises(BadRequest):
            await one.open(SH, "nul\0")
        for reserved in ("offset", "ts", "kind", "pid", "transport"):
            with pytest.raises(BadRequest, match="entry must not set"):
                await one.sh("true", entry={reserved: 1})


@async_test
async def test_an_older_engine_is_refused(home: Path) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        await one.open("/bin/cat")
        await one.subscribe(epoch=7)
        await one.subscribe(epoch=3)
        for attempt in (
            one.type(b"x", epoch=6),
            host.client.resize("c1", 90, 30, author="agent", epoch=6),
            host.client.signal("c1", "INT", epoch=6),
            host.client.note("c1", {"a": 1}, epoch=6),
            host.client.close("c1", epoch=6),
        ):
            with pytest.raises(Busy):
                await attempt
        await one.type(b"fine\r", epoch=7)
        await one.printed(b"fine\r\nfine\r\n")
        assert one.entries("note") == []


@async_test
async def test_a_resize_is_entered_and_felt(home: Path) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        await one.open(BASH, "-c", "trap 'stty size' WINCH; echo ready; while :; do read -t 0.05 x; done")
        await one.printed(b"ready")
        await host.client.resize("c1", 101, 37, author="user")
        await one.printed(b"37 101")
        entry = one.entries("resize")[0]
        assert (entry["cols"], entry["rows"], entry["author"]) == (101, 37, "user")
        seen = await host.client.inspect("c1")
        assert (seen.cols, seen.rows) == (101, 37)
        with pytest.raises(BadRequest):
            await host.client.resize("c1", 0, 10, author="user")


@async_test
async def test_notes_are_kept_as_they_are(home: Path) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        await one.open("/bin/cat")
        note = {"type": "wait", "text": "h\u00e9 \U0001f600 \u2028", "n": [1, 2.5, None]}
        host.client.note("c1", note)
        assert (await one.entry("note"))["note"] == note
        await host.client.close("c1")
        await host.client.note("c1", "after the end")
        assert one.entries("note")[1]["note"] == "after the end"
