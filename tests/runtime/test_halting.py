"""Halting of agents: it ends what waits, and holds for the next engine and the next shell."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import blockpty
from blockpty.control.principals import Principal, Scope, acting
from blockpty.errors import (
    Forbidden,
    Halted,
    NotFound,
)
from blockpty.runtime.sessions import wait_for_begin
from tests.support.async_tests import async_test
from tests.support.policies import ASKS, asked, write_policy

BOT = Principal("bot", Scope.ADMIN)


ANN = Principal("ann", Scope.WRITE, types_as="user")


@pytest.mark.needs("bash")
@async_test
async def test_a_halt_survives_its_engine(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        one = await engine.open("one", shell="bash", persist=True)
        await engine.open("two", shell="bash", persist=True)
        with acting(BOT):
            running = asyncio.ensure_future(one.run("sleep 1000"))
            await wait_for_begin(one.live, 10)
            halted = await engine.halt("one")
            assert halted.conversations == [{"conversation_id": "one", "how": "SIGINT"}]
            assert (await running).block.exit_status == 130
            with pytest.raises(Halted, match="bot"):
                await one.run("true")
            assert (await (await engine.conversation("two")).run("echo on")).output == "on\n"
            with pytest.raises(Forbidden):
                await engine.release("one")
            with pytest.raises(NotFound):
                await engine.halt("nothing")
        with acting(ANN):
            everywhere = await engine.halt()
            assert everywhere.everywhere and len(everywhere.conversations) == 2
    async with blockpty.Engine(home) as engine:
        one, two = await engine.conversation("one"), await engine.conversation("two")
        assert ((await one.status()).halted, (await two.status()).halted) == ("bot", "ann")
        with acting(BOT):
            for conversation in (one, two):
                with pytest.raises(Halted):
                    await conversation.run("true")
                with pytest.raises(Halted):
                    await conversation.ctrl_c()
        with acting(ANN):
            assert (await two.run("echo mine")).output == "mine\n"
            await engine.release()
        with acting(BOT):
            assert (await two.run("echo on")).output == "on\n"
            with pytest.raises(Halted):
                await one.run("true")
        with acting(ANN):
            await engine.release("one")
        with acting(BOT):
            assert (await one.run("echo on")).output == "on\n"
        await one.close()
        await two.close()


@pytest.mark.needs("bash")
@async_test
async def test_a_halt_of_a_conversation_that_has_ended_holds_for_its_next_shell(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.close()
        with acting(ANN):
            assert (await engine.halt("c1")).conversations == [{"conversation_id": "c1", "how": "nothing_runs"}]
            assert (await conversation.take_control()).who == "ann"
            await conversation.release_control()
            conversation = await engine.open("c1", shell="bash")
        with acting(BOT), pytest.raises(Halted):
            await conversation.run("true")
        with acting(ANN):
            await engine.release("c1")
        with acting(BOT):
            assert (await conversation.run("echo on")).output == "on\n"




@pytest.mark.needs("bash")
@async_test
async def test_a_halt_ends_what_waits(home: Path) -> None:
    write_policy(home, ASKS.format(seconds=60))
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        with acting(BOT):
            running = asyncio.ensure_future(conversation.run("true"))
        await asked(conversation)
        with acting(ANN):
            await engine.halt()
        with pytest.raises(Halted):
            await running
        assert (await engine.approvals()).approvals == []
