"""Progress of a call: what it does now, and how many bytes of how many it has done.

Rules of this file: an operation says how far it is and never asks who looks; who looks reads it whenever it likes, from
any thread. The operation finds it in the context of its caller, so that no method has a parameter for it. Nothing here
knows a clock: a rate is the business of who shows it.
"""

from __future__ import annotations

from contextvars import ContextVar, Token
from types import TracebackType
from typing import Any, Self


class Progress:
    """Progress of the operation that is called inside of `with Progress() as progress:`.

    Search, the index that `overview` waits for, export, import, verification, `repair`, `put_file` and `get_file`
    report; all others leave it as it is. Read its attributes from another task or thread. One that is entered is for
    one call at a time.

    Attributes:
        what: what is done now, such as "verify"; "" before it began.
        done: bytes that are done; it never becomes less, and is never more than `total`.
        total: bytes there are to do; None where that is not known.
    """

    __slots__ = ("_begun", "_token", "done", "total", "what")

    def __init__(self) -> None:
        self.what = ""
        self.done = 0
        self.total: int | None = None
        # Of what had been done before the present part of the work.
        self._begun = 0
        self._token: Token[Progress | None] | None = None

    def __enter__(self) -> Self:
        self._token = _OF_CALLER.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._token is not None
        _OF_CALLER.reset(self._token)

    @classmethod
    def of_caller(cls) -> Progress:
        """Return the one that the caller of this operation looks at, and an unwatched one where there is none."""
        return _OF_CALLER.get() or cls()

    @classmethod
    def wanted(cls) -> Progress | None:
        """Return the one that the caller of this operation looks at, if there is one."""
        return _OF_CALLER.get()

    def begin(self, what: str, total: int | None) -> None:
        """Say that a part of the work begins, which has so many bytes."""
        self.what = what
        self._begun = self.done
        self.total = None if total is None else self.done + total

    def reach(self, done: int) -> None:
        """Say how many bytes of this part are done."""
        self.done = max(self.done, self._within(self._begun + done))

    def add(self, count: int) -> None:
        """Say that so many bytes more are done; what is done twice, since it changed meanwhile, counts once."""
        self.done = max(self.done, self._within(self.done + count))

    def _within(self, done: int) -> int:
        return done if self.total is None else min(done, self.total)

    def take(self, said: dict[str, Any]) -> None:
        """Take what a server says of the operation that it runs for us."""
        what, done, total = said.get("what"), said.get("done"), said.get("total")
        if isinstance(what, str) and isinstance(done, int) and isinstance(total, int | None):
            self.what, self.done, self.total = what, max(self.done, done), total

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {"what": self.what, "done": self.done, "total": self.total}


_OF_CALLER: ContextVar[Progress | None] = ContextVar("blockpty_progress", default=None)
