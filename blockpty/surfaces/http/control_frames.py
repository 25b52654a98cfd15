"""Control over one socket: taken, handed back, asked for, and kept from who asks. The frames are in `socket`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from typing import Any, Final, cast

from blockpty.errors import BadRequest, BlockptyError, Unauthorized, UserInControl
from blockpty.model.events import Event
from blockpty.runtime.event_feed import follow_events
from blockpty.surfaces.access import Caller
from blockpty.surfaces.http.frames import Frames
from blockpty.surfaces.http.presence import Ask, Presence

CONTROL_FRAMES: Final = ("take_control", "release_control", "ask_control", "keep_control", "stop_asking")


class SocketControl:
    """Control over one open socket: who types."""

    def __init__(self, caller: Caller, conversation: Any, frames: Frames, presence: Presence) -> None:
        self._caller = caller
        self._conversation = conversation
        self._frames = frames
        self._presence = presence
        self._has_control = False
        # Waits for control, while this socket asks for it.
        self._asking: asyncio.Task[None] | None = None

    async def handle(self, kind: str, content: Mapping[str, Any]) -> None:
        """Do what a frame of CONTROL_FRAMES wants; `content`: its other fields."""
        if kind == "take_control":
            await self._take(content)
            await self._stop_asking()
        elif kind == "release_control":
            await self._call("release_control", content)
            self._hold(False)
        elif content:
            raise BadRequest(f"{kind} has no other fields", hint=f'{{"type": "{kind}"}}')
        elif kind == "ask_control":
            await self._ask()
        elif kind == "keep_control":
            self._keep()
        else:
            await self._stop_asking()
            await self._tell_asking("ended")

    async def close(self) -> None:
        """The socket is gone: it asks no more, and a lease begins where it was the last of who has control."""
        await self._stop_asking()
        self._hold(False)

    def _hold(self, holds: bool) -> None:
        """Count this connection among those of the person in control, or no more."""
        if holds != self._has_control:
            self._has_control = holds
            control, name = self._conversation.control, self._caller.principal.name
            (control.connect if holds else control.disconnect)(name)

    async def _call(self, name: str, params: Mapping[str, Any]) -> None:
        result = await self._caller.call(name, {**params, "conversation_id": self._conversation.id})
        found = {key: value for key, value in result.to_dict().items() if key != "ok"}
        await self._frames.tell({"type": "control", **found, "seq": self._conversation.live.state.next_event})

    async def _take(self, content: Mapping[str, Any]) -> None:
        name = self._caller.principal.name
        try:
            await self._call("take_control", {**content, "lease": True})
        finally:
            # Also where this was cut short: control for which no connection counts would not end by itself.
            state = self._conversation.control.state
            if (state.who, state.holder) == (content.get("who") or name, name):
                self._hold(True)

    async def _ask(self) -> None:
        """Take control; where another person has it, ask for it."""
        if self._asking is not None and not self._asking.done():
            return
        try:
            await self._take({})
        except UserInControl:
            self._asking = asyncio.ensure_future(self._wait())

    async def _wait(self) -> None:
        """Ask for control until it is given or kept."""
        conversation = self._conversation
        # A socket that takes nothing any more is closed by what sends the rest.
        with suppress(Unauthorized, TimeoutError, OSError):
            with self._presence.asking(conversation.id, self._caller.principal.name) as ask:
                await self._tell_asking("waits", conversation.control.state.who)
                taking = asyncio.ensure_future(self._take_when_free(ask))
                try:
                    await asyncio.wait((taking, ask.kept), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    taking.cancel()
                    [outcome] = await asyncio.gather(taking, return_exceptions=True)
            if isinstance(outcome, BlockptyError):
                await self._frames.tell_error(outcome)
            if ask.kept.done():
                await self._tell_asking("kept", ask.kept.result())
            elif outcome is not True:
                await self._tell_asking("ended")

    async def _take_when_free(self, ask: Ask) -> bool:
        """Take control as soon as it is handed back; return whether that has come."""
        await ask.is_first.wait()
        live = self._conversation.live
        changes = follow_events(live, live.state.next_event, True, with_data=False, types={"control"})
        async with aclosing(cast("AsyncGenerator[Event, None]", changes)):
            while True:
                self._frames.check()
                try:
                    await self._take({})
                except UserInControl:
                    if await anext(changes, None) is None:
                        return False
                else:
                    return True

    def _keep(self) -> None:
        """Refuse control to all who ask for it."""
        state, principal = self._conversation.control.state, self._caller.principal
        if state.who is None:
            raise BadRequest("no person has control of this conversation", hint="take_control takes it")
        if state.holder != principal.name or not principal.is_person:
            raise state.refusal()
        self._presence.keep(self._conversation.id, state.who)

    async def _stop_asking(self) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait((self._asking,))
            self._asking = None

    async def _tell_asking(self, state: str, who: str | None = None) -> None:
        await self._frames.tell({"type": "asking", "state": state, "who": who})
