"""Python conveniences of a conversation: a context that closes it, an iterator of its lines, and `expect`.

Conversations of an engine and of a server share this. It needs nothing but the operations.
"""

from __future__ import annotations

import base64
import functools
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import aclosing
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Self, TypeVar, cast

from blockpty.errors import BlockptyError, NotFound
from blockpty.model.block import Block
from blockpty.model.conditions import match_to_wire
from blockpty.model.results import WaitResult
from blockpty.model.shown import shortened
from blockpty.model.unmet import unmet

if TYPE_CHECKING:
    from blockpty.api.any_conversation import AnyConversation

# Bytes that are read at a time; a line that is longer than this comes in parts.
LINE_BYTES: Final = 256 * 1024
_LINE_END: Final = re.compile(rb"\r|\n")

S = TypeVar("S")
P = ParamSpec("P")
Waiting = Callable[Concatenate[S, P], Coroutine[Any, Any, WaitResult]]


class ConversationContext:
    """Base of the conversations: leaving the context closes the conversation, whose transcript stays.

    One whose shell has ended, or that was deleted, is left as it is.
    """

    # Attributes for users beside those of AnyConversation; all others are the engine's.
    _offered: tuple[str, ...] = ("conversation_id", "output_path", "replay")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await cast("AnyConversation", self).close()
        except NotFound:
            pass
        except BlockptyError:
            # What went wrong first is what the caller has to know.
            if problem is None:
                raise

    def __dir__(self) -> list[str]:
        """Offer the operations and what belongs to them."""
        from blockpty.api.any_conversation import AnyConversation

        offered = {*vars(AnyConversation), *self._offered}
        return [name for name in super().__dir__() if name.startswith("__") or name in offered]

    async def lines(self, block_id: str | None = None) -> AsyncIterator[str]:
        """Yield the lines of a block's output as text as they come, without their ends, until the block has ended.

        `block_id`: by default the block that runs, else the newest one. A line ends at a line feed or a carriage
        return, so that each update of a progress bar is one; a line over 256 KiB comes in parts. Leaving the loop
        leaves the program alone. Raises NotFound.
        """
        conversation = cast("AnyConversation", self)
        if block_id is None:
            newest = (await conversation.blocks(order="newest", running=True, page_size=1)).blocks
            if not newest:
                raise NotFound(f"{conversation.id} has no block yet", hint="start a command with exec_block")
            block_id = newest[0].block_id
        # Taken before the first look: what comes between the two is an event then.
        next_seq = (await conversation.status()).next_seq
        reader = _BlockLineReader(conversation, block_id)
        async with aclosing(cast("AsyncGenerator[object, None]", conversation.events(next_seq))) as events:
            while True:
                async for line in reader.lines():
                    yield line
                if reader.ended or await anext(events, None) is None:
                    return


class _BlockLineReader:
    """Reads the complete lines that a block has printed so far."""

    def __init__(self, conversation: AnyConversation, block_id: str) -> None:
        from blockpty.engine.views import View

        self._conversation = conversation
        self._block_id = block_id
        self._view = View("text", 0)
        self._cursor: int | None = None
        self._begun = b""
        self.ended = False

    async def lines(self) -> AsyncIterator[str]:
        """Yield the lines that have come since; the last one without an end only when the block has ended."""
        while not self.ended:
            piece = await self._conversation.read(
                self._cursor, block_id=self._block_id, view="raw", max_bytes=LINE_BYTES
            )
            raw = base64.b64decode(piece.data_b64 or "")
            full = len(raw) >= LINE_BYTES
            # What follows the last line end is read again with the rest: a secret is only known as a whole.
            whole = raw.rstrip(b"\r") if full else raw if piece.eof else raw[: _whole_lines(raw)]
            self._cursor = piece.cursor - len(raw) + len(whole)
            self.ended = piece.eof
            text = self._begun + self._view.feed(whole).text
            if piece.eof or whole.endswith(b"\r"):
                text += self._view.finish().text
            *lines, self._begun = _LINE_END.split(text)
            if piece.eof and self._begun:
                lines.append(self._begun)
            for line in lines:
                yield line.decode("utf-8", "replace")
            if not full:
                return


def _whole_lines(raw: bytes) -> int:
    """Return how far the whole lines of some output go; a CR at the end may be half of a line end."""
    return max(raw.rfind(b"\n"), raw.rfind(b"\r", 0, max(0, len(raw) - 1))) + 1


def output_path(directory: Path, block: Block) -> Path:
    """Return the file with a block's output, in the directory of its conversation; raises NotFound."""
    if block.out_path is None:
        raise NotFound(f"{block.block_id} has no file of output", hint="it runs still, or printed nothing: see read")
    return directory / block.out_path


def raising(wait_for: Waiting[S, P]) -> Waiting[S, P]:
    """Make `expect` of the method `wait_for`: the same wait, and an error where that answers without a match."""

    @functools.wraps(wait_for)
    async def expect(self: S, /, *args: P.args, **kwargs: P.kwargs) -> WaitResult:
        __tracebackhide__ = True  # in a report of pytest, the test's own line is what failed
        result: WaitResult = await cast("Any", self).wait_for(*args, **kwargs)
        if result.matched:
            return result
        match = match_to_wire(args[0] if args else kwargs.get("match"))
        try:
            screen = (await cast("AnyConversation", self).screen()).content
        except BlockptyError:
            screen = ""
        raise unmet(shortened(match), result, result.text, screen)

    expect.__name__ = "expect"
    expect.__qualname__ = f"{wait_for.__qualname__.rpartition('.')[0]}.expect"
    expect.__doc__ = """Wait as `wait_for` does, with the same parameters, and raise an error when nothing matched.

        Timeout, EndOfFile (what ran has ended), PasswordPrompt, else NotMatched; each shows the last lines and the
        screen, and has the `result`. Raises as `wait_for` does as well.
        """
    return expect
