"""Shells that do not come to a first prompt: what is said, what can be done, and what is left."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import blockpty
from blockpty.host import spawn
from blockpty.host.client import HostClient
from tests.support.async_tests import async_test

SHELLS = [pytest.param(name, marks=pytest.mark.needs(name)) for name in ("bash", "zsh", "fish")]
RC = {"bash": ".bashrc", "zsh": ".zshrc", "fish": ".config/fish/config.fish"}


def startup(home: Path, shell: str, text: str) -> dict[str, str]:
    """Write a startup file of a user of the shell's own; return the environment that has it read."""
    user = home.parent / f"user-{shell}"
    path = user / RC[shell]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")
    return {"HOME": str(user), "ZDOTDIR": str(user), "XDG_CONFIG_HOME": str(user / ".config")}


@async_test
async def test_what_could_not_be_opened_leaves_nothing(home: Path, tmp_path: Path) -> None:
    async with blockpty.Engine(home) as engine:
        kept = await engine.open("kept", shell="bash")
        await kept.run("echo one")
        await kept.close()
        wrong: list[dict[str, Any]] = [
            {"shell": "/nope"}, {"cwd": str(tmp_path / "nope")}, {"shell": "true"}, {"env": {"PS1": "x"}},
            {"env": startup(home, "bash", "echo last words; exit 3"), "shell": "bash"},
        ]  # fmt: skip
        for settings in wrong:
            for name in (None, "named", "kept"):
                with pytest.raises((blockpty.SpawnFailed, blockpty.BadRequest)):
                    await engine.open(name, **settings)
            assert [one.conversation_id for one in (await engine.list()).conversations] == ["kept"]
            assert [path.name for path in (home / "conversations").iterdir()] == ["kept"]
        # What was there before is as it was: its record, and how a shell of it is started.
        assert (await kept.read(0)).data.count("one") >= 1
        again = await engine.open("named", shell="bash")
        assert (await again.run("echo two")).output == "two\n"


# `exit` in a startup file of fish ends only that file.
@pytest.mark.parametrize("shell", SHELLS[:2])
@async_test
async def test_the_last_words_of_a_shell_that_ends_at_once(home: Path, shell: str) -> None:
    env = startup(home, shell, "echo 'last words'; exit 3")
    async with blockpty.Engine(home) as engine:
        with pytest.raises(blockpty.SpawnFailed) as refused:
            await engine.open("c1", shell=shell, env=env)
        assert "last words" in refused.value.details["printed"]
        assert refused.value.details["exit"] == {"status": 3, "signal": None}


@pytest.mark.linux
@async_test
async def test_leaving_ends_what_is_being_opened(home: Path) -> None:
    before = children()
    async with blockpty.Engine(home, session_limit=15) as engine:
        opens = [asyncio.create_task(engine.open(shell="bash")) for _ in range(20)]
        # Some wait for their prompts now, and others for their turn.
        await asyncio.wait(opens, return_when=asyncio.FIRST_COMPLETED)
    results = await asyncio.gather(*opens, return_exceptions=True)
    assert all(isinstance(one, blockpty.Conversation | blockpty.BlockptyError) for one in results), results
    assert shells_of(home) == [] and children() == before
    async with blockpty.Engine(home) as engine:
        assert not [one for one in (await engine.list()).conversations if one.live]


@pytest.mark.linux
@async_test
async def test_leaving_ends_a_shell_that_still_starts(home: Path) -> None:
    env = startup(home, "bash", "read -p 'Update now? [Y/n] '")
    async with blockpty.Engine(home) as engine:
        opening = asyncio.create_task(engine.open("c1", shell="bash", env=env))
        while not shells_of(home):  # noqa: ASYNC110  (nothing tells when a process is there)
            await asyncio.sleep(0.01)
    with pytest.raises(blockpty.BadRequest, match="closed"):
        await opening
    assert shells_of(home) == [] and not (home / "conversations" / "c1").exists()


@pytest.mark.linux
@async_test
async def test_an_open_that_is_cancelled_leaves_no_shell_behind(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, started = asyncio.Event(), HostClient.open

    async def seen(client: HostClient, *arguments: Any, **options: Any) -> Any:
        asked.set()
        return await started(client, *arguments, **options)

    monkeypatch.setattr(HostClient, "open", seen)
    async with blockpty.Engine(home) as engine:
        opening = asyncio.create_task(engine.open(shell="bash"))
        await asked.wait()
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        assert (await engine.list()).conversations == []
    assert shells_of(home) == []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("bash", "zsh -f"), ("bash", "fish --no-config"), ("bash", "bash --norc"), ("zsh", "bash --norc"),
        ("zsh", "zsh -f"), ("fish", "bash --norc"),
    ],
)  # fmt: skip
@async_test
async def test_a_startup_file_that_becomes_another_shell(home: Path, first: str, second: str) -> None:
    name = second.split()[0]
    if any(shutil.which(one) is None for one in (first, name)):
        pytest.skip(f"{first} or {name} is not installed")
    unless = "set -q Z; or" if first == "fish" else '[ -n "$Z" ] ||'
    env = startup(home, first, f"{unless} exec env Z=1 {second}")
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell=first, env=env)
        assert conversation.opened is not None and conversation.opened.mode == "idle"
        result = await conversation.run("echo hi; false")
        assert (result.output, result.exit_status) == ("hi\n", 1)
        status = await conversation.status()
        assert (status.shell, status.integrity) == (name, "ok")
        await conversation.reset()
        assert (await conversation.run("echo again")).output == "again\n"
        assert (await conversation.verify()).clean


