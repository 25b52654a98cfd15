"""S14: names of conversations that are none. Refused on every way in, and nothing is made anywhere."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidHandshake

from blockpty.errors import BlockptyError
from blockpty.surfaces.cli.main import main
from blockpty.surfaces.client import Client
from tests.support.async_tests import async_test
from tests.support.http_server import Server, serving
from tests.support.profile import some_of

SOUND = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_ALONE = (
    *("", ".", "..", "...", "../x", "a/../b", "a/b", "/etc/passwd", "./a", "a/", "/", "//", "a//b"),
    *("%2e%2e", "%2e%2e%2fx", "..%2fx", "%00", "a%00", "a%2fb", "~root", "$HOME", "`id`", "$(id)", "-a", "-"),
    *(" ", "a ", " a", "a\n", "\na", "a\r", "a\t", "\t", "a\x00", "\x00", "a\x00b", "\x1b[31m", "a\x1b]0;x\x07"),
    *("\x7f", "\x9b", "_a", ".a", ".hidden", "[a]", "{a,b}", "a<b", "a>b", "é", "ａ", "а", "a\u0301", "~"),
    *("a\u2024b", "․․", "\u2025", "\uff0e\uff0e", "a\u2215b", "a\uff0fb", "\ufeffa", "ß", "Ⅷ", "１", "٣", "a\u2028b"),
    *("a\u0085", "\ud800", "a" * 129, "a" * 4096, "a" * 60_000, "é" * 64, "../" * 40 + "tmp/x", "..;/x", "a/./b"),
    *("a/..", "../..", "../../x", "....//", "..%c0%afx", "%c0%ae%c0%ae/", "%252e%252e%252f", "conversations/../../x"),
    *("\\\\host\\share", "C:\\x", "file:///x", "null\n", "None ", "{}", "[]", "{conversation_id}", "<script>", "a\x0b"),
    *("' OR 1=1 --", "a\x0c", "\x01", "a\x1f", "a b", "a\u00a0b", "\u3000", "a\ue000", "\U0001f600", "a\U000e0041"),
)
_PLACES = ("../", "../../", "../../../../", "/", "./../", "~/", "..//", ".//../")
_SIGNS = "!\"#$%&'()*+,/:;<=>?@[\\]^`{|}~"
HOSTILE = [
    *_ALONE,
    *(f"{place}{name}" for name in ("x", "y", "etc/passwd", "catalog.sqlite", "server/token") for place in _PLACES),
    *(f"a{sign}b" for sign in _SIGNS),
    *(f"{sign}a" for sign in _SIGNS),
    *(f"x{code}y" for code in ("%0a", "%0d%0a", "%20", "%5c", "%2F%2e%2e", "%ff", "%u002e", "&amp;", "\u3002")),
]
REFUSED = ("bad_request", "not_found")


def listing(directory: Path) -> set[str]:
    """Every name below a directory, but for those that the sound conversation, its host and the index make."""
    home = directory / "home"
    ours = (home / "conversations" / "sound", home / "host", home / "index")
    return {str(path) for path in directory.rglob("*") if not any(path.is_relative_to(one) for one in ours)}


def test_there_are_200_of_them_and_none_is_a_name() -> None:
    assert len(set(HOSTILE)) >= 200
    assert [name for name in HOSTILE if SOUND.fullmatch(name)] == []


@async_test
async def test_s14_no_way_in_takes_a_name_that_is_none(home: Path) -> None:
    around = home.parent
    async with serving(home) as server:
        await server.client().open("sound", shell="bash")
        before = listing(around), os.listdir(Path.cwd())
        client = server.client()
        for name in some_of(HOSTILE, 4):
            answers = [await server.ask("POST", "/v1/conversations", {"conversation_id": name})]
            answers += [await server.ask("GET", path) for path in paths(name, "status")]
            answers += [await server.ask("POST", path, {"command": "true"}) for path in paths(name, "run")]
            for answer in answers:
                assert answer.code in REFUSED and 400 <= answer.status < 500, (name, answer)
                assert len(answer.body) < 2000, "it is not given back whole"
            calls: Any = (("open", {}), ("status", {}), ("run", {"command": "true"}), ("block", {"block_id": "b1"}))
            for operation, more in calls:
                # A name with a slash is one part of a path for us, but two for who decodes it.
                expected = REFUSED if "/" in name and operation != "open" else ("bad_request",)
                found = await code_of(client, operation, {"conversation_id": name, **more})
                assert found in expected, (operation, name)
            with pytest.raises(BlockptyError):
                await client.conversation(name)
            assert await code_of(client, "block", {"conversation_id": "sound", "block_id": name}) in REFUSED, name
            await opens_no_socket(server, name)
        assert (listing(around), os.listdir(Path.cwd())) == before
        assert [one.conversation_id for one in (await client.list()).conversations] == ["sound"]
        for name in HOSTILE:  # a filter is no name: any text will do
            if "\ud800" not in name:
                assert len((await client.list(name)).conversations) in (0, 1)


@async_test
async def test_s14_the_command_line_neither(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def cli(*arguments: str) -> tuple[int, str]:
        status = main(arguments, open_engine=lambda _home: Client(home, start=False))
        said = capfd.readouterr()
        return status, said.out + said.err

    async with serving(home) as server:
        await server.client().open("sound", shell="bash")
        before = listing(home.parent)
        for name in HOSTILE:
            if "\x00" in name or "\ud800" in name or len(name) > 5000:
                continue  # no argument of a program can be that
            for words in (("status", "--", name), ("open", f"--conversation-id={name}"), ("run", "--", name, "true")):
                status, said = await asyncio.to_thread(cli, *words)
                assert status in (1, 2), (name, words)
                assert not re.search(r"Traceback|[\x00-\x08\x0b-\x1f\x7f-\x9f]", said), (name, said)
        assert listing(home.parent) == before


@pytest.mark.parametrize("value", [None, 5, 1.5, True, [], {}, ["sound"], {"a": "b"}])
@async_test
async def test_s14_what_is_no_text_is_no_name(home: Path, value: Any) -> None:
    async with serving(home) as server:
        await server.client().list()  # the token's first use is in the audit log, which begins with it
        before = listing(home.parent)
        for name in ("status", "run", "close"):
            assert await code_of(server.client(), name, {"conversation_id": value, "command": "true"}) in REFUSED
        if value is not None:  # which means: make one up
            answer = await server.ask("POST", "/v1/conversations", {"conversation_id": value})
            assert (answer.status, answer.code) == (400, "bad_request")
        assert listing(home.parent) == before


def paths(name: str, rest: str) -> list[str]:
    """The ways to write a name into a path: quoted, and as it is where that is a request at all."""
    forms = {quote(name, safe="", errors="surrogatepass")}
    if re.fullmatch(r"[!-~]+", name) and len(name) < 8000:
        forms.add(name.replace("#", "%23").replace("?", "%3F"))
    return [f"/v1/conversations/{form}/{rest}" for form in forms if len(form) < 60_000]


async def code_of(client: Client, operation: str, params: dict[str, Any]) -> str:
    try:
        result = await client.call(operation, params)
    except BlockptyError as error:
        return error.code
    return json.dumps(result.to_dict())


async def opens_no_socket(server: Server, name: str) -> None:
    for path in paths(name, "ws"):
        with contextlib.suppress(InvalidHandshake, ValueError):
            headers = {"Authorization": f"Bearer {server.token}"}
            async with connect(f"ws://127.0.0.1:{server.port}{path}", additional_headers=headers):
                pytest.fail(f"a socket for {name!r}")
