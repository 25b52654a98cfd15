"""Invocation of the command line: the options of every command, the engine, the end of the run.

Every command uses this file, those made from the table and those written by hand. It is loaded at every start, so it
imports what only a run needs when that run comes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Final, Protocol

import click
from click.shell_completion import CompletionItem
from msgspec import Struct

if TYPE_CHECKING:
    from pathlib import Path

    from blockpty.ops.manifest import ManifestEntry
    from blockpty.ops.operation import Operation
    from blockpty.surfaces.cli.render import ResultPrinter
    from blockpty.surfaces.plain_call import PlainCall

EXIT_BROKEN_PIPE: Final = 141  # 128 + SIGPIPE, as a shell reports it


class OpenEngine(Protocol):
    """Factory of the command line's engine; tests give another one."""

    def __call__(self, home: str | None) -> AbstractAsyncContextManager[Any]: ...


class Invocation(Struct):
    """Context of one run of the command line; the options that may stand anywhere land here.

    Attributes:
        given: opens the engine that is used in place of the home's server.
        progress: whether progress is shown; None: where stderr is a terminal.
    """

    given: OpenEngine | None = None
    home: str | None = None
    as_json: bool = False
    read_only: bool = False
    progress: bool | None = None

    def open_engine(self, home: str | None) -> AbstractAsyncContextManager[Any]:
        """Return what has the operations: the engine that was given, else a client of the home's server."""
        if self.given is not None:
            return self.given(home)
        from blockpty.surfaces.client import Client

        return Client(home)

    def begin(self, operation: ManifestEntry, params: Mapping[str, Any]) -> PlainCall | None:
        """Begin a call without a client; return None where that cannot be: with another engine, with no server yet."""
        from blockpty.ops.manifest import Shape

        if self.given is not None or operation.shape is not Shape.CALL:
            return None
        from blockpty.surfaces import plain_call

        return plain_call.begin(self.directory(), operation, params)

    def screen(self) -> ResultPrinter:
        """Return where results are shown."""
        from blockpty.surfaces.cli.render import ResultPrinter

        return ResultPrinter(sys.stdout, sys.stderr, as_json=self.as_json, progress=self.progress)

    def directory(self) -> Path:
        """Return the home, which need not exist."""
        from pathlib import Path

        from blockpty.spool.layout import default_home

        return Path(self.home).absolute() if self.home is not None else default_home()

    def check(self, operation: Operation | ManifestEntry) -> None:
        """Raise Forbidden for what --read-only refuses: input, and beginning or ending a shell."""
        from blockpty.errors import Forbidden
        from blockpty.ops.manifest import Effect

        if self.read_only and operation.effect is not Effect.READ:
            raise Forbidden(
                f"{operation.name.replace('_', '-')} does more than read, which --read-only refuses",
                hint="leave --read-only out to do it",
            )


def anywhere() -> list[click.Parameter]:
    """Return the options that every command has, and the program before them."""

    def remember(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
        def callback(ctx: click.Context, _parameter: click.Parameter, value: Any) -> None:
            # Given before the command and not after it, it holds.
            if value and isinstance(ctx.obj, Invocation):
                setattr(ctx.obj, name, value)

        return callback

    return [
        click.Option(
            ["--home"], type=click.STRING, metavar="DIRECTORY", expose_value=False, callback=remember("home"),
            help="Where transcripts and sockets live. [default: $BLOCKPTY_HOME]", shell_complete=_directories,
        ),
        click.Option(
            ["--json", "as_json"], is_flag=True, expose_value=False, callback=remember("as_json"),
            help="Print the result, or the error, as JSON on one line.",
        ),
        click.Option(
            ["--read-only"], is_flag=True, expose_value=False, callback=remember("read_only"),
            help="Refuse whatever does more than read.",
        ),
    ]  # fmt: skip


def _directories(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
    return [CompletionItem(incomplete, type="dir")]


def finished(run: Coroutine[Any, Any, int]) -> int:
    """Run a command to its end and return its exit status, also when who reads our output goes away."""
    import asyncio
    import gc

    gc.enable()
    return unless_unread(lambda: asyncio.run(run))


def unless_unread(run: Callable[[], int]) -> int:
    """Return what a function returns, and the status for a broken pipe when who reads our output goes away."""
    try:
        status = run()
        sys.stdout.flush()
    except BrokenPipeError:
        # Python would complain again when it flushes at the end.
        gone = os.open(os.devnull, os.O_WRONLY)
        os.dup2(gone, sys.stdout.fileno())
        os.close(gone)
        return EXIT_BROKEN_PIPE
    return status
