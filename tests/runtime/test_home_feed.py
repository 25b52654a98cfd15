"""Feed of a home: the whole list first, then each change of a conversation, and nothing for output alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import blockpty
from blockpty.control.principals import Principal, Scope, acting
from blockpty.errors import SpawnFailed
from blockpty.model.results import ConversationInfo
from blockpty.runtime.file_changes import FollowedDirectory
from blockpty.runtime.home_feed import HomeChange
from tests.support import homes
from tests.support.async_tests import async_test

BOT = Principal("bot", Scope.ADMIN)
ANN = Principal("ann", Scope.WRITE, types_as="user")


class Follower:
    """One client of the feed: the lines as it has them."""

    def __init__(self, changes: Any) -> None:
        self._changes = changes
        self.lines: dict[str, ConversationInfo] = {}
        self.approvals: dict[str, list[dict[str, Any]]] = {}
        self.decided: dict[str, list[dict[str, Any]]] = {}
        self.bells: list[int | None] = []
        self.seen: list[HomeChange] = []

    async def next(self) -> None:
        for change in await anext(self._changes):
            self.seen.append(change)
            if change.info is None:
                del self.lines[change.conversation_id]
            else:
                self.lines[change.conversation_id] = change.info
                self.approvals[change.conversation_id] = change.approvals
                self.decided[change.conversation_id] = change.decided
                self.bells.append(change.bell_ts)

    async def until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            await self.next()


@asynccontextmanager
async def following(engine: Any, allows: Callable[[str], bool] = lambda name: True) -> AsyncIterator[Follower]:
    async with aclosing(engine.home_feed.changes(allows)) as changes:
        follower = Follower(changes)
        await follower.next()
        yield follower


@pytest.mark.needs("bash")
@async_test(timeout_seconds=20)
async def test_a_command_is_seen_running_and_then_as_the_last_block(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        async with following(engine) as follower:
            assert follower.lines["c1"].running is None and follower.lines["c1"].last is None
            await conversation.exec_block("read line; exit_with() { return $1; }; exit_with 3")
            await follower.until(lambda: follower.lines["c1"].needs == ["line"])
            running = follower.lines["c1"].running
            assert running is not None and (running.block_id, running.state) == ("b1", "running")
            assert follower.lines["c1"].tty == "reads_line"
            await conversation.send("go\n")
            await follower.until(lambda: follower.lines["c1"].last is not None)
            last = follower.lines["c1"].last
            assert last is not None and (last.block_id, last.exit_status, last.state) == ("b1", 3, "ended")
            assert follower.lines["c1"].running is None and follower.lines["c1"].needs == []
            assert set(follower.bells) == {None}, "prompts have marks that end with the byte of the bell"
            await conversation.run(r"printf '\a'")
            await follower.until(lambda: follower.bells[-1] is not None)


@pytest.mark.needs("bash")
@async_test(timeout_seconds=20)
async def test_opening_ending_and_deleting_are_reported(home: Path) -> None:
    async with blockpty.Engine(home) as engine, following(engine) as follower:
        assert follower.lines == {}
        conversation = await engine.open("c1", shell="bash")
        await follower.until(lambda: "c1" in follower.lines and follower.lines["c1"].live)
        await conversation.close()
        await follower.until(lambda: not follower.lines["c1"].live)
        assert follower.lines["c1"].mode == "exited"
        await conversation.delete()
        await follower.until(lambda: "c1" not in follower.lines)


@pytest.mark.needs("bash")
@async_test(timeout_seconds=20)
async def test_output_alone_is_no_change(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        other = await engine.open("c2", shell="bash")
        # It neither reads nor pauses, unless the machine is too busy to let it run.
        await conversation.exec_block("while [ ! -e stop ]; do echo busy; done", cwd=str(home))
        await conversation.wait_for("busy\nbusy\n")
        async with following(engine) as follower:
            cursor = conversation.cursor
            await conversation.wait_for("busy\n" * 2000, from_cursor=cursor, timeout_ms=50_000)
            # What comes now was asked for after all of that.
            await other.run("true")
            await follower.until(lambda: follower.lines["c2"].last is not None)
            lines = [one.info for one in follower.seen if one.conversation_id == "c1" and one.info is not None]
            states = [replace(line, cursor=0, used_ts=0) for line in lines]
            assert states and all(one != other for one, other in pairwise(states))
            (home / "stop").touch()
            await follower.until(lambda: follower.lines["c1"].last is not None)


@pytest.mark.needs("bash")
@async_test(timeout_seconds=20)
async def test_an_approval_is_in_the_line_until_it_is_answered(home: Path) -> None:
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "policy.toml").write_text('[default]\nexec = "ask"\n')
    async with blockpty.Engine(home) as engine:
        with acting(ANN):
            conversation = await engine.open("c1", shell="bash")
        async with following(engine) as follower:
            with acting(BOT):
                asking = asyncio.ensure_future(conversation.run("true"))
            await follower.until(lambda: follower.lines["c1"].needs == ["approval"])
            (approval,) = follower.approvals["c1"]
            assert approval["text"] == "true" and follower.decided["c1"] == []
            with acting(ANN):
                await conversation.approve(approval["approval_id"], approval["digest"])
            assert (await asking).exit_status == 0
            await follower.until(lambda: follower.approvals["c1"] == [])
            approved = {
                "approval_id": approval["approval_id"], "verdict": "approved", "scope": "once", "reason": None,
                "principal": "ann",
            }  # fmt: skip
            assert follower.decided["c1"] == [approved], "it is said with the news that it waits no more"
            await follower.until(lambda: follower.lines["c1"].needs == [])
            # A call that has gone, and a refusal that came after it.
            with acting(BOT):
                asking = asyncio.ensure_future(conversation.run("false"))
            await follower.until(lambda: follower.approvals["c1"] != [])
            (approval,) = follower.approvals["c1"]
            asking.cancel()
            await follower.until(lambda: follower.approvals["c1"] == [])
            assert [one["verdict"] for one in follower.decided["c1"]] == ["approved", "withdrawn"]
            with acting(ANN):
                await conversation.deny(approval["approval_id"], approval["digest"], reason="too late")
            await follower.until(lambda: follower.decided["c1"][-1]["reason"] == "too late")


@pytest.mark.needs("bash")
@async_test(timeout_seconds=20)
async def test_control_and_a_halt_are_in_the_line(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        async with following(engine) as follower:
            with acting(ANN):
                await conversation.take_control()
            await follower.until(lambda: follower.lines["c1"].control == "user")
            assert follower.lines["c1"].control_by == "ann"
            with acting(ANN):
                await conversation.release_control()
                await engine.halt()
            await follower.until(lambda: follower.lines["c1"].halted == "ann")
            assert follower.lines["c1"].control == "agent"
            with acting(ANN):
                await engine.release()
            await follower.until(lambda: follower.lines["c1"].halted is None)


@pytest.mark.needs("bash")
@async_test(timeout_seconds=20)
async def test_what_another_engine_does_is_reported(home: Path) -> None:
    async with blockpty.Engine(home) as engine, following(engine) as follower:
        async with blockpty.Engine(home) as other:
            await other.open("c1", shell="bash")
            await follower.until(lambda: "c1" in follower.lines and follower.lines["c1"].live)
        await follower.until(lambda: not follower.lines["c1"].live)


@pytest.mark.needs("bash")
@async_test(timeout_seconds=20)
async def test_a_shell_that_another_engine_starts_long_after_its_directory_is_reported(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file system tells only of the directory."""
    async with blockpty.Engine(home) as engine, blockpty.Engine(home) as other, following(engine) as follower:
        host = await other.connected()
        start, may_start = host.open, asyncio.Event()

        async def open_late(*given: Any, **named: Any) -> Any:
            await may_start.wait()
            return await start(*given, **named)

        monkeypatch.setattr(host, "open", open_late)
        opening = asyncio.ensure_future(other.open("c1", shell="bash"))
        await follower.until(lambda: "c1" in follower.lines)
        assert not follower.lines["c1"].live
        # That was the report about the directory, and another one does not come.
        monkeypatch.setattr(FollowedDirectory, "changed", lambda directory: None)
        may_start.set()
        await follower.until(lambda: follower.lines["c1"].live)
        assert (await (await opening).run("true")).exit_status == 0
        await follower.until(lambda: follower.lines["c1"].last is not None)


