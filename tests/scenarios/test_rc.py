"""Every hostile set-up: the same commands, the same blocks, or a stated reason why not."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from blockpty import Engine, NoPrompt
from tests.scenarios.rc.commands import EXPECTED, play
from tests.scenarios.rc.frameworks import FRAMEWORKS, Framework
from tests.scenarios.rc.packages import PACKAGES, Package
from tests.scenarios.rc.table import SETUPS, Setup
from tests.scenarios.stage import SHELLS, in_every_shell, open_stage
from tests.support.async_tests import async_test
from tests.support.profile import some_of

# Of those that change what comes out, every second; of those that must change nothing, every third.
PLAYED = [
    *some_of((one for one in SETUPS if not one.is_harmless), 2), *some_of(one for one in SETUPS if one.is_harmless)
]  # fmt: skip
PLACE = Path(__file__).parents[2].parent / "shared" / "fixtures" / "startup"


def _write(home: Path, shell: str, rc: str) -> None:
    path = home.parent / "user" / {"fish": ".config/fish/config.fish"}.get(shell, f".{shell}rc")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(rc + "\n")


@pytest.mark.parametrize(
    "setup",
    [pytest.param(one, id=f"{one.shell}: {one.title}", marks=pytest.mark.needs(one.shell)) for one in PLAYED],
)
@async_test
async def test_set_up(setup: Setup, home: Path) -> None:
    _write(home, setup.shell, setup.rc)
    async with open_stage(home, setup.shell) as stage:
        assert await play(stage, setup.noise) == setup.change(EXPECTED[setup.shell])
        status = await stage.conversation.status()
        assert (status.integrity_reason or "ok").startswith(setup.reason or "ok")
        assert status.mode == "exited" or status.tty == "at_prompt"


@pytest.mark.parametrize(
    "package",
    [pytest.param(one, id=f"{one.shell}: {one.name}", marks=pytest.mark.needs(one.shell)) for one in PACKAGES],
)
@async_test
async def test_real_package(package: Package, home: Path) -> None:
    found = next((path for path in package.places if os.path.exists(path)), None)
    if found is None:
        pytest.skip(f"{package.name} is not installed: none of {', '.join(package.places)}")
    _write(home, package.shell, package.rc.format(path=found))
    async with open_stage(home, package.shell) as stage:
        assert await play(stage) == EXPECTED[package.shell]
        assert (await stage.conversation.status()).integrity == "ok"


@pytest.mark.parametrize(
    "framework",
    [pytest.param(one, id=f"{one.shell}: {one.title}", marks=pytest.mark.needs(one.shell)) for one in FRAMEWORKS],
)
@async_test(timeout_seconds=100)
async def test_framework(framework: Framework, home: Path) -> None:
    """One call is one exact block, and a prompt that draws itself again afterwards is none."""
    missing = [folder for folder in framework.folders if not (PLACE / folder).is_dir()]
    if missing:
        pytest.skip(f"not in ../shared/fixtures/startup: {', '.join(missing)}")
    _write(home, framework.shell, framework.text(str(PLACE)))
    async with open_stage(home, framework.shell) as stage:
        done = [await stage.run(cmd) for cmd in ("echo hi", "false")]
        # Whatever is drawn now is drawn without a command; a clock never lets a second be silent.
        await stage.conversation.wait_for({"idle_ms": 1000}, timeout_ms=1500)
        done.append(await stage.run("echo end"))
        # As text: a title that a hook sets before the command runs is in the output of the command.
        assert [(one.output, one.exit_status) for one in done] == [("hi\n", 0), ("", 1), ("end\n", 0)]
        blocks = [(block.kind, block.cmd, block.degraded) for block in await stage.blocks()]
        assert blocks == [("command", cmd, None) for cmd in ("echo hi", "false", "echo end")]
        assert (await stage.conversation.status()).integrity_reason is None
        assert b"maximum nested function level" not in stage.stream()


@in_every_shell()
@async_test
async def test_slow_startup(shell: str, home: Path) -> None:
    """However long the startup file takes: nothing is ready before it is over, and then everything is as usual."""
    gate = home.parent / "gate"
    os.mkfifo(gate, 0o600)
    _write(home, shell, f"echo starting; read -r _ <'{gate}'")
    async with Engine(home) as engine:
        with pytest.raises(NoPrompt):
            await engine.open("slow", shell=shell, timeout_ms=200)
        conversation = await engine.conversation("slow")
        assert (await conversation.status()).mode == "starting"
        # Opens when the shell has opened the other end.
        await asyncio.to_thread(gate.write_text, "go\n")
        assert (await conversation.wait_for({"token": "PROMPT"}, from_cursor=0)).matched
        assert (await conversation.run("printf x")).output == "x"
        assert (await conversation.verify()).clean


@in_every_shell()
@async_test
async def test_startup_that_asks(shell: str, home: Path) -> None:
    """A question at startup is seen, can be answered, and what was typed does not become a command."""
    _write(home, shell, "printf 'name? '; read -r name; echo \"hello $name\"")
    async with Engine(home) as engine:
        with pytest.raises(NoPrompt):
            await engine.open("asks", shell=shell, timeout_ms=500)
        conversation = await engine.conversation("asks")
        typed = await conversation.host.input(conversation.id, b"visitor\r", author="user", epoch=conversation.epoch)
        assert (await conversation.wait_for({"token": "PROMPT"}, from_cursor=typed.offset)).matched
        assert (await conversation.run("echo $name")).output == "visitor\n"
        assert [block.cmd for block in (await conversation.blocks()).blocks] == ["echo $name"]
        assert (await conversation.verify()).clean


@in_every_shell()
@async_test
async def test_startup_that_becomes_another_shell(shell: str, home: Path) -> None:
    """`exec` of a shell without our hooks: no prompt is claimed, nothing is run into it, and it can be left."""
    _write(home, shell, "exec sh -i")
    async with Engine(home) as engine:
        with pytest.raises(NoPrompt):
            await engine.open("other", shell=shell, timeout_ms=500)
        conversation = await engine.conversation("other")
        assert (await conversation.blocks()).blocks == []
        assert (await conversation.status()).mode == "starting"
        await conversation.close()
        assert (await conversation.verify()).clean


def test_the_table_is_wide_enough() -> None:
    """At least 25 set-ups in each shell, each once."""
    for shell in SHELLS:
        titles = [setup.title for setup in SETUPS if setup.shell == shell]
        assert len(titles) == len(set(titles)) >= 25
