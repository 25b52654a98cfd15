"""Files through a terminal: commands of the engine in the shell at its prompt, wherever that is.

Rules of this file: what is typed is never part of a command, and never recorded. Every answer carries a digest, and is
accepted only with the right one.
"""

from __future__ import annotations

import asyncio
import binascii
import errno
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from blockpty.api.progress import Progress
from blockpty.control.principals import ENGINE, acting, current
from blockpty.engine.states import ShellState
from blockpty.engine.views import transform
from blockpty.errors import BadRequest, BlockptyError, InternalError, NoPrompt
from blockpty.files.opening import UnsafeFile
from blockpty.host.file_commands import ANSWER, APPEND, FINISH, GET, PREPARE, file_command, typed_chunk
from blockpty.runtime.completion import is_under_way
from blockpty.runtime.running import own_block
from blockpty.runtime.sessions import ended
from blockpty.runtime.worker_threads import aside

if TYPE_CHECKING:
    from blockpty.model.block import Block
    from blockpty.runtime.channel import ConversationChannel
    from blockpty.runtime.submission import Submission, Submitted

# A cut costs no more than this, and a person who takes control waits no longer than for this. What is typed faster than
# the far side takes it, ssh sends as one packet: of more than 256 KiB that ends the connection ("Bad packet length").
CHUNK_BYTES: Final = 96 * 1024
_PIECE_BYTES: Final = 64 * 1024
_PIECE_DEADLINE_MS: Final = 60_000
# So long a command may say nothing new.
_ANSWER_SECONDS: Final = 60.0
_WRONG: Final[Mapping[str, Callable[[], OSError]]] = {
    "LINK": lambda: UnsafeFile(errno.EINVAL, "a link to a file that does not exist"),
    "EINVAL": lambda: UnsafeFile(errno.EINVAL, "not a regular file"),
}

Refusal = Callable[[OSError], BlockptyError]


class _CommandReply(NamedTuple):
    """Answer of a command: a word, what belongs to it, and what it printed before."""

    word: str
    rest: list[str]
    before: bytes


