"""The Python API without asyncio: the classes of `blockpty`, whose methods return when they are done.

    import blockpty

    with blockpty.sync.Engine() as engine, engine.open() as conversation:
        print(conversation.run("make test", timeout=60).output)

Rules of this file: no operation and no rule of its own; a call runs the method of the asynchronous object, on an event
loop that has a thread of its own. Ctrl-C in the calling thread cancels the call and leaves the loop and the program in
the terminal alone. Objects may be used from several threads at once.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
import weakref
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from concurrent import futures
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from blockpty.errors import BadRequest
from blockpty.model.block import Block
from blockpty.model.results import OpenResult, RunResult
from blockpty.surfaces.operation_methods import (
    SyncClientOperations,
    SyncConversationOperations,
    SyncEngineOperations,
)

if TYPE_CHECKING:
    import os

    from blockpty.model.replay_frames import Moment
    from blockpty.runtime.stream_pieces import StreamPiece

__all__ = ["Client", "Conversation", "Engine", "run"]

T = TypeVar("T")
HOUR: Final = 3600.0


class LoopThread:
    """An event loop on a thread of its own, on which other threads run coroutines; it starts with the first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped: asyncio.Event | None = None
        self._over = False

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and return its result; what is raised in the calling thread meanwhile cancels it."""
        __tracebackhide__ = True  # as all frames between a test and what failed in it
        result: futures.Future[T] = futures.Future()
        tasks: list[asyncio.Task[T]] = []
        context = contextvars.copy_context()

        def begin() -> None:
            task = asyncio.get_running_loop().create_task(coroutine, context=context)
            tasks.append(task)
            task.add_done_callback(lambda task: _hand_over(task, result))

        try:
            loop = self._running()
            loop.call_soon_threadsafe(begin)
        except BaseException:
            coroutine.close()
            raise
        try:
            problem = result.exception()
        except BaseException:
            if not result.done():
                loop.call_soon_threadsafe(lambda: tasks[0].cancel())
                # Cancelled is what has cleaned up behind itself.
                futures.wait([result])
            raise
        if problem is None:
            return result.result()
        try:
            raise problem
        finally:
            # Its traceback has this frame, and would keep it.
            del problem

    async def bridged(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine for one that runs on another loop; cancelling this cancels it."""
        __tracebackhide__ = True
        try:
            loop = self._running()
        except BaseException:
            coroutine.close()
            raise
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(coroutine, loop))

    def iterate(self, make: Callable[[], AsyncIterator[T]]) -> Iterator[T]:
        """Yield what an asynchronous iterator yields, one at a time; it is closed when this is."""

        async def begin() -> AsyncIterator[T]:
            return make()

        made = self.call(begin())
        try:
            while (found := self.call(_following(made))) is not None:
                yield found
        finally:
            if not self._over and not self._is_own():
                self.call(_closing(made))

    def end(self, work: Coroutine[Any, Any, object]) -> None:
        """Run a last coroutine, if anything has run, and end the thread."""
        with self._lock:
            thread, began, self._over = self._thread, not self._over, True
        if not began or thread is None or not thread.is_alive():
            work.close()
            return
        assert self._loop is not None
        done: futures.Future[object] = futures.Future()

        async def last() -> None:
            assert self._stopped is not None
            asyncio.get_running_loop().set_default_executor(_AtOnce())
            task = asyncio.ensure_future(work)
            await asyncio.wait((task,))
            _hand_over(task, done)
            self._stopped.set()

        self._loop.call_soon_threadsafe(self._loop.create_task, last())
        if not self._is_own():
            try:
                done.result()
            finally:
                thread.join()

    def _is_own(self) -> bool:
        return self._thread is not None and threading.get_ident() == self._thread.ident

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._over:
                raise BadRequest("this engine or client is closed", hint="make another one")
            if self._is_own():
                raise BadRequest(
                    "this call would wait for the event loop that it is made on",
                    hint="use the asynchronous classes of blockpty there",
                )
            if self._thread is None:
                begun: futures.Future[None] = futures.Future()
                # A program that ends without `close` does not wait for it: `_Owner` ends it.
                self._thread = threading.Thread(target=self._run, args=(begun,), name="blockpty", daemon=True)
                self._thread.start()
                begun.result()
            assert self._loop is not None
            return self._loop

    def _run(self, begun: futures.Future[None]) -> None:
        async def main() -> None:
            self._loop, self._stopped = asyncio.get_running_loop(), asyncio.Event()
            begun.set_result(None)
            await self._stopped.wait()

        asyncio.run(main())


