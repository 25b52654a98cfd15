"""One call to the server of a home, as a plain command makes it: without an event loop, and without a client.

A shell script makes hundreds of these, and what a call costs is what it imports: asyncio, the models of parameters and
the methods of a client take longer than the server takes to answer. So this file imports none of them, and a test
holds the list of what may not be loaded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from blockpty.api.progress import Progress
from blockpty.errors import BlockptyError
from blockpty.ops.manifest import Effect, ManifestEntry
from blockpty.surfaces import launching
from blockpty.surfaces.private_files import owner_token
from blockpty.surfaces.requesting import content_of, request_of, wire_params
from blockpty.surfaces.wire import PROGRESS_TYPE, Exchange, Unanswered, lost

if TYPE_CHECKING:
    from blockpty.model.results import Result


def begin(home: Path, operation: ManifestEntry, params: Mapping[str, Any]) -> PlainCall | None:
    """Ask the server of a home for an operation of shape CALL; return None when no server runs, and nothing was asked.

    Raises SpoolCorrupt for another user's server, NotFound when it ends while it is asked.
    """
    call = PlainCall(home, operation, params)
    return call if call.ask() else None


class PlainCall:
    """A call that was begun by `begin`."""

    def __init__(self, home: Path, operation: ManifestEntry, params: Mapping[str, Any]) -> None:
        self._home = home
        self._operation = operation
        method, target, content = request_of(operation, wire_params(operation.name, params, here=True))
        self._request = (method, target, None if content is None else json.dumps(content).encode())
        self._exchange: Exchange | None = None

    def ask(self) -> bool:
        """Send the request; return whether there is a server."""
        connection = launching.connect(self._home)
        if connection is None:
            return False
        method, target, content = self._request
        headers = {"Authorization": f"Bearer {owner_token(self._home)}"}
        if Progress.wanted() is not None:
            headers["Accept"] = PROGRESS_TYPE
        try:
            self._exchange = Exchange(connection, method, target, headers, content)
        except Unanswered as problem:
            raise self._lost(problem) from None
        return True

    def wait(self, seconds: float) -> bool:
        """Block until the answer is there, or for so long; return whether it is."""
        try:
            return self._asked.wait(seconds)
        except Unanswered as problem:
            raise self._lost(problem) from None

    def result(self) -> Result:
        """Block until the answer is there and return it; raises BlockptyError."""
        try:
            try:
                self._asked.wait()
                return self._result(self._asked.answer())
            except Unanswered:
                # The server left or died. What only looks can be asked for again.
                if self._operation.effect is not Effect.READ or not self.ask():
                    raise
                self._asked.wait()
                return self._result(self._asked.answer())
        except Unanswered as problem:
            raise self._lost(problem) from None

    async def rest(self) -> Result:
        """Return the answer once it is there; raises BlockptyError. Cancelling it lets the server drop the call."""
        try:
            progress = Progress.wanted()
            return self._result(await self._asked.rest(None if progress is None else progress.take))
        except Unanswered as problem:
            raise self._lost(problem) from None

    @property
    def _asked(self) -> Exchange:
        assert self._exchange is not None
        return self._exchange

    def _result(self, answer: tuple[int, bytes]) -> Result:
        content = content_of(*answer)
        assert self._operation.result is not None
        return self._operation.result.from_dict(content)

    def _lost(self, problem: Unanswered) -> BlockptyError:
        return lost(str(self._home), problem)