class TerminalFiles:
    """Reads and writes files where one conversation's shell is."""

    def __init__(
        self, channel: ConversationChannel, submission: Submission, find: Callable[[str], Block]
    ) -> None:  # fmt: skip
        self._channel = channel
        self._submission = submission
        self._find = find

    async def put(self, path: str, content: bytes, digest: str, mode: str | None, refusal: Refusal) -> None:
        """Write a file: on from where an earlier call with the same content was cut."""
        name = digest[:16]
        progress = Progress.of_caller()
        progress.begin("put_file", len(content))
        done = await self._prepared(path, name, content, refusal)
        while done < len(content):
            progress.reach(done)
            chunk = content[done : done + CHUNK_BYTES]
            answer = await self._answer(refusal, APPEND, path, name, typed=chunk)
            done += len(chunk)
            if answer.rest[:2] != [str(done), hashlib.sha256(chunk).hexdigest()]:
                raise _not_the_same(path)
        answer = await self._answer(refusal, FINISH, path, name, digest, mode or "")
        if answer.word != "DONE":
            raise _not_the_same(path)

    async def _prepared(self, path: str, name: str, content: bytes, refusal: Refusal) -> int:
        """Return how much of the content is in the part file; what is wrong in it is dropped."""
        for drop in ("", "yes"):
            answer = await self._answer(refusal, PREPARE, path, name, drop)
            size = int(answer.rest[0])
            if size <= len(content) and answer.rest[1:2] == [hashlib.sha256(content[:size]).hexdigest()]:
                return size
        raise _not_the_same(path)

    async def get(
        self, path: str, most: int, refusal: Refusal, too_long: Callable[[int | None], BlockptyError]
    ) -> bytes:
        """Read a file."""
        progress = Progress.of_caller()
        # How long it is, it says at its end.
        progress.begin("get_file", None)
        answer = await self._answer(refusal, GET, path, str(most), progress=progress)
        if answer.word == "EFBIG":
            raise too_long(int(answer.rest[0]))
        try:
            content = binascii.a2b_base64(answer.before)
        except binascii.Error:
            raise _not_the_same(path) from None
        if answer.rest[:1] != [hashlib.sha256(content).hexdigest()]:
            raise _not_the_same(path)
        return content

    async def _answer(
        self, refusal: Refusal, script: Sequence[str], *arguments: str, typed: bytes | None = None,
        progress: Progress | None = None,
    ) -> _CommandReply:  # fmt: skip
        """Run a command, type what it reads, and return what it says; raises what it says is wrong."""
        channel, live = self._channel, self._channel.live
        # A person may have taken control since the last one.
        channel.check_control(current(), current().author())
        with acting(ENGINE):
            command = file_command(live.state.current.name, script, *arguments)
            run = await self._submission.submit("command", command, None, operation="file")
            try:
                if typed is not None and await self._until(run, reads=True):
                    await self._type(typed_chunk(typed))
                await self._until(run, progress=progress)
            except BaseException:
                # Nothing of it may run on, or what is typed next would go to it.
                if is_under_way(live.state, run.request):
                    live.tasks.start(channel.type(b"\x03", "engine"))
                raise
        text = await self._output(run)
        found = list(ANSWER.finditer(text))
        if not found:
            shown = text[-200:].decode("utf-8", "replace").strip()
            raise NoPrompt(
                f"the shell of {channel.id} could not run it: {live.redactor.text(shown)}",
                hint="it needs sh and printf; was it interrupted?",
            )
        begin = found[-2].end() if len(found) > 1 else 0
        answer = _CommandReply(found[-1][1].decode(), found[-1][2].decode().split(), text[begin : found[-1].start()])
        _check(answer, refusal)
        return answer

    async def _until(self, run: Submitted, *, reads: bool = False, progress: Progress | None = None) -> bool:
        """Return when the command has ended, and the shell is at its prompt.

        With `reads` return True as well when it reads, with echo off. No wait for a prompt would do: one ends early
        where a program seems to ask for a password.
        """
        channel, live = self._channel, self._channel.live
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _ANSWER_SECONDS
        while loop.time() < deadline:
            live.pump()
            state = live.state
            if state.shell is ShellState.EXITED:
                raise ended(channel.id, state)
            if state.hooks_lost:
                break
            if state.shell is ShellState.IDLE and not is_under_way(state, run.request):
                return False
            if progress is not None and state.block is not None and state.block.request == run.request:
                progress.reach((state.classified - state.block.begin) * 3 // 4)  # of base64
            if reads and state.block is not None and state.block.request == run.request:
                begin = state.block.begin
                if ANSWER.search(transform("text", live.stream.read(begin, state.classified - begin))):
                    return True
            await live.subscribers.changed(deadline - loop.time())
        raise NoPrompt(
            f"the shell of {channel.id} does not come back to its prompt",
            hint="call it again: the transfer resumes",
        )

    async def _type(self, data: bytes) -> None:
        channel = self._channel
        for at in range(0, len(data), _PIECE_BYTES):
            piece = data[at : at + _PIECE_BYTES]
            sent = await channel.host.input(
                channel.id, piece, author=ENGINE.name, principal=ENGINE.name, req=channel.next_request(), program=True,
                secret="always", deadline_ms=_PIECE_DEADLINE_MS, epoch=channel.epoch,
            )  # fmt: skip
            if sent.accepted < len(piece):
                return  # it has ended, and says why

    async def _output(self, run: Submitted) -> bytes:
        """Return what the command has printed, with nothing redacted."""
        live = self._channel.live
        begin, end = own_block(self._channel.id, live, run, self._find).span
        raw = live.stream.read(begin, (end or begin) - begin)
        return await aside(lambda pace: transform("text", raw), long=False)


def _check(answer: _CommandReply, refusal: Refusal) -> None:
    """Raise what a command says is wrong."""
    if answer.word == "TOOL":
        names = ", ".join(answer.rest)
        raise BadRequest(
            f"the machine of this shell has none of the programs {names}" if len(answer.rest) > 1
            else f"the machine of this shell has no program {names}",
            hint="install one of them there", details={"programs": answer.rest},
        )  # fmt: skip
    if answer.word in _WRONG:
        raise refusal(_WRONG[answer.word]())
    if answer.word in ("EISDIR", "ENOENT", "EACCES"):
        number = int(getattr(errno, answer.word))
        raise refusal(OSError(number, os.strerror(number)))


def _not_the_same(path: str) -> InternalError:
    return InternalError(
        f"what arrived of {path[:99]!r} is not what was sent",
        hint="did someone type meanwhile, or is the disk full there? call it again: the transfer resumes",
    )
