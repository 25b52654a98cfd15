"""Presence: whose sockets are open on each conversation of this server, and who of them asks for control.

Rules of this file: nothing is kept of who has left. A follower that is slow gets what is so when it looks, not each
change on the way. What asking is good for is decided elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager

from msgspec import Struct


class Present(Struct, frozen=True):
    """Who is there.

    Attributes:
        names: of those who opened the sockets, one for each.
        asking: of those who ask for control, one for each socket that does, the first to ask first.
    """

    names: tuple[str, ...] = ()
    asking: tuple[str, ...] = ()


class Ask:
    """A socket that asks for control.

    Attributes:
        name: who asks.
        is_first: set once it is this one's turn; the sockets of one person have theirs together.
        kept: its result is who keeps control, once that was said.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_first = asyncio.Event()
        self.kept: asyncio.Future[str] = asyncio.get_running_loop().create_future()


class Presence:
    """The open sockets of all conversations, by the names of those who opened them."""

    def __init__(self) -> None:
        self._names: dict[str, list[str]] = {}
        self._asks: dict[str, list[Ask]] = {}
        self._followers: dict[str, set[asyncio.Event]] = {}

    @contextmanager
    def here(self, conversation_id: str, name: str) -> Iterator[None]:
        """Count a socket as long as this lasts."""
        names = self._names.setdefault(conversation_id, [])
        names.append(name)
        self._notify(conversation_id)
        try:
            yield
        finally:
            names.remove(name)
            if not names:
                self._names.pop(conversation_id, None)
            self._notify(conversation_id)

    @contextmanager
    def asking(self, conversation_id: str, name: str) -> Iterator[Ask]:
        """Have a socket ask for control as long as this lasts."""
        ask = Ask(name)
        asks = self._asks.setdefault(conversation_id, [])
        asks.append(ask)
        self._changed(conversation_id)
        try:
            yield ask
        finally:
            asks.remove(ask)
            self._changed(conversation_id)

    def _changed(self, conversation_id: str) -> None:
        asks = self._asks[conversation_id]
        for ask in asks:
            if ask.name == asks[0].name:
                ask.is_first.set()
        if not asks:
            del self._asks[conversation_id]
        self._notify(conversation_id)

    def keep(self, conversation_id: str, who: str) -> None:
        """Tell all who ask that this one keeps control."""
        for ask in self._asks.get(conversation_id, ()):
            if not ask.kept.done():
                ask.kept.set_result(who)

    async def follow(self, conversation_id: str) -> AsyncGenerator[Present, None]:
        """Yield who is there, and again whenever that changes. Cancelling is safe."""
        changed = asyncio.Event()
        followers = self._followers.setdefault(conversation_id, set())
        followers.add(changed)
        try:
            while True:
                changed.clear()
                asks = self._asks.get(conversation_id, ())
                yield Present(tuple(self._names.get(conversation_id, ())), tuple(ask.name for ask in asks))
                await changed.wait()
        finally:
            followers.discard(changed)
            if not followers:
                self._followers.pop(conversation_id, None)

    def _notify(self, conversation_id: str) -> None:
        for follower in self._followers.get(conversation_id, ()):
            follower.set()
