"""`open` that can be awaited and entered: `await engine.open()` and `async with engine.open() as conversation`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Generator
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar


class Leavable(Protocol):
    """The part of a conversation that is needed here."""

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...


C = TypeVar("C", bound=Leavable)
S = TypeVar("S")
P = ParamSpec("P")


class OpenCall(Coroutine[Any, Any, C], Generic[C]):
    """A conversation that is being opened: awaited it is the conversation; as a context it is closed at the end.

    It is a coroutine, so a task can be made of it.
    """

    def __init__(self, opened: Coroutine[Any, Any, C]) -> None:
        self._opened = opened

    def send(self, value: Any) -> Any:
        return self._opened.send(value)

    def throw(self, *problem: Any) -> Any:
        return self._opened.throw(*problem)

    def close(self) -> None:
        self._opened.close()

    def __await__(self) -> Generator[Any, Any, C]:
        return self._opened.__await__()

    async def __aenter__(self) -> C:
        self._conversation = await self._opened
        return self._conversation

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._conversation.__aexit__(kind, problem, trace)


def opening(method: Callable[Concatenate[S, P], Coroutine[Any, Any, C]]) -> Callable[Concatenate[S, P], OpenCall[C]]:
    """Make of a coroutine method that opens a conversation one that can be entered as well."""

    @functools.wraps(method)
    def wrapped(self: S, /, *args: P.args, **kwargs: P.kwargs) -> OpenCall[C]:
        return OpenCall(method(self, *args, **kwargs))

    return wrapped
