"""Presence: whose sockets are open on each conversation of this server.

Rules of this file: nothing is kept of who has left. A follower that is slow gets what is so when it looks, not each
change on the way.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager


class Presence:
    """The open sockets of all conversations, by the names of those who opened them."""

    def __init__(self) -> None:
        self._names: dict[str, list[str]] = {}
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

    async def follow(self, conversation_id: str) -> AsyncGenerator[tuple[str, ...], None]:
        """Yield the names of all open sockets, one for each, and again whenever they change. Cancelling is safe."""
        changed = asyncio.Event()
        followers = self._followers.setdefault(conversation_id, set())
        followers.add(changed)
        try:
            while True:
                changed.clear()
                yield tuple(self._names.get(conversation_id, ()))
                await changed.wait()
        finally:
            followers.discard(changed)
            if not followers:
                self._followers.pop(conversation_id, None)

    def _notify(self, conversation_id: str) -> None:
        for follower in self._followers.get(conversation_id, ()):
            follower.set()
