"""Terminals of the pytest plugin: a shell in a home of its own, for tests with and without asyncio, and what they show.

Rules of this file: the shell reads no file of the developer, so that a test sees the same on every machine.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from blockpty.api.conversation_context import ConversationContext
from blockpty.errors import BlockptyError
from blockpty.model.block import Block
from blockpty.model.results import OpenResult, ReadResult, RunResult, ScreenResult
from blockpty.surfaces.operation_methods import ConversationOperations
from blockpty.sync import LoopThread, SyncConversation, SyncEngine

# What a report shows.
BLOCKS: Final = 5
LINES: Final = 12
_FILES: Final = {
    ".bashrc": "PS1='$ '\n",
    ".zshrc": "PROMPT='$ '\n",
    ".config/fish/config.fish": "function fish_prompt; echo -n '$ '; end\n",
}


class BridgedConversation(ConversationContext, ConversationOperations):
    """A conversation with the methods of `blockpty.Conversation`, for any event loop of asyncio.

    It runs on a loop of its own, as the blocking one does that it is made of; so it needs no plugin for async fixtures.

    Attributes:
        id, conversation_id: its name; directory: where its files are.
        opened: the result of `open`.
    """

    def __init__(self, held: Any, thread: LoopThread) -> None:
        self.id: str = held.id
        self.conversation_id: str = held.id
        self.directory: Path = held.directory
        self.opened: OpenResult | None = held.opened
        self._held = held
        self._thread = thread

    def __repr__(self) -> str:
        return repr(self._held)

    def output_path(self, block: Block) -> Path:
        """Return the file with the output of a block that has ended; raises NotFound."""
        path: Path = self._held.output_path(block)
        return path

    async def _call(self, name: str, params: Mapping[str, Any]) -> Any:
        __tracebackhide__ = True
        return await self._thread.bridged(getattr(self._held, name)(**params))

    async def _stream(self, name: str, params: Mapping[str, Any]) -> AsyncIterator[Any]:
        events = getattr(self._held, name)(**params)

        async def following() -> Any:
            return await anext(events, None)

        try:
            while (event := await self._thread.bridged(following())) is not None:
                yield event
        finally:
            await self._thread.bridged(events.aclose())


def bridged(conversation: SyncConversation) -> BridgedConversation:
    """Return the same conversation for a test that is a coroutine."""
    return BridgedConversation(conversation._held, conversation._thread)


@contextlib.contextmanager
def terminal(directory: Path, cwd: Path, parameters: Mapping[str, Any]) -> Iterator[SyncConversation]:
    """Give a shell whose records and whose $HOME are in a directory, and close it afterwards.

    `parameters`: those of `open`; by default bash in `cwd`, 80 by 24, with `$ ` as its prompt.
    """
    user = directory / "user"
    for name, content in _FILES.items():
        (user / name).parent.mkdir(parents=True, exist_ok=True)
        (user / name).write_text(content, "utf-8")
    given: dict[str, Any] = {"shell": "bash", "cwd": str(cwd), **parameters}
    given["env"] = {"HOME": str(user), "HISTFILE": "", **given.get("env", {})}
    with SyncEngine(directory / "home") as engine, engine.open("terminal", **given) as conversation:
        yield conversation


def report(conversation: SyncConversation, recording: Path) -> list[tuple[str, str]]:
    """Return the sections of a failed test's report: the screen, the last blocks, and where the recording is."""
    parts: dict[str, Callable[[], str]] = {
        "terminal screen": lambda: screen_text(conversation.screen()),
        "terminal blocks": lambda: _last_blocks(conversation),
        "terminal recording": lambda: _recorded(conversation, recording),
    }
    return [(title, _or_why(part)) for title, part in parts.items()]


def _or_why(part: Callable[[], str]) -> str:
    """Return a part of a report, or why there is none: the test's own failure is what has to be seen."""
    try:
        return part()
    except (BlockptyError, OSError) as problem:
        return f"not available: {problem}"


def screen_text(screen: ScreenResult) -> str:
    """Return what a screen shows, without blanks at the ends of its rows and blank rows at its end."""
    return "\n".join(row.rstrip() for row in screen.content.split("\n")).rstrip("\n")


def snapshot_text(shown: object) -> str:
    """Return what a snapshot holds of a screen, a run, a piece of output or a text; raises TypeError."""
    match shown:
        case ScreenResult():
            text = screen_text(shown)
        case RunResult():
            text = f"$ {shown.block.cmd}\n{shown.output.rstrip()}\n[exit status {shown.exit_status}]"
        case ReadResult():
            text = shown.data
        case str():
            text = shown
        case _:
            raise TypeError(f"a snapshot is of a screen, a run, what was read or a text, not of {type(shown).__name__}")
    return text.rstrip("\n") + "\n"


def _last_blocks(conversation: SyncConversation) -> str:
    found = conversation.blocks(order="newest", running=True, page_size=BLOCKS).blocks
    return "\n".join(_shown_block(conversation, block) for block in reversed(found)) or "none"


def _shown_block(conversation: SyncConversation, block: Block) -> str:
    begin, end = block.span
    size = 16384
    piece = conversation.read(
        max(begin, (end if end is not None else conversation.status().cursor) - size), block_id=block.block_id,
        view="rendered",
    )  # fmt: skip
    lines = piece.data.rstrip("\n").split("\n") if piece.data.strip() else []
    left_out = [f"    ... {len(lines) - LINES} lines before"] if len(lines) > LINES else []
    return "\n".join([f"$ {block.cmd}", *left_out, *(f"    {line}" for line in lines[-LINES:]), f"[{block.summary}]"])


def _recorded(conversation: SyncConversation, recording: Path) -> str:
    made = conversation.export("cast", max_bytes=1)
    assert made.path is not None  # it is longer than a byte
    Path(made.path).replace(recording)
    return f"{recording}\n(an asciicast: `blockpty import {recording}` makes a conversation of it)"
