"""`open` awaited, entered and made a task of; and what leaving the context does."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from blockpty import Conversation, Engine
from blockpty.errors import BadRequest
from tests.support.async_tests import async_test

pytestmark = pytest.mark.needs("bash")


async def live(engine: Engine) -> dict[str, bool]:
    return {one.conversation_id: one.live for one in (await engine.list()).conversations}


@async_test
async def test_it_can_be_awaited_and_entered(home: Path) -> None:
    async with Engine(home) as engine:
        one = await engine.open("one")
        async with engine.open("two") as two, await engine.open("three") as three:
            assert all(type(each) is Conversation for each in (one, two, three))
            assert (await two.run("echo hi")).output == "hi\n"
            assert await live(engine) == {"one": True, "two": True, "three": True}
        assert await live(engine) == {"one": True, "two": False, "three": False}
        async with one as entered:
            assert entered is one
        assert not (await live(engine))["one"]


@async_test
async def test_tasks_can_be_made_of_it(home: Path) -> None:
    async with Engine(home) as engine:
        task = asyncio.create_task(engine.open("task"))
        together = await asyncio.gather(engine.open("a"), engine.open("b"))
        assert [one.id for one in (await task, *together)] == ["task", "a", "b"]
        task = asyncio.create_task(engine.open("cancelled"))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert "cancelled" not in await live(engine)


@async_test
async def test_an_error_inside_comes_out_and_the_shell_is_closed(home: Path) -> None:
    async with Engine(home) as engine:
        with pytest.raises(ZeroDivisionError):
            async with engine.open("one"):
                raise ZeroDivisionError
        with pytest.raises(BadRequest, match="cols must be 1 to 1000"):
            async with engine.open("two", cols=0):
                pass
        assert await live(engine) == {"one": False}


@async_test
async def test_one_that_is_closed_or_deleted_inside_is_left_as_it_is(home: Path) -> None:
    async with Engine(home) as engine:
        async with engine.open("closed") as conversation:
            await conversation.close()
        async with engine.open("deleted") as conversation:
            await conversation.close()
            await conversation.delete()
        assert await live(engine) == {"closed": False}


@async_test
async def test_one_that_is_never_awaited_starts_nothing(home: Path) -> None:
    async with Engine(home) as engine:
        engine.open("never").close()
        assert await live(engine) == {}
