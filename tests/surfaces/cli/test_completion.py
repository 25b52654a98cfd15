"""Completion of conversations and options, in the shells of people."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import blockpty

pytestmark = pytest.mark.needs("bash")


@pytest.fixture
def programs(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a command `blockpty` on PATH, and two conversations into the home."""
    (tmp_path / "blockpty").write_text(f"#!/bin/sh\nexec '{sys.executable}' -m blockpty \"$@\"\n")
    (tmp_path / "blockpty").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    asyncio.run(asyncio.wait_for(_two_conversations(home), 60))
    return tmp_path


async def _two_conversations(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        for name in ("deploy", "develop"):
            conversation = await engine.open(name, shell="bash")
            await conversation.run(": '\x1b]0;x\x07' a:b,c\n\ttrue")
            await conversation.run("make test")
    # An engine that ends releases both at the same time.
    for number, name in enumerate(("deploy", "develop")):
        for path in (home / "conversations" / name).rglob("*"):
            os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    (home / "conversations" / "de\x1b]0;x\x07$(touch owned)").mkdir()


def completed(shell: str, words: str) -> list[str]:
    count = len(words.split(" ")) - 1
    current = words.split(" ")[-1] if shell == "fish" else str(count)
    result = subprocess.run(
        [sys.executable, "-m", "blockpty"],
        env={**os.environ, "_BLOCKPTY_COMPLETE": f"{shell}_complete", "COMP_WORDS": words, "COMP_CWORD": current},
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert result.stderr == ""
    return [line for line in result.stdout.splitlines() if line]


def test_what_is_offered(programs: Path, home: Path) -> None:
    assert completed("bash", "blockpty status d") == ["plain,develop", "plain,deploy"]
    assert completed("bash", "blockpty tail dep") == ["plain,deploy"]
    assert completed("bash", "blockpty replay dep") == ["plain,deploy"]
    assert completed("bash", "blockpty open d") == []
    # A shell that ends may say so in a block of its own.
    assert completed("bash", "blockpty block deploy ")[-2:] == ["plain,b2", "plain,b1"]
    assert completed("bash", "blockpty read deploy --block-id b1") == ["plain,b1"]
    assert completed("bash", "blockpty block nothing ") == []
    assert completed("bash", "blockpty block ../conversations/deploy ") == []
    assert completed("bash", "blockpty ta") == ["plain,take-control", "plain,tail"]
    assert completed("bash", "blockpty --home /nowhere status d") == []
    assert completed("bash", f"blockpty --home {home} status dep") == ["plain,deploy"]
    assert completed("bash", "blockpty completion z") == ["plain,zsh"]
    assert completed("bash", "blockpty --home /x") == ["dir,/x"]
    summary = ": '^[]0;x^G' a:b,c↵ true"
    assert completed("fish", "blockpty block deploy b1") == [f"plain,b1\t{summary}"]
    assert completed("zsh", "blockpty block deploy b1") == ["plain", "b1", summary]


def test_offering_loads_no_engine(home: Path) -> None:
    code = (
        "import sys; from blockpty.surfaces.cli.main import main; main([]); "
        "loaded = {'asyncio', 'rich', 'regex', 'blockpty.runtime'} & set(sys.modules); sys.exit(str(loaded or ''))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "_BLOCKPTY_COMPLETE": "bash_complete", "COMP_WORDS": "blockpty status ", "COMP_CWORD": "2"},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert result.stderr.strip() == ""


_ROOT = Path(__file__).parents[3]
_LOAD = {
    "bash": 'eval "$(blockpty completion bash)"',
    "zsh": 'autoload -U compinit; compinit -u -D; eval "$(blockpty completion zsh)"',
    "fish": "blockpty completion fish | source",
}
_START = {"bash": ["--norc", "--noprofile", "-i"], "zsh": ["-f", "-i"], "fish": ["--no-config", "-i"]}


@pytest.mark.parametrize("shell", [pytest.param(name, marks=pytest.mark.needs(name)) for name in _LOAD])
def test_a_shell_completes(programs: Path, shell: str) -> None:
    asyncio.run(asyncio.wait_for(_completes(shell, str(shutil.which(shell))), 60))


async def _completes(shell: str, path: str) -> None:
    async with blockpty.Engine() as engine:
        # A conversation of ours is the terminal that the user types into; its own name is offered as well.
        conversation = await engine.open("typing", shell=path)
        await conversation.run(f"export BLOCKPTY_HOME='{engine.home}' PYTHONPATH='{_ROOT}'")
        await conversation.exec_interactive(" ".join([path, *_START[shell]]))
        await conversation.wait_for({"idle_ms": 500})
        await conversation.send(f"{_LOAD[shell]}; echo loa''ded\n")
        await conversation.wait_for("loaded")
        await conversation.wait_for({"idle_ms": 500})
        sent = await conversation.send("blockpty status dep\t")
        found = await conversation.wait_for({"regex": "deplo?y?|loy"}, from_cursor=sent.cursor, timeout_ms=20_000)
        await conversation.send("\x15echo over\n")
        assert found.matched, found.text
