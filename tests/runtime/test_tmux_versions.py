"""Panes of every version of tmux that `tools/shells` has fetched: the seam, keys, sizes, hooks, and the end."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import blockpty
from tests.support.async_tests import async_test
from tests.support.tmux_server import TmuxServer, tmux_server
from tests.support.versions import FETCHED_TMUX, OLDEST_TMUX, numbers

TIMEOUT_MS = 30_000


def versions(*, old: bool) -> Iterator[object]:
    found = False
    for _, version, path in FETCHED_TMUX:
        if (numbers(version) < OLDEST_TMUX) == old:
            found = True
            yield pytest.param(path, id=f"tmux-{version}")
    if not found:
        yield pytest.param(None, id="none", marks=pytest.mark.skip("no such versions here: run tools/shells"))


def environment(tmux: TmuxServer, program: Path, directory: Path) -> dict[str, str]:
    """Return that of a conversation whose `tmux` is this program."""
    place = directory / "bin"
    place.mkdir()
    (place / "tmux").symlink_to(program)
    return {**tmux.environment, "PATH": f"{place}:/usr/bin:/bin"}


@pytest.mark.parametrize("program", [*versions(old=False)])
@async_test(timeout_seconds=100)
async def test_a_pane_is_followed(program: Path, home: Path, tmp_path: Path) -> None:
    with tmux_server(str(program)) as tmux:
        env = environment(tmux, program, tmp_path)
        tmux("new-session", "-d", "-s", "work", "-x", "80", "-y", "24", "bash --norc")
        tmux("send-keys", "-t", "work", "seq 1 30000; echo e-n-d", "Enter")
        async with blockpty.Engine(home) as engine:
            conversation = await engine.open("c1", source="tmux:work", env=env)
            over = await conversation.wait_for({"regex": "^e-n-d$"}, from_cursor=0, timeout_ms=TIMEOUT_MS)
            assert over.matched
            await conversation.wait_for({"idle_ms": 300}, timeout_ms=TIMEOUT_MS)
            text = (await conversation.read(0, view="text", max_bytes=4 << 20)).data
            lines = [line.rstrip() for line in text.rstrip().split("\n")]
            assert lines == tmux.lines("work")
            assert [line for line in lines if line.isdigit()] == [str(line) for line in range(1, 30_001)]
            await conversation.enter_shell("bash")
            done = await conversation.run("printf '%s\\n' ä€; (exit 4)", timeout_ms=TIMEOUT_MS)
            assert (done.block.exit_status, done.output, done.block.degraded) == (4, "ä€\n", None)
            await conversation.resize(101, 31)
            await conversation.wait_for({"idle_ms": 500}, timeout_ms=TIMEOUT_MS)
            assert tmux.size("work") == (101, 31)
            done = await conversation.run("stty size", timeout_ms=TIMEOUT_MS)
            assert (done.block.exit_status, done.output) == (0, "31 101\n")
            await conversation.exec_block("exit")
            await conversation.wait_for({"token": "EOF"}, timeout_ms=TIMEOUT_MS)
            assert (await conversation.status()).exit == {"status": None, "signal": None}
            assert (await conversation.verify()).clean


@pytest.mark.parametrize("program", [*versions(old=True)])
@async_test
async def test_one_that_is_too_old_is_refused(program: Path, home: Path, tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="bptm") as directory:
        tmux = TmuxServer(Path(directory), str(program))
        tmux("new-session", "-d", "-s", "kept", "cat")
        try:
            env = environment(tmux, program, tmp_path)
            async with blockpty.Engine(home) as engine:
                with pytest.raises(blockpty.SpawnFailed, match="is too old"):
                    await engine.open("c1", source="tmux:kept", env=env)
        finally:
            tmux.close()