@pytest.mark.needs("zsh")
@async_test
async def test_the_other_shell_may_take_its_time(home: Path, tmp_path: Path) -> None:
    """It is the shell that matters, and not what its own startup file runs at the moment."""
    gates = [tmp_path / "one", tmp_path / "two"]
    for gate in gates:
        os.mkfifo(gate)
    env = startup(home, "zsh", "echo starting; cat $GATE")
    env |= startup(home, "bash", f"export ZDOTDIR='{env['ZDOTDIR']}'; exec zsh")
    async with blockpty.Engine(home) as engine:
        with pytest.raises(blockpty.NoPrompt, match="replaced by zsh, which did not show a prompt"):
            await engine.open("c1", shell="bash", env=env | {"GATE": str(gates[0])}, timeout_ms=7000)
        opening = asyncio.create_task(engine.open("c2", shell="bash", env=env | {"GATE": str(gates[1])}))
        # Opens when the program of the startup file has opened the other end.
        await asyncio.to_thread(gates[1].write_text, "go\n")
        assert (await (await opening).run("echo on")).output == "on\n"


@pytest.mark.parametrize(("program", "name", "timeout_ms"), [("sh -i", "sh", 60_000), ("sleep 1000", "sleep", 1000)])
@async_test
async def test_what_replaced_the_shell_is_named(home: Path, program: str, name: str, timeout_ms: int) -> None:
    env = startup(home, "bash", f"exec {program}")
    async with blockpty.Engine(home) as engine:
        with pytest.raises(blockpty.NoPrompt, match=f"replaced by (da)?{name}, which takes no hooks") as refused:
            await engine.open("c1", shell="bash", env=env, timeout_ms=timeout_ms)
        assert " ms" not in refused.value.message
        conversation = await engine.conversation("c1")
        assert (await conversation.status()).integrity == "degraded"
        assert (await conversation.verify()).clean


@pytest.mark.parametrize("shell", SHELLS)
@async_test
async def test_a_question_at_startup_can_be_answered(home: Path, shell: str) -> None:
    ask = "read -P 'Update now? [Y/n] ' answer" if shell == "fish" else "printf 'Update now? [Y/n] '; read answer"
    env = startup(home, shell, f'{ask}; echo "you said $answer"')
    async with blockpty.Engine(home) as engine:
        with pytest.raises(blockpty.NoPrompt) as refused:
            await engine.open("c1", shell=shell, env=env, timeout_ms=2000)
        assert "Update now? [Y/n]" in refused.value.details["printed"]
        if shell != "fish":  # its read is a line editor of its own: the terminal is in raw mode
            assert refused.value.details["waits_for_answer"] is True
            assert "waits for an answer to 'Update now? [Y/n]'" in refused.value.message
            assert "send the answer" in refused.value.hint
        conversation = await engine.conversation("c1")
        status = await conversation.status()
        assert (status.mode, status.integrity) == ("starting", "degraded")
        assert status.integrity_reason is not None and status.integrity_reason.startswith("no_prompt")
        if shell != "fish":
            assert status.tty == "reads_line"
        await conversation.send("yes")
        await conversation.send_keys("[BS]")
        await conversation.paste("s")
        await conversation.enter()
        assert (await conversation.wait_for({"token": "PROMPT"}, from_cursor=0)).matched
        assert (await conversation.status()).integrity == "ok"
        assert "you said yes" in (await conversation.read(0)).data
        assert (await conversation.run("echo $answer")).exit_status == 0
        assert (await conversation.verify()).clean


@async_test
async def test_a_password_at_startup_can_be_typed_and_is_not_recorded(home: Path) -> None:
    env = startup(home, "bash", "read -s -p 'Passphrase: ' phrase; echo; echo ${#phrase}")
    async with blockpty.Engine(home) as engine:
        with pytest.raises(blockpty.NoPrompt):
            await engine.open("c1", shell="bash", env=env, timeout_ms=1000)
        conversation = await engine.conversation("c1")
        assert (await conversation.status()).tty == "password"
        await conversation.send("hunter2\r")
        assert (await conversation.wait_for({"token": "PROMPT"}, from_cursor=0)).matched
        files = [path.read_bytes() for path in conversation.directory.rglob("*") if path.is_file()]
        assert not any(b"hunter2" in content for content in files)


def shells_of(home: Path) -> list[int]:
    """Return the processes whose command line names this home."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and (image := spawn.program_image(int(name))) is not None and f"{home}/conv" in image:
            found.append(int(name))
    return found


def children() -> list[str]:
    """Return the children of this process."""
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
