"""Typing: in order, complete or said how far, and without a trace of passwords."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path

import pytest

from blockpty.errors import BadRequest, LineTooLong, UserInControl
from tests.support.async_tests import async_test
from tests.support.host_driver import BASH, running_host


@async_test
async def test_a_long_input_into_a_flood(home: Path) -> None:
    lines = b"".join(b"%05d %s\r" % (number, b"x" * 93) for number in range(2000))
    script = "stty -echo; echo ready; (while :; do echo flood; done) & cat >copy; kill $!; wait; stty echo; echo done"
    async with running_host(home) as host:
        one = await host.spoken()
        await one.sh(script, cwd=str(one.directory))
        await one.printed(b"ready")
        typed = await one.type(lines, deadline_ms=60_000)
        assert typed.accepted == len(lines) == 200_000
        await one.type(b"\x04")
        await one.printed(b"done")
        assert (one.directory / "copy").read_bytes() == lines.replace(b"\r", b"\n")
        one.check_timeline()


@async_test
async def test_inputs_at_once_keep_their_order(home: Path) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        await one.sh("stty -echo; echo ready; cat")
        await one.printed(b"ready\r\n")
        pieces = [b"%d\r" % number for number in range(300)]
        await asyncio.gather(*(one.type(piece, req=str(number)) for number, piece in enumerate(pieces)))
        await one.printed(b"\n299\r\n")
        assert one.stream() == b"ready\r\n" + b"".join(piece[:-1] + b"\r\n" for piece in pieces)
        assert [entry["req"] for entry in one.entries("input")] == [str(number) for number in range(300)]


@async_test
async def test_a_line_that_the_terminal_would_cut(home: Path) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        await one.sh("stty -echo; echo ready; cat")
        await one.printed(b"ready")
        with pytest.raises(LineTooLong, match="4096 bytes") as refused:
            await one.type(b"short\r" + b"y" * 4096 + b"\r")
        assert refused.value.details == {"longest": 4096, "limit": 4095}
        assert one.entries("input") == []
        await one.type(b"y" * 4095 + b"\r" + b"z" * 4095 + b"\n")
        await one.printed(b"y" * 4095 + b"\r\n" + b"z" * 4095 + b"\r\n")


@async_test
async def test_a_long_line_for_a_program_that_reads_raw(home: Path) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        await one.sh("stty raw -echo; echo ready; head -c 20000 | wc -c")
        await one.printed(b"ready")
        assert (await one.type(b"q" * 20000)).accepted == 20000
        await one.printed(b"20000")
        assert one.entries("input")[0]["icanon"] is False


@pytest.mark.parametrize("shell_line", ["read -r -s x", "read -r x"])
def test_a_password_leaves_no_trace(home: Path, shell_line: str) -> None:
    secret = b"correct horse battery staple 1234567\r"

    @async_test
    async def check() -> None:
        async with running_host(home) as host:
            one = await host.spoken()
            hidden = "-s" in shell_line
            await one.open(BASH, "-c", f"echo ready; {shell_line}; echo ${{#x}}")
            await one.printed(b"ready")
            await one.until(lambda: [e for e in one.entries("silence") if e["echo"] is not hidden])
            await one.type(secret, req="r1")
            await one.printed(b"36\r\n")
            entry = one.entries("input")[0]
            written = b"".join(path.read_bytes() for path in one.directory.rglob("*") if path.is_file())
            shapes = (secret[:-1], base64.b64encode(secret)[:20])
            if hidden:
                assert entry["redacted"] is True
                assert not {"bytes", "data", "data_b64"} & {*entry}
                assert not [shape for shape in shapes if shape in written]
            else:
                assert entry["data"] == secret.decode()
                assert entry["bytes"] == len(secret)
                assert secret[:-1] in written

    check()


@async_test
async def test_what_is_not_text_is_kept_all_the_same(home: Path) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        await one.sh("stty raw -echo; echo ready; head -c 4 | od -An -tx1")
        await one.printed(b"ready")
        await one.type(b"\xff\xfe\x00\x80", submit={"kind": "run", "\u00e9": 1})
        await one.printed(b"ff fe 00 80")
        entry = one.entries("input")[0]
        assert base64.b64decode(entry["data_b64"]) == b"\xff\xfe\x00\x80"
        assert entry["submit"] == {"kind": "run", "\u00e9": 1}


@async_test
async def test_the_deadline_says_how_much_went_in(home: Path) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        await one.sh("stty raw -echo; echo ready; exec sleep 1000")
        await one.printed(b"ready")
        typed = await one.type(b"w" * 1_000_000, req="big", deadline_ms=50)
        assert 0 < typed.accepted < 1_000_000
        cut = await one.entry("input_cut")
        assert (cut["req"], cut["accepted"]) == ("big", typed.accepted)
        late = await one.type(b"more", req="late", deadline_ms=20)
        assert late.accepted == 0
        assert (await one.entry("input_cut", 2))["req"] == "late"


@async_test
async def test_a_command_may_go_in_slowly(home: Path) -> None:
    slowly = "stty raw -echo; echo ready; while [ ! -e stop ]; do head -c 20000 >>copy; sleep 0.2; done"
    async with running_host(home) as host:
        one = await host.spoken()
        await one.sh(slowly, cwd=str(one.directory))
        await one.printed(b"ready")
        command = {"kind": "command", "cmd": "", "request": "1"}
        typed = await one.type(b"w" * 400_000, req="1", submit=command, deadline_ms=1000)
        assert typed.accepted == 400_000
        cut = await one.type(b"w" * 400_000, req="2", deadline_ms=1000)
        assert 0 < cut.accepted < 400_000, "it took longer than a deadline"
        assert [entry["req"] for entry in one.entries("input_cut")] == ["2"]
        (one.directory / "stop").touch()


@async_test
async def test_a_paste_that_is_cut_at_the_deadline_is_ended(home: Path) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        script = "stty raw -echo; echo ready; until [ -e go ]; do sleep 0.01; done; cat >copy"
        await one.sh(script, cwd=str(one.directory))
        await one.printed(b"ready")
        text = b" \x1b[200~" + b"." * 300_000 + b"\x1b[201~\r"
        typed = await one.type(text, req="big", deadline_ms=50)
        assert 0 < typed.accepted < 300_000
        (one.directory / "go").touch()
        await one.type(b"next", deadline_ms=60_000)
        expected = text[: typed.accepted] + b"\x1b[201~next"
        while (one.directory / "copy").read_bytes() != expected:  # noqa: ASYNC110  # it is another process that writes
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("begun", [b"", b"\x1b[200~"])
@async_test
async def test_an_author_is_cut_at_a_byte(home: Path, begun: bytes) -> None:
    """What is under way ends where it is, what waits is refused, and others go on; a paste is ended."""
    end = b"\x1b[201~" if begun else b""
    async with running_host(home) as host:
        one = await host.spoken()
        script = "stty raw -echo; echo ready; until [ -e go ]; do sleep 0.01; done; cat >copy"
        await one.sh(script, cwd=str(one.directory))
        await one.printed(b"ready")
        text = begun + b"." * 300_000 + end
        under_way = asyncio.ensure_future(one.type(text, deadline_ms=60_000, req="1"))
        waiting = asyncio.ensure_future(one.type(b"agent", deadline_ms=60_000, req="2"))
        person = asyncio.ensure_future(
            host.client.input(one.name, b"person\r", author="user", deadline_ms=60_000, req="3")
        )
        await one.entry("input")  # it is under way, and the others are asked for
        await host.client.cut(one.name, "agent", code="user_in_control", message="ann has control")
        accepted = (await under_way).accepted
        (one.directory / "go").touch()
        assert 0 < accepted < len(text), "the terminal takes no more than a part at once"
        with pytest.raises(UserInControl, match="ann"):
            await waiting
        assert (await person).accepted == 7
        kinds = [(entry["author"], entry.get("bytes")) for entry in one.entries("input")]
        assert kinds[-2:] == ([("engine", 6), ("user", 7)] if begun else [("agent", len(text)), ("user", 7)])
        cuts = [entry["accepted"] for entry in one.entries("input_cut")]
        assert cuts == [accepted]


@async_test
async def test_a_stored_secret_is_not_typed_where_it_shows(home: Path) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        await one.sh("echo ready; read -r a; stty -echo; echo hidden; read -r b; stty echo; echo got $b")
        await one.printed(b"ready")
        with pytest.raises(BadRequest, match="shows"):
            await one.type(b"x\r", secret="always", hidden_only=True)
        await one.type(b"\r")
        await one.printed(b"hidden")
        await one.type(b"x\r", secret="always", hidden_only=True)
        await one.printed(b"got x")