@pytest.mark.needs("bash")
@async_test(timeout_seconds=20)
async def test_who_may_not_see_a_conversation_is_notified_of_others_only(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        hidden = await engine.open("c1", shell="bash")
        async with following(engine, lambda name: name == "c2") as follower:
            assert follower.lines == {}
            await hidden.run("true")
            await engine.open("c2", shell="bash")
            await follower.until(lambda: "c2" in follower.lines)
            assert {one.conversation_id for one in follower.seen} == {"c2"}


@pytest.mark.needs("bash")
@async_test(timeout_seconds=20)
async def test_one_who_comes_when_the_last_one_goes_gets_the_whole_list(home: Path) -> None:
    """The reading ends with its last follower, and begins with the next."""
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        for number in range(1, 21):
            async with following(engine) as follower:
                assert [*follower.lines] == ["c1"]
                await conversation.run("true")
                await follower.until(lambda number=number: follower.lines["c1"].blocks == number)


@async_test(timeout_seconds=20)
async def test_where_no_list_can_be_had_the_follower_is_given_the_reason(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with blockpty.Engine(home) as engine:

        async def fail() -> frozenset[str]:
            raise SpawnFailed("the host did not come up")

        with monkeypatch.context() as broken:
            broken.setattr(engine, "live", fail)
            with pytest.raises(SpawnFailed):
                async with following(engine):
                    pass
        async with following(engine) as follower:
            assert follower.lines == {}


@pytest.mark.damages_files
@async_test(timeout_seconds=20)
async def test_what_has_ended_is_listed_with_its_last_block(home: Path) -> None:
    await homes.fill(home, ["c1"], homes.recording(ended=True))
    async with blockpty.Engine(home) as engine, following(engine) as follower:
        last = follower.lines["c1"].last
        assert last is not None and last.block_id == f"b{follower.lines['c1'].blocks}"
        assert engine.attached("c1") is None
