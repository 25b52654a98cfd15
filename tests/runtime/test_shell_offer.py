"""Shells with `blockpty shell-init` in tmux panes: they take the hooks that an engine offers, and no others."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import blockpty
from blockpty.host.injection import init_text
from blockpty.spool.layout import make_private, shells_directory
from tests.support.async_tests import async_test
from tests.support.tmux_server import TmuxServer, shown, tmux_server

TIMEOUT_MS = 30_000
SHELLS = [pytest.param(name, marks=pytest.mark.needs(name)) for name in ("bash", "zsh", "fish")]


@pytest.fixture(scope="module")
def tmux() -> Iterator[TmuxServer]:
    with tmux_server() as server:
        yield server


def started(tmux: TmuxServer, home: Path, shell: str, more: str = "") -> str:
    """Start a shell with the line in its startup file; return its session, when it has shown its prompt."""
    files = home.parent / f"rc-{shell}"
    (files / "fish").mkdir(parents=True)
    make_private(home)
    make_private(shells_directory(home))
    text = init_text(shell, str(shells_directory(home))).decode()
    prompt = "function fish_prompt; echo 'ready> '; end\n" if shell == "fish" else "PS1='ready> '\n"
    name = {"bash": "bashrc", "zsh": ".zshrc", "fish": "fish/config.fish"}[shell]
    (files / name).write_text(f"{prompt}{text}{more}\n")
    session = f"{shell}{len(tmux('list-sessions').splitlines())}"
    command = {
        "bash": f"HISTFILE={files}/history bash --rcfile {files}/bashrc",
        "zsh": f"ZDOTDIR={files} zsh",
        "fish": f"HOME={files} XDG_CONFIG_HOME={files} XDG_DATA_HOME={files} fish",
    }[shell]
    tmux("new-session", "-d", "-s", session, "-x", "80", "-y", "24", command)
    assert shown(lambda: "ready>" in "".join(tmux.rows(session)), True)
    return session


def offers(home: Path) -> list[str]:
    return [path.name for path in shells_directory(home).glob("*.offer")]


@pytest.mark.parametrize("shell", SHELLS)
@async_test
async def test_blocks_of_a_shell_at_its_prompt_are_exact(shell: str, tmux: TmuxServer, home: Path) -> None:
    target = started(tmux, home, shell)
    tmux("send-keys", "-t", target, "echo half")
    assert shown(lambda: "echo half" in "".join(tmux.rows(target)), True)
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", source=f"tmux:{target}", env=tmux.environment)
        status = await conversation.status()
        assert (status.mode, status.integrity, status.integrity_reason) == ("idle", "ok", None)
        commands = (("true", 0, ""), ("echo one; false", 1, "one\n"), ("cd /usr; pwd", 0, "/usr\n"))
        for command, code, output in commands:
            result = await conversation.run(command, timeout_ms=TIMEOUT_MS)
            assert (result.block.exit_status, result.output, result.block.degraded) == (code, output, None)
        big = await conversation.run("seq 1 20000", timeout_ms=TIMEOUT_MS, max_bytes=1_000_000)
        assert big.output == "".join(f"{number}\n" for number in range(1, 20_001))
        assert (await conversation.status()).cwd == "/usr"
        assert offers(home) == []
        # Another offer, with another nonce: the shell's marks of before mean nothing any more.
        (client,) = tmux.control_clients()
        tmux("detach-client", "-t", client)
        await conversation.wait_for({"token": "EOF"}, timeout_ms=TIMEOUT_MS)
        await conversation.reset()
        again = await conversation.run("pwd; sh -c 'exit 3'", timeout_ms=TIMEOUT_MS)
        assert (again.block.exit_status, again.output, again.block.degraded) == (3, "/usr\n", None)
        assert (await conversation.verify()).clean
        nonces = [note["nonce"] for note in _notes(conversation) if note.get("type") == "offer"]
        assert len(set(nonces)) == 2
        files = (conversation.layout.events, conversation.layout.blocks, *conversation.layout.outputs.iterdir())
        derived = b"".join(path.read_bytes() for path in files)
        assert not any(str(nonce).encode() in derived for nonce in nonces)
        await conversation.close()
    tmux("kill-session", "-t", target)


@pytest.mark.parametrize("shell", SHELLS)
@async_test
async def test_a_shell_that_is_busy_takes_the_offer_at_its_next_prompt(
    shell: str, tmux: TmuxServer, home: Path
) -> None:
    target = started(tmux, home, shell)
    tmux("send-keys", "-t", target, "echo be''gun; cat", "Enter")
    assert shown(lambda: "begun" in tmux.rows(target), True)
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", source=f"tmux:{target}", env=tmux.environment)
        status = await conversation.status()
        assert (status.mode, status.integrity) == ("interactive", "degraded")
        # What knows no nonce is not accepted, whatever it says.
        forged = r"printf '\033]7717;__HELLO__;n=AbCdEfGhIjKlMnOpQrSt_-;i=7;s=0;c=0;p=0;v=1;sh=bash;f=ps0\a'"
        await conversation.send(forged + "\r")
        await conversation.wait_for("printf", timeout_ms=TIMEOUT_MS)
        assert (await conversation.status()).mode == "interactive" and len(offers(home)) == 1
        await conversation.send("\x04")
        assert (await conversation.wait_for({"token": "PROMPT"}, timeout_ms=TIMEOUT_MS)).matched
        result = await conversation.run("echo one; false", timeout_ms=TIMEOUT_MS)
        assert (result.block.exit_status, result.output, result.block.degraded) == (1, "one\n", None)
        assert (await conversation.status()).integrity == "ok"
        assert [(one.kind, one.degraded) for one in (await conversation.blocks()).blocks] == [
            ("session", "shell_entered"), ("command", None),
        ]  # fmt: skip
        assert (await conversation.verify()).clean
        assert offers(home) == []
        await conversation.close()
    tmux("kill-session", "-t", target)


@async_test
async def test_a_shell_that_looks_elsewhere_has_no_hooks(tmux: TmuxServer, home: Path, tmp_path: Path) -> None:
    target = started(tmux, tmp_path / "other" / "home", "bash")
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", source=f"tmux:{target}", env=tmux.environment)
        assert (await conversation.status()).integrity == "degraded"
        await conversation.close()
    tmux("kill-session", "-t", target)


@async_test
async def test_a_recorded_shell_has_its_hooks_once(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line in a startup file changes nothing in a shell that an engine has started."""
    shells = [name for name in ("bash", "zsh", "fish") if shutil.which(name)]
    make_private(home)
    make_private(shells_directory(home))
    (tmp_path / "fish").mkdir()
    for shell, name in (("bash", ".bashrc"), ("zsh", ".zshrc"), ("fish", "fish/config.fish")):
        (tmp_path / name).write_bytes(init_text(shell, str(shells_directory(home))))
    monkeypatch.setenv("HOME", str(tmp_path))
    async with blockpty.Engine(home) as engine:
        for shell in shells:
            conversation = await engine.open(shell, shell=shell, env={"XDG_CONFIG_HOME": str(tmp_path)})
            result = await conversation.run("echo one; false", timeout_ms=TIMEOUT_MS)
            assert (result.block.exit_status, result.output, result.block.degraded) == (1, "one\n", None)
            assert (await conversation.status()).integrity == "ok"
            kinds = [event.type async for event in conversation.events(follow=False)]
            assert "spoofed_mark" not in kinds and "anomaly" not in kinds
            await conversation.close()


def _notes(conversation: blockpty.Conversation) -> list[dict[str, object]]:
    lines = conversation.layout.timeline.read_bytes().splitlines()
    return [dict(json.loads(line).get("note") or {}) for line in lines if b'"note"' in line]
