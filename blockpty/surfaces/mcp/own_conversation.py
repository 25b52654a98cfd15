"""Own conversation of a session: the terminal that is meant where a call names none.

It is the one that the session opened last, by `pty_open`, `pty_launch`, or by its first call that types something.
A terminal that was opened in passing is closed with its session when nothing runs in it; one that was asked for is not.
"""

from __future__ import annotations

import contextlib
from typing import Final

from msgspec import Struct
from starlette.requests import Request

from blockpty.errors import BadRequest, BlockptyError
from blockpty.surfaces.access import Caller
from blockpty.surfaces.mcp.calling import Call, Context

_SESSION: Final = "mcp-session-id"


class _SessionConversation(Struct):
    conversation_id: str
    in_passing: bool


class OwnConversations:
    """Knows the own conversation of each session of one server."""

    def __init__(self) -> None:
        self._own: dict[str, _SessionConversation] = {}

    def opened(self, context: Context, conversation_id: str) -> None:
        """Note what `pty_open` or `pty_launch` has opened."""
        session = _session(context)
        if session is not None:
            self._own[session] = _SessionConversation(conversation_id, in_passing=False)

    async def given(self, call: Call, *, opens: bool) -> tuple[str, bool]:
        """Return the conversation that is meant by a call that names none, and whether it was opened for it.

        Args:
            call: the call; it waits for a person where opening needs one.
            opens: whether one is opened where there is none; other calls have no use for a new one.

        Raises:
            BadRequest: there is none; also where the client keeps no session, as over HTTP since 2026-07-28.
            BlockptyError: it cannot be opened.
            InputNeeded: a person has to answer first, and the call is made again.
        """
        session = _session(call.context)
        own = None if session is None else self._own.get(session)
        if own is not None:
            return own.conversation_id, False
        if session is None:
            raise BadRequest(
                "conversation_id is missing, and this client keeps no session by which to know it",
                hint="call pty_open, and give its conversation_id with each call",
            )
        if not opens:
            raise BadRequest(
                "conversation_id is missing, and this session has opened no terminal yet",
                hint="pty_run opens one; pty_list names those of others",
            )
        conversation_id = str((await call.run("open", {})).to_dict()["conversation_id"])
        # Another call of the session may have opened one in the meantime: both are kept, the later is the own one.
        self._own[session] = _SessionConversation(conversation_id, in_passing=True)
        return conversation_id, True

    async def ended(self, session: str, caller: Caller) -> None:
        """Close what a session opened in passing, unless something runs in it."""
        own = self._own.pop(session, None)
        if own is None or not own.in_passing:
            return
        place = {"conversation_id": own.conversation_id}
        # It may have been closed, or the server may be gone.
        with contextlib.suppress(BlockptyError):
            if (await caller.call("status", place)).to_dict()["mode"] == "idle":
                await caller.call("close", place)


def _session(context: Context) -> str | None:
    """Return what names the session of a request; "" on stdio, where there is one, and None where there is none."""
    request = context.request
    return request.headers.get(_SESSION) if isinstance(request, Request) else ""
