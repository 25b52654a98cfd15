"""What is typed as a secret, or where a raw terminal asks for one, is in no file."""

from __future__ import annotations

import base64
import shutil
import sys
from pathlib import Path

import pytest

import blockpty
from blockpty.redact.secret_prompts import asks_for_secret
from blockpty.runtime.conversation import Conversation
from tests.support.async_tests import async_test
from tests.support.secret_inputs import STARS, TYPED

READ = "read -rs -p 'Password: ' p; echo; echo ${#p} there"


def commands(directory: Path) -> dict[str, str]:
    """Return programs that ask for a password while the terminal of the conversation is raw."""
    (directory / "stars.py").write_text(STARS)
    (directory / "ask.sh").write_text(READ)
    ask = f"bash {directory}/ask.sh"
    return {
        "script": f"script -q /dev/null {ask}" if sys.platform == "darwin" else f"script -qc '{ask}' /dev/null",
        "stars": f"python3 {directory}/stars.py 'Enter passphrase for key: ' '*'",
        "silent": f"python3 {directory}/stars.py 'One-time code> ' ''",
    }


async def assert_nowhere(conversation: Conversation) -> None:
    forms = (TYPED.encode(), base64.b64encode(TYPED.encode()).rstrip(b"="), TYPED.encode("utf-16-le"))
    for path in conversation.directory.rglob("*"):
        if path.is_file():
            assert not [form for form in forms if form in path.read_bytes()], path
    assert (await conversation.verify()).clean


async def inputs(conversation: Conversation) -> list[dict[str, object]]:
    return [dict(event.fields) async for event in conversation.events(follow=False) if event.type == "input"]


@pytest.mark.needs("bash")
@pytest.mark.parametrize("asks", ["script", "stars", "silent"])
@async_test
async def test_a_raw_terminal_that_asks(home: Path, tmp_path: Path, asks: str) -> None:
    if asks == "script" and shutil.which("script") is None:
        pytest.skip("no script(1) here")
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        for by_key in (False, True):
            begin = (await conversation.exec_interactive(commands(tmp_path)[asks])).cursor
            await conversation.wait_for({"regex": "[:>] $"}, from_cursor=begin, timeout_ms=20_000)
            for part in TYPED if by_key else (TYPED,):
                await conversation.send(part, author="user")
            await conversation.enter()
            found = await conversation.wait_for({"regex": r"(\d+) there"}, from_cursor=begin, timeout_ms=20_000)
            assert found.groups == {"1": str(len(TYPED))}
            await conversation.wait_for({"token": "PROMPT"}, timeout_ms=20_000)
        typed = [one for one in await inputs(conversation) if one["author"] == "user"]
        assert len(typed) == 1 + len(TYPED) and all(one.get("redacted") for one in typed)
        await assert_nowhere(conversation)


@pytest.mark.needs("fish")
@async_test
async def test_the_read_of_fish(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="fish")
        begin = (await conversation.exec_interactive("read -s -P 'Password: ' p; string length $p")).cursor
        await conversation.wait_for({"idle_ms": 300}, from_cursor=begin, timeout_ms=20_000)
        await conversation.send(f"{TYPED}\r", author="user")
        await conversation.wait_for({"token": "PROMPT"}, timeout_ms=20_000)
        typed = [one for one in await inputs(conversation) if one["author"] == "user"]
        assert typed == [{"author": "user", "principal": "local", "redacted": True}]
        await assert_nowhere(conversation)


@pytest.mark.needs("bash")
@pytest.mark.parametrize("way", ["send", "base64", "keys", "paste"])
@async_test
async def test_it_is_said_to_be_one(home: Path, tmp_path: Path, way: str) -> None:
    (tmp_path / "stars.py").write_text(STARS)
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        begin = (await conversation.exec_interactive(f"python3 {tmp_path}/stars.py 'Say: ' ''")).cursor
        await conversation.wait_for("Say: ", from_cursor=begin, timeout_ms=20_000)
        await conversation.send("open")
        if way == "send":
            await conversation.send(f"{TYPED}\r", secret=True)
        elif way == "base64":
            await conversation.send(data_b64=base64.b64encode(f"{TYPED}\r".encode()).decode(), secret=True)
        elif way == "keys":
            await conversation.send_keys(f"{TYPED}[ENTER]", secret=True)
        else:
            await conversation.paste(TYPED, secret=True)
            await conversation.enter()
        found = await conversation.wait_for({"regex": r"(\d+) there"}, from_cursor=begin, timeout_ms=20_000)
        assert found.groups == {"1": str(len(TYPED) + 4)}
        typed = [one for one in await inputs(conversation) if not one.get("submit")]
        assert typed[0].get("bytes") == 4  # an ordinary answer is recorded
        assert typed[1] == {"author": "agent", "principal": "local", "redacted": True}
        await assert_nowhere(conversation)


@pytest.mark.parametrize(
    ("line", "asks"),
    [
        ("Password: ", True),
        ("[sudo] password for me: ****", True),
        ("$ ssh host\nme@host's password: ", True),
        ("Enter passphrase for key 'id_rsa': ", True),
        ("Verification code: ", True),
        ("PIN> •••", True),
        ("Passwort:", True),
        ("密码：", True),
        ("Name: ", False),
        ("Password: \nName: ", False),
        ("Password: hunter2", False),
        ("12 tests passed: ", False),
        ("password changed\n", False),
        ("", False),
        ("token" * 400, False),
    ],
)
def test_what_looks_like_a_question(line: str, asks: bool) -> None:
    assert asks_for_secret(line.encode()) is asks
