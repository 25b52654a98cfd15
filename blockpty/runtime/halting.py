"""Halting of agents: in one conversation or in all, with the programs that they have started."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from blockpty.control.principals import ENGINE, acting, current
from blockpty.control.state import halted_by
from blockpty.engine.states import ShellState
from blockpty.errors import BlockptyError, Forbidden
from blockpty.model.results import HaltResult

if TYPE_CHECKING:
    from blockpty.runtime.gate import Gate
    from blockpty.runtime.home import Home


async def halt(home: Home, gate: Gate, conversation_id: str | None, up_to: str) -> HaltResult:
    """Halt agents first, then cut off what they type, then interrupt what runs."""
    principal = current()
    problem = halted_by(principal.name, everywhere=conversation_id is None)
    if conversation_id is None:
        gate.halt(principal)
    gate.book.withdraw(problem, conversation_id)
    names = [conversation_id] if conversation_id is not None else sorted(await home.live())

    async def stop(name: str) -> dict[str, Any]:
        try:
            conversation = await home.conversation(name)
            if conversation_id is not None:
                await conversation.control.halt(principal)
            else:
                await conversation.own(stopping=True)
                await conversation.control.cut(problem)
            if conversation.live.state.shell is ShellState.EXITED:
                return {"conversation_id": name, "how": "nothing_runs"}
            with acting(ENGINE):
                done = await conversation.interrupt(up_to=up_to)
            return {"conversation_id": name, "how": done.how}
        except BlockptyError as error:
            if conversation_id is not None:
                raise
            return {"conversation_id": name, "how": error.code}

    return HaltResult(conversation_id is None, await asyncio.gather(*(stop(name) for name in names)))


async def release(home: Home, gate: Gate, conversation_id: str | None) -> HaltResult:
    """Let agents type again."""
    principal = current()
    if not principal.is_person:
        raise Forbidden(
            f"only a person may release what was halted; {principal.name} types as an agent",
            hint="use a token that was made with --types-as user",
        )
    if conversation_id is not None:
        await (await home.conversation(conversation_id)).control.resume(principal)
        return HaltResult(False, [{"conversation_id": conversation_id, "how": "released"}])
    gate.release(principal)
    return HaltResult(True, [])
