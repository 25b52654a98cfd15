"""Files that another process writes: changes are noticed when they happen, for all readers by one watch."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from pathlib import Path

import pytest

from blockpty import Engine
from blockpty.runtime import event_feed
from blockpty.runtime.file_changes import FileChanges, changes_of
from tests.support.async_tests import async_test

APPEND = "import sys; open(sys.argv[1], 'a').write('x')"


def append(path: Path) -> None:
    """As another process does."""
    subprocess.run([sys.executable, "-c", APPEND, str(path)], check=True, timeout=60)


@async_test
async def test_a_change_by_another_process_is_noticed(tmp_path: Path) -> None:
    changes = changes_of(asyncio.get_running_loop())
    assert changes_of(asyncio.get_running_loop()) is changes
    with changes.follow(tmp_path) as followed:
        for _ in range(3):
            changed = followed.watch()
            await asyncio.to_thread(append, tmp_path / "events")
            await changed


@async_test
async def test_readers_come_and_go(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    changes = FileChanges(asyncio.get_running_loop())
    with changes.follow(first) as one:
        with changes.follow(second) as other, changes.follow(second) as third:
            both = [other.watch(), third.watch()]
            await asyncio.to_thread(append, second / "events")
            await asyncio.gather(*both)
        changed = one.watch()
        await asyncio.to_thread(append, first / "events")
        await changed
    with changes.follow(second) as again:
        changed = again.watch()
        await asyncio.to_thread(append, second / "events")
        await changed


@async_test
async def test_what_cannot_be_watched_does_no_harm(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    changes = FileChanges(asyncio.get_running_loop())
    with changes.follow(tmp_path / "nowhere") as missing:
        assert not missing.watch().cancelled()
    with changes.follow(there) as followed:
        changed = followed.watch()
        await asyncio.to_thread(append, there / "events")
        await changed


@pytest.mark.needs("bash")
@async_test
async def test_events_that_another_engine_writes_come_without_a_timer(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_feed, "_RECHECK_SECONDS", 3600.0)
    async with Engine(home) as owner, Engine(home) as reader:
        conversation = await owner.open("c1", shell="bash")
        seen: list[str] = []
        begun = asyncio.Event()

        async def follow() -> None:
            events = (await reader.conversation("c1")).events()
            async with contextlib.aclosing(events):  # type: ignore[type-var]
                async for event in events:
                    begun.set()
                    seen.append(event.type)
                    if event.type == "agent_block_end":
                        return

        following = asyncio.ensure_future(follow())
        await begun.wait()
        await conversation.run("echo hi")
        await following
        assert "agent_block_begin" in seen
        await conversation.close()
