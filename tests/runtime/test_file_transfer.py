"""Files in and out of a conversation: directly, and through the terminal of a shell inside."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shlex
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest

import blockpty
from blockpty.control.principals import LOCAL, acting
from blockpty.runtime.file_transfer import _as_word
from tests.support.async_tests import async_test
from tests.support.nested_shells import SHELLS, inside

TIMEOUT_MS = 20_000
SCHEMA = Path(blockpty.__file__).parents[1] / "spool_schema" / "event-v1.json"
RANDOM = random.Random(1).randbytes(1_000_000)
NAMES = ("plain", "a b", "it's \"so\"", "two\nlines", "-n", "$HOME *", "é")
pytestmark = pytest.mark.needs("bash", "zsh")


async def there_and_back(conversation: blockpty.Conversation, how: str, directory: Path) -> None:
    """Move some files; they arrive as they are."""
    for name in NAMES:
        put = await conversation.put_file(name, name)
        got = await conversation.get_file(name)
        assert (put.how, got.how, got.data, got.data_b64, got.redacted) == (how, how, name, None, False)
        assert (directory / name).read_text() == name
    for content in (b"", b"\0\xff\r\n\x04\x03", RANDOM):
        begun = time.perf_counter()
        put = await conversation.put_file("x", content, mode="640")
        middle = time.perf_counter()
        got = await conversation.get_file("x")
        ended = time.perf_counter()
        assert (put.bytes, got.content) == (len(content), content)
        assert put.digest == got.digest == hashlib.sha256(content).hexdigest()
        assert (directory / "x").stat().st_mode & 0o777 == 0o640
        if content is RANDOM:
            print(f"{how}: put {1 / (middle - begun):.1f} MB/s, get {1 / (ended - middle):.1f} MB/s")
    assert sorted(os.listdir(directory)) == sorted([*NAMES, "x"])


@pytest.mark.parametrize("shell", SHELLS)
@async_test
async def test_files_move_directly_where_they_are_ours(shell: str, home: Path, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell=shell, cwd=str(tmp_path / "d"))
        await there_and_back(conversation, "direct", tmp_path / "d")
        # As the shell would: from its own directory, home and umask on.
        await conversation.run("mkdir e; cd e; umask 027")
        await conversation.put_file("y", "1")
        assert (tmp_path / "d" / "e" / "y").stat().st_mode & 0o777 == 0o640
        assert not (await conversation.blocks(author="engine")).blocks


@pytest.mark.parametrize("shell", SHELLS)
@async_test
async def test_files_move_through_the_terminal_of_a_shell_inside(shell: str, home: Path, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell=shell, cwd=str(tmp_path / "d"))
        await inside(conversation, SHELLS[shell])
        await there_and_back(conversation, "terminal", tmp_path / "d")
        blocks = (await conversation.blocks(author="engine")).blocks
        assert blocks and all(block.exit_status == 0 for block in blocks)
        ran = await conversation.run("stty -a | grep -c -- ' echo '")
        assert ran.output == "1\n"
        assert (await conversation.verify()).clean


@async_test
async def test_content_that_is_put_is_not_recorded_and_the_transfer_is(home: Path, tmp_path: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash", cwd=str(tmp_path))
        await conversation.put_file("x", "a word of my own")
        await inside(conversation, SHELLS["bash"])
        put = await conversation.put_file("x", "a word of my own")
        recorded = b"".join(path.read_bytes() for path in conversation.directory.rglob("*") if path.is_file())
        assert b"a word of my own" not in recorded and b"YSB3b3JkIG9m" not in recorded
        found = [event async for event in conversation.events(follow=False) if event.type == "file_transfer"]
        digest = hashlib.sha256(b"a word of my own").hexdigest()
        assert [event.fields for event in found] == [
            {"direction": "put", "path": "x", "bytes": 16, "digest": digest, "how": how, "principal": "local"}
            for how in ("direct", "terminal")
        ]
        assert put.cursor >= found[-1].cursor
        for event in found:
            jsonschema.validate(event.to_dict("c1"), json.loads(SCHEMA.read_text()))


@pytest.mark.parametrize("nested", [False, True], ids=["direct", "terminal"])
@async_test
async def test_what_cannot_be_is_said(nested: bool, home: Path, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "long").write_bytes(b"123")
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash", cwd=str(tmp_path))
        if nested:
            await inside(conversation, SHELLS["bash"])
        for path, error, text in (
            ("d", blockpty.BadRequest, "directory"), ("/dev/null", blockpty.BadRequest, "regular"),
            ("no/x", blockpty.NotFound, "no file"), ("", blockpty.BadRequest, "empty"),
            ("a\0b", blockpty.BadRequest, "NUL"),
        ):  # fmt: skip
            with pytest.raises(error, match=text):
                await conversation.put_file(path, "x")
            with pytest.raises(error, match=text):
                await conversation.get_file(path)
        with pytest.raises(blockpty.BadRequest, match="long"):
            await conversation.get_file("long", max_bytes=2)
        with pytest.raises(blockpty.BadRequest, match="one of"):
            await conversation.put_file("x")
        with pytest.raises(blockpty.BadRequest, match="mode"):
            await conversation.put_file("x", "x", mode="rw")
        await conversation.exec_block("read -r line")
        with pytest.raises(blockpty.Busy):
            await conversation.put_file("x", "x")
        await conversation.wait_for({"token": "INPUT"}, timeout_ms=TIMEOUT_MS)
        await conversation.send("\r", match={"token": "PROMPT"}, timeout_ms=TIMEOUT_MS)
        session = await conversation.exec_interactive("cat")
        with pytest.raises(blockpty.InteractiveSessionActive):
            await conversation.get_file("long")
        await conversation.end_session(session.session_id)


@pytest.fixture
def closing_directory() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as directory:
        yield directory


@async_test
async def test_another_user_gets_no_more_than_the_shell(home: Path, closing_directory: str) -> None:
    if os.geteuid() != 0 or shutil.which("su") is None:
        pytest.skip("needs root and su")
    # pytest's own directories are closed to others.
    tmp_path = Path(closing_directory)
    tmp_path.chmod(0o755)
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "closed").write_text("mine")
    (tmp_path / "closed").chmod(0o600)
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash", cwd=str(tmp_path))
        user = "nobody"  # words: on the system
        session = await conversation.exec_interactive(f"su -s /bin/bash {user}")
        while (await conversation.wait_for({"idle_ms": 100}, from_cursor=session.cursor)).tty != "raw":
            assert (await conversation.status()).mode == "interactive"
        await conversation.enter_shell("bash", timeout_ms=TIMEOUT_MS)
        with pytest.raises(blockpty.BadRequest, match="permission denied"):
            await conversation.get_file("closed")
        for path in ("closed", "y"):
            with pytest.raises(blockpty.BadRequest, match="permission denied"):
                await conversation.put_file(path, "x")
        await conversation.put_file("open/x", "theirs")
        assert (tmp_path / "open" / "x").owner() == user and (tmp_path / "closed").read_text() == "mine"


@async_test
async def test_secrets_are_redacted_unless_the_engine_shows_them(home: Path, tmp_path: Path) -> None:
    secret = "API_TOKEN=ghp_" + "aB3dE5gH7j" * 4
    (tmp_path / "x").write_text(f"{secret}\nrest\n")
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash", cwd=str(tmp_path))
        got = await conversation.get_file("x")
        assert got.redacted and secret not in (got.data or "") and (got.data or "").endswith("rest\n")
        assert got.digest == hashlib.sha256(got.content).hexdigest()
        with pytest.raises(blockpty.Forbidden):
            await conversation.get_file("x", redact=False)
        await conversation.close()
    async with blockpty.Engine(home, redact=True, allow_uncovered=True) as engine:
        conversation = await engine.open("c2", shell="bash", cwd=str(tmp_path))
        got = await conversation.get_file("x", redact=False)
        assert (got.data, got.redacted) == (f"{secret}\nrest\n", False)


@async_test
async def test_files_of_the_engines_machine_are_for_persons(home: Path, tmp_path: Path) -> None:
    (tmp_path / "local").write_bytes(RANDOM)
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash", cwd=str(tmp_path))
        await conversation.put_file("x", local_path=str(tmp_path / "local"))
        got = await conversation.get_file("x", str(tmp_path / "back"))
        assert (tmp_path / "back").read_bytes() == RANDOM and (got.data, got.data_b64, got.bytes) == (None, None, 10**6)
        assert (tmp_path / "back").stat().st_mode & 0o777 == 0o600
        with acting(LOCAL.as_agent("model")):
            with pytest.raises(blockpty.Forbidden):
                await conversation.put_file("y", local_path=str(tmp_path / "local"))
            with pytest.raises(blockpty.Forbidden):
                await conversation.get_file("x", str(tmp_path / "z"))
            await conversation.put_file("y", "data")
        assert not (tmp_path / "z").exists()


@pytest.mark.parametrize("path", ["x", "/a b/../dev/sda", "x; true", "$HOME/x", "it's", "a\nb", "#", "-n", "~x", "~"])
def test_the_policy_reads_the_path_as_one_word(path: str) -> None:
    # Without quotes a directory with a blank in its name would hide what stands behind it.
    name = f"./{path}" if path.startswith("-") else path
    assert shlex.split(f"cat > {_as_word(path)}") == ["cat", ">", name]
    assert _as_word(f"~/{path}").startswith("~/") and shlex.split(_as_word(f"~/{path}")) == [f"~/{path}"]


@async_test
async def test_the_policy_sees_the_commands_that_would_do_the_same(home: Path, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("there")
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "policy.toml").write_text('[[rule]]\nname = "no"\naction = "deny"\ncommands = ["cat"]\n')
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash", cwd=str(tmp_path))
        with pytest.raises(blockpty.ApprovalDenied):
            await conversation.get_file("x")
        with pytest.raises(blockpty.ApprovalDenied):
            await conversation.put_file("y", "1")
        assert not (tmp_path / "y").exists()