class _AtOnce(futures.ThreadPoolExecutor):
    """Runs work in the thread that submits it: at a program's end other executors take none any more."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> futures.Future[Any]:
        done: futures.Future[Any] = futures.Future()
        try:
            done.set_result(fn(*args, **kwargs))
        except Exception as problem:  # noqa: BLE001  # its owner gets it
            done.set_exception(problem)
        return done


def _hand_over(task: asyncio.Task[T], result: futures.Future[T]) -> None:
    if task.cancelled():
        result.set_exception(futures.CancelledError())
    elif (problem := task.exception()) is not None:
        result.set_exception(problem)
    else:
        result.set_result(task.result())


async def _following(iterator: AsyncIterator[T]) -> T | None:
    return await anext(iterator, None)


async def _closing(iterator: Any) -> None:
    if hasattr(iterator, "aclose"):
        await iterator.aclose()


class _Owner:
    """An engine or a client, and the thread of its loop, which ends with it."""

    def __init__(self, held: Any) -> None:
        self._held = held
        self._thread = LoopThread()
        # One that is dropped, or left open at the program's end, closes its shells as one that is closed does.
        self._end = weakref.finalize(self, _end, self._thread, held)

    @property
    def home(self) -> Path:
        """Where transcripts and sockets live."""
        home: Path = self._held.home
        return home

    def __enter__(self) -> Self:
        self._thread.call(self._held.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close what was opened without `persist`, and end the thread; nothing can be called afterwards."""
        self._end()

    def conversation(self, conversation_id: str) -> SyncConversation:
        """Return a conversation that exists, with its shell running or not; raises NotFound."""
        return SyncConversation(self._thread.call(self._held.conversation(conversation_id)), self, self._thread)

    def _call(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        __tracebackhide__ = True

        async def call() -> Any:
            __tracebackhide__ = True
            return await getattr(self._held, name)(*args, **kwargs)

        result = self._thread.call(call())
        return SyncConversation(result, self, self._thread) if name == "open" else result


def _end(thread: LoopThread, held: Any) -> None:
    thread.end(held.close())


class SyncEngine(SyncEngineOperations, _Owner):
    """Conversations of one home, as `blockpty.Engine`, with methods that return when they are done.

    A context manager; leaving it closes the conversations that were opened without `persist`. Its parameters are those
    of `blockpty.Engine`. Ctrl-C (KeyboardInterrupt) cancels the call that is under way; the engine goes on.
    """

    if not TYPE_CHECKING:

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            from blockpty.ops.engine import Engine

            _Owner.__init__(self, Engine(*args, **kwargs))


class SyncClient(SyncClientOperations, _Owner):
    """Conversations of a server, as `blockpty.Client`, with methods that return when they are done."""

    if not TYPE_CHECKING:

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            from blockpty.surfaces.client import Client

            _Owner.__init__(self, Client(*args, **kwargs))


class SyncConversation(SyncConversationOperations):
    """One conversation, as `blockpty.Conversation`, with methods that return when they are done.

    A context manager that closes it. `events`, `lines`, `follow` and `replay` are plain iterators.

    Attributes:
        id, conversation_id: its name.
    """

    def __init__(self, held: Any, owner: object, thread: LoopThread) -> None:
        self.id: str = held.id
        self.conversation_id: str = held.id
        self._held = held
        # The engine is not closed while one of its conversations is in use.
        self._owner = owner
        self._thread = thread

    def __repr__(self) -> str:
        return repr(self._held)

    @property
    def opened(self) -> OpenResult | None:
        """The result of `open`; None for one that existed."""
        opened: OpenResult | None = self._held.opened
        return opened

    @property
    def directory(self) -> Path:
        """Where its files are; a server's conversation has none here."""
        directory: Path = self._held.directory
        return directory

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.call(self._held.__aexit__(kind, problem, trace))

    def lines(self, block_id: str | None = None) -> Iterator[str]:
        """Yield the lines of a block's output as they come; as `lines` of the asynchronous conversation."""
        return self._thread.iterate(lambda: self._held.lines(block_id))

    def follow(self, from_cursor: int | None = None, *, limit_bytes: int | None = None) -> Iterator[StreamPiece]:
        """Yield the terminal's bytes from a cursor (default: now) and then as they come, until EOF."""
        return self._thread.iterate(lambda: self._held.follow(from_cursor, limit_bytes=limit_bytes))

    def replay(
        self,
        *,
        speed: float = 1.0,
        idle_limit: float | None = None,
        from_seconds: float = 0.0,
        to_seconds: float | None = None,
        from_cursor: int | None = None,
        to_cursor: int | None = None,
        block_id: str | None = None,
    ) -> Iterator[Moment]:
        """Yield the moments of the conversation, a block or a span, at their recorded times."""
        params: dict[str, Any] = {
            "speed": speed, "idle_limit": idle_limit, "from_seconds": from_seconds, "to_seconds": to_seconds,
            "from_cursor": from_cursor, "to_cursor": to_cursor, "block_id": block_id,
        }  # fmt: skip
        return self._thread.iterate(lambda: self._held.replay(**params))

    def output_path(self, block: Block) -> Path:
        """Return the file with the output of a block that has ended; raises NotFound, BadRequest."""
        path: Path = self._held.output_path(block)
        return path

    def _call(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        __tracebackhide__ = True

        async def call() -> Any:
            __tracebackhide__ = True
            return await getattr(self._held, name)(*args, **kwargs)

        return self._thread.call(call())

    def _stream(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[Any]:
        return self._thread.iterate(lambda: getattr(self._held, name)(*args, **kwargs))


Engine = SyncEngine
Client = SyncClient
Conversation = SyncConversation


def run(
    command: str,
    *,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    shell: str | None = None,
    timeout: float = HOUR,
    max_bytes: int = 65536,
    check: bool = False,
    home: str | os.PathLike[str] | None = None,
) -> RunResult:
    """Run one command in a shell of its own, and return its output and exit status; the shell is closed afterwards.

    The result has `output`, `exit_status` and `ok`. `timeout`: seconds, at most an hour; the command is ended then, and
    the result says `timed_out`. One that asks for input is ended as well, with reason `input`. `check`: raise
    CommandFailed, with the output, for another exit status than 0, and Timeout. Ctrl-C ends the command. The recording
    stays in the home, as that of any conversation. Raises as `Engine.open` and `Conversation.run` do.
    """
    where = None if cwd is None else str(cwd)
    with SyncEngine(home) as engine, engine.open(cwd=where, env=env, shell=shell) as conversation:
        return conversation.run(command, timeout=timeout, max_bytes=max_bytes, check=check)
