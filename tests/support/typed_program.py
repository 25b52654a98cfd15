"""What a type checker sees of the public API; checked by tests/test_typing.py and never run.

Each `type: ignore` is a mistake that has to be noticed: one that is not used is an error itself.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import assert_type

import blockpty
from blockpty import AnyConversation, Engine, sync


async def act(conversation: AnyConversation) -> str:
    assert_type(await conversation.expect("x", timeout=5), blockpty.WaitResult)
    assert_type(conversation.lines(), AsyncIterator[str])
    async with conversation as same:
        assert_type(same.id, str)
    return (await conversation.run("make", timeout=1.5, check=True)).output


async def asynchronous() -> None:
    async with Engine() as engine, engine.open("a") as one, await engine.open("b") as other:
        assert_type(one, blockpty.Conversation)
        assert_type(other, blockpty.Conversation)
        await act(one)
        conditions = [blockpty.PROMPT, blockpty.EOF, blockpty.Regex("a+"), blockpty.Idle(5)]
        await one.wait_for([*conditions, blockpty.INPUT, "text"], stop=conditions)
        await one.wait_for(conditions, stop=blockpty.Screen("^>"))
        await one.wait_for({"regex": "a"})
        await one.wait_for([{"token": "PROMPT"}, {"idle_ms": 500}, {"screen": "x"}, {"changed": "0-0-0"}])
        await one.wait_for({"regx": "a"})  # type: ignore[arg-type]
        await one.wait_for({"token": "PROMT"})  # type: ignore[arg-type]
        await one.wait_for({"idle_ms": "5"})  # type: ignore[arg-type]
        await one.expect(5)  # type: ignore[arg-type]
        await one.run("x", colour="red")  # type: ignore[call-arg]
        print(blockpty.PROMT)  # type: ignore[attr-defined]
    async with blockpty.Client() as client, client.open() as remote:
        assert_type(remote, blockpty.RemoteConversation)
        await act(remote)
        await remote.wait_for({"regx": "a"})  # type: ignore[arg-type]


def synchronous() -> None:
    with sync.Engine(session_limit=3) as engine, engine.open() as conversation:
        assert_type(conversation, sync.Conversation)
        assert_type(conversation.run("x", check=True), blockpty.RunResult)
        assert_type(conversation.expect(blockpty.PROMPT), blockpty.WaitResult)
        assert_type(conversation.lines(), Iterator[str])
        assert_type(conversation.events(), Iterator[blockpty.Event])
        assert_type(engine.conversation("a"), sync.Conversation)
        conversation.wait_for({"regx": "a"})  # type: ignore[arg-type]
    sync.Engine(url="x")  # type: ignore[call-arg]
    with sync.Client(url="https://host") as client:
        assert_type(client.list(), blockpty.ListResult)
    assert_type(blockpty.run("make", timeout=5, check=True), blockpty.RunResult)
    assert_type(blockpty.sync.run("make"), blockpty.RunResult)
