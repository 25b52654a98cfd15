"""Secrets at hidden prompts: typed by a person, by an agent that was allowed to, or by name, and found in no file."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import shutil
import sys
from pathlib import Path

import pytest

import blockpty
from blockpty.control.principals import Principal, Scope, acting
from blockpty.errors import ApprovalDenied, BadRequest, BlockptyError
from tests.support.async_tests import async_test

BOT = Principal("bot", Scope.ADMIN)
ANN = Principal("ann", Scope.WRITE, types_as="user")
SECRET = "n3ver-Seen-Aga1n"
GETPASS = "import getpass; print(len(getpass.getpass()), 'there')"
READ = "read -rs -p 'Password: ' p; echo; echo ${#p} there"
# Each asks for a password, and says how long it was.
PROGRAMS = {
    "read": READ,
    "getpass": f'{sys.executable} -c "{GETPASS}"',
    "nested": "script -qc 'bash {place}/ask.sh' /dev/null",
    "gpg": "mkdir -pm 700 {place}/g; echo > {place}/f; gpg --homedir {place}/g --pinentry-mode loopback -c {place}/f",
    "su": "su nobody -s /bin/sh -c 'su root'",  # words: on the system
    "sudo": "setpriv --reuid 65534 --regid 65534 --clear-groups sudo id",
    "mysql": "mysql -p -h 127.0.0.1 -P 1 -u x",
    "stty": "stty -echo; printf 'Pass%s' word; read -r p; stty echo; echo ${#p} there",
}
# Programs that may not be here. They refuse the secret, or ask for it again.
OTHERS = ("gpg", "su", "sudo", "mysql")
POLICY = """
approval_timeout_seconds = 60
[levels]
"*" = "always_allow"
[secret.deploy-key]
command = ["cat", {file}]
[secret.broken]
command = ["false"]
[[rule]]
name = "deploy"
action = "allow"
rights = ["password"]
secrets = ["deploy-key", "broken"]
foreground = ["bash", "{python}"]
"""


def write_policy(home: Path, place: Path) -> None:
    home.mkdir(mode=0o700, exist_ok=True)
    (place / "key").write_text(f"{SECRET}\nnot this line\n")
    file = f'"{place / "key"}"'
    (home / "policy.toml").write_text(POLICY.format(file=file, python=Path(sys.executable).name))


def assert_nowhere(home: Path) -> None:
    forms = (SECRET.encode(), base64.b64encode(SECRET.encode()).rstrip(b"="), SECRET.encode("utf-16-le"))
    for path in home.rglob("*"):
        # The recorder ends after its last conversation, and removes what says where it was.
        with contextlib.suppress(FileNotFoundError):
            if path.is_file():
                content = path.read_bytes()
                assert not [form for form in forms if form in content], path


async def asks(conversation: blockpty.Conversation, place: Path, program: str) -> None:
    """Start a program, and return when it waits for a password."""
    with acting(ANN):
        (place / "ask.sh").write_text(READ)
        await conversation.exec_interactive(PROGRAMS[program].replace("{place}", str(place)))
    while (await conversation.status()).tty not in ("password", "raw"):
        pass
    # One terminal within another is raw from the start, and stty may still run when it has turned the echo off.
    if program in ("nested", "stty"):
        await conversation.wait_for("Password")


@pytest.mark.needs("bash")
@pytest.mark.parametrize("program", ["read", "getpass", "nested", "stty", *OTHERS])
@async_test
async def test_an_agent_asks_at_a_hidden_prompt_whatever_the_level(home: Path, tmp_path: Path, program: str) -> None:
    if program in OTHERS and (shutil.which(program) is None or os.geteuid() != 0 or sys.platform == "darwin"):
        pytest.skip(f"{program} is not here, or asks the superuser only")
    if program == "nested" and (shutil.which("script") is None or sys.platform == "darwin"):
        pytest.skip("script of util-linux is not here")
    write_policy(home, tmp_path)
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        await asks(conversation, tmp_path, program)
        with acting(BOT):
            typing = asyncio.ensure_future(conversation.send(f"{SECRET}\r"))
        async for event in conversation.events(0):
            if event.type == "approval_requested":
                break
        waiting = (await engine.approvals()).approvals
        assert (waiting[0]["text"], waiting[0]["always"]) == (None, None)
        with acting(ANN):
            await conversation.approve(waiting[0]["approval_id"], waiting[0]["digest"])
        await typing
        said = {"token": "PROMPT"} if program in OTHERS else f"{len(SECRET)} there"
        assert (await conversation.wait_for(said)).reason in ("matched", "prompt", "password")
        await conversation.close()
        assert (await conversation.verify()).clean
        assert SECRET not in str((await engine.audit()).entries)
    assert_nowhere(home)


@pytest.mark.needs("bash")
@pytest.mark.parametrize("program", ["read", "getpass"])
@async_test
async def test_a_stored_secret_is_typed_without_being_seen(home: Path, tmp_path: Path, program: str) -> None:
    write_policy(home, tmp_path)
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        await asks(conversation, tmp_path, program)
        with acting(BOT):
            sent = await conversation.send(secret_name="deploy-key")
            assert sent.accepted_bytes == len(SECRET) + 1
            await conversation.wait_for(f"{len(SECRET)} there")
        await conversation.close()
        used = [one for one in (await engine.audit()).entries if one["type"] == "verdict"]
        assert [(one["secret"], one["principal"]) for one in used] == [("deploy-key", "bot")]
    assert_nowhere(home)


@pytest.mark.needs("bash")
@async_test
async def test_and_only_where_the_policy_allows_it(home: Path, tmp_path: Path) -> None:
    write_policy(home, tmp_path)
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        with acting(ANN):
            await conversation.exec_interactive("cat")
        # A shell that has not started it yet may drop the Ctrl-C below.
        while (await conversation.status()).foreground != "cat":
            pass
        with acting(BOT):
            for name, wrong in (("deploy-key", "asks for a secret"), ("no-such", "no secret is called")):
                with pytest.raises(BadRequest, match=wrong):
                    await conversation.send(secret_name=name)
            with pytest.raises(BadRequest):
                await conversation.send("x", secret_name="deploy-key")
            await conversation.ctrl_c()
        await conversation.wait_for({"token": "PROMPT"})
        await asks(conversation, tmp_path, "read")
        with acting(BOT), pytest.raises(BadRequest, match="status 1"):
            await conversation.send(secret_name="broken")
        # In another program than those that the rule names.
        (home / "policy.toml").write_text((home / "policy.toml").read_text().replace('"bash"', '"ssh"'))
        with acting(BOT):
            while True:  # a change holds within a second
                try:
                    await conversation.send(secret_name="broken")
                except ApprovalDenied:
                    break
                except BlockptyError:
                    continue
            with pytest.raises(ApprovalDenied):
                await conversation.send(secret_name="deploy-key")
        await conversation.close()
    assert_nowhere(home)
