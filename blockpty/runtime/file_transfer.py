"""Files in and out of a conversation: read and written here, or through the terminal.

Where the shell at the prompt is on this machine, as this user, with the same file system, its files are ours, and the
engine reads and writes them itself. Everywhere else (behind ssh, su, a container, a sandbox) commands of the engine do
it in that shell. Either way the timeline says which file went where, how long it is, and its digest.

Rules of this file: nothing moves but at a prompt, and not before the policy has allowed what a command would do. A file
is replaced as a whole, once its digest is right.
"""

from __future__ import annotations

import asyncio
import base64
import errno
import hashlib
import os
import re
import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from blockpty.api import limits
from blockpty.control.principals import current
from blockpty.errors import BadRequest, BlockptyError, Busy, Forbidden, NotFound, StorageFull
from blockpty.files.opening import UnsafeFile
from blockpty.files.replacing import read_whole, replace_whole
from blockpty.model.results import GetFileResult, PutFileResult
from blockpty.runtime.gate import ApprovalNeeded
from blockpty.runtime.redactor import Redactor
from blockpty.runtime.shell_entry import sees_our_files
from blockpty.runtime.submission import encoded
from blockpty.runtime.terminal_files import TerminalFiles
from blockpty.runtime.worker_threads import aside

if TYPE_CHECKING:
    from blockpty.control.policy import Question
    from blockpty.host.client import Inspected
    from blockpty.model.block import Block
    from blockpty.runtime.channel import ConversationChannel
    from blockpty.runtime.submission import Submission

_MODE: Final = re.compile(r"[0-7]{3,4}")
# A text in a file that is none, long enough for a secret.
_TEXT: Final = re.compile(rb"[\t\n\r -~]{8,}")
_SHOWN: Final = 99
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)


class FileTransfer:
    """Moves files for one conversation, one at a time."""

    def __init__(
        self, channel: ConversationChannel, submission: Submission, find: Callable[[str], Block], allow_uncovered: bool
    ) -> None:
        self._channel = channel
        self._submission = submission
        self._allow_uncovered = allow_uncovered
        self._turn = asyncio.Lock()
        self._terminal = TerminalFiles(channel, submission, find)

    async def put(
        self, path: str, data: str | bytes | None, data_b64: str | None, local_path: str | None, mode: str | None
    ) -> PutFileResult:
        """Write a file; raises as `Conversation.put_file` says."""
        _check_path(path)
        if mode is not None and not _MODE.fullmatch(mode):
            raise BadRequest(f"mode cannot be {mode[:_SHOWN]!r}", hint="three or four octal digits, such as 644")
        content = await _given(data, data_b64, local_path)
        digest = hashlib.sha256(content).hexdigest()
        async with self._turn:
            place = await self._place("put_file", f"cat > {_as_word(path)}", path, content, mode)
            if not isinstance(place, bytes):
                await self._terminal.put(place, content, digest, mode, partial(_refused, path))
            return PutFileResult(
                len(content), digest, await self._noted("put", path, len(content), digest, place), _how(place)
            )

    async def get(self, path: str, local_path: str | None, max_bytes: int, redact: bool | None) -> GetFileResult:
        """Read a file; raises as `Conversation.get_file` says."""
        channel = self._channel
        _check_path(path)
        limits.check("max_bytes", max_bytes)
        if redact is False and channel.live.redactor.redact and not self._allow_uncovered:
            raise Forbidden(
                "this engine returns redacted output only",
                hint="allow_uncovered (BLOCKPTY_ALLOW_UNCOVERED, serve --allow-uncovered) lets a file show them",
            )
        if local_path is not None:
            _check_local(local_path)
        async with self._turn:
            place = await self._place("get_file", f"cat {_as_word(path)}", path, None, None, max_bytes)
            if isinstance(place, bytes):
                content = place
                if len(content) > max_bytes:
                    raise _too_long(path, None)
            else:
                content = await self._terminal.get(
                    place, max_bytes, partial(_refused, path), partial(_too_long, path)
                )
            redactor = Redactor(channel.live.mask, channel.live.redactor.redact if redact is None else redact)
            shown = await aside(lambda pace: _redacted(redactor, content), long=False)
            # A digest of the whole file would let a caller who knows the rest guess the secret.
            digest = hashlib.sha256(shown).hexdigest()
            if local_path is not None:
                await _written(local_path, shown)
            cursor = await self._noted("get", path, len(shown), digest, place)
        text, exact = (None, None) if local_path is not None else _in_json(shown)
        return GetFileResult(len(shown), digest, text, exact, cursor, _how(place), shown != content)

    async def _place(
        self, operation: str, text: str, path: str, content: bytes | None, mode: str | None, most: int = 0
    ) -> bytes | str:
        """Move a file here, if the shell's files are ours, and return its content; else return its path there.

        With `content` it is written. Raises what keeps the caller from it.
        """
        channel = self._channel
        granted: set[Question] = set()
        while True:
            try:
                async with self._submission.at_prompt():
                    sample = await channel.host.inspect(channel.id)
                    channel.live.pump()
                    principal = current()
                    author = principal.author()
                    channel.check_control(principal, author)
                    if channel.gate is not None:
                        channel.gate.check_command(channel, principal, author, operation, text, None, granted)
                    if not self._is_here(sample):
                        return self._absolute(path)
                    return await self._moved_here(path, content, mode, most, sample.foreground_pid)
            except ApprovalNeeded as needed:
                # Outside of the turn: other commands go on meanwhile.
                assert channel.gate is not None
                await channel.gate.ask(channel, needed)
                granted.add(needed.question)

    def _is_here(self, sample: Inspected) -> bool:
        """Return whether the shell at the prompt has our files, and what it may do with them is what we may."""
        state = self._channel.live.state
        if state.outer or state.source is not None or state.current.cwd is None or not state.current.sees_files:
            return False
        return sample.foreground == "shell" and sample.sandbox is None and sees_our_files(sample.foreground_pid)

    def _absolute(self, path: str) -> str:
        """Return a path that another directory of the shell changes no more, where it says which it has."""
        cwd = self._channel.live.state.current.cwd
        if cwd is None or path.startswith(("/", "~/")) or path == "~":
            return path
        return f"{cwd.rstrip('/')}/{path}"

    async def _moved_here(
        self, path: str, content: bytes | None, mode: str | None, most: int, pid: int | None
    ) -> bytes:
        home, umask = _of_shell(pid)
        whole = self._absolute(path)
        if whole == "~" or whole.startswith("~/"):
            whole = home + whole[1:]
        try:
            if content is None:
                return await aside(lambda pace: read_whole(whole, most), long=False)
            bits = int(mode, 8) if mode is not None else None
            await aside(lambda pace: replace_whole(whole, content, bits, umask), long=False)
            return content
        except OSError as problem:
            raise _refused(path, problem) from None

    async def _noted(self, direction: str, path: str, size: int, digest: str, place: bytes | str) -> int:
        channel = self._channel
        channel.note(
            {
                "type": "file_transfer", "direction": direction, "path": path, "bytes": size, "digest": digest,
                "how": _how(place), "principal": current().name,
            }
        )  # fmt: skip
        await channel.noted()
        return channel.cursor


def _as_word(path: str) -> str:
    """Return a path as a shell would be given exactly this file, for the policy: no blank in it ends its name."""
    if path.startswith("-"):
        path = f"./{path}"  # no option
    return f"~/{shlex.quote(path[2:])}" if path.startswith("~/") and len(path) > len("~/") else shlex.quote(path)


def _how(place: bytes | str) -> str:
    return "direct" if isinstance(place, bytes) else "terminal"


def _check_path(path: str) -> None:
    if not path or "\0" in path:
        raise BadRequest("the path is empty or holds a NUL character")
    encoded(path)


def _check_local(path: str) -> None:
    """Raise Forbidden for an agent: the engine's own files are no part of the conversation."""
    if not current().is_person:
        raise Forbidden(
            f"{current().name} types as an agent, which may not use files of the engine's machine",
            hint="give data, or leave local_path out and take the data of the result",
        )
    _check_path(path)


async def _given(data: str | bytes | None, data_b64: str | None, local_path: str | None) -> bytes:
    """Return the content of a file to be written."""
    if [data, data_b64, local_path].count(None) != 2:
        raise BadRequest("give one of data, data_b64 and local_path", hint='data="" makes an empty file')
    if local_path is not None:
        _check_local(local_path)
        try:
            content = await aside(lambda pace: read_whole(os.path.expanduser(local_path), limits.MOST_FILE), long=False)
        except OSError as problem:
            raise _refused(local_path, problem) from None
    elif data_b64 is not None:
        try:
            content = base64.b64decode(data_b64, validate=True)
        except ValueError:
            raise BadRequest("data_b64 is not valid base64") from None
    else:
        content = encoded(data) if isinstance(data, str) else bytes(data or b"")
    if len(content) > limits.MOST_FILE:
        raise BadRequest(f"the content is longer than {limits.MOST_FILE} bytes", hint="put it in parts")
    return content


async def _written(path: str, data: bytes) -> None:
    """Write a file of this machine, private if it is new."""
    try:
        await aside(lambda pace: replace_whole(os.path.expanduser(path), data, None, 0o077), long=False)
    except OSError as problem:
        raise _refused(path, problem) from None


def _redacted(redactor: Redactor, content: bytes) -> bytes:
    """Return content without the secrets in it: in a text anywhere, in other files within texts."""
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return _TEXT.sub(lambda found: redactor.hide(found[0]), content)
    return redactor.hide(content)


def _in_json(data: bytes) -> tuple[str | None, str | None]:
    """Return content as text where it is one, else in base64."""
    try:
        return data.decode("utf-8"), None
    except UnicodeDecodeError:
        return None, base64.b64encode(data).decode("ascii")


def _of_shell(pid: int | None) -> tuple[str, int]:
    """Return HOME and the umask of a shell; where the system does not tell, those of this process."""
    home, umask = os.path.expanduser("~"), 0o022
    process = Path("/proc") / str(pid)
    try:
        for line in process.joinpath("environ").read_bytes().split(b"\0"):
            if line.startswith(b"HOME="):
                home = os.fsdecode(line[5:])
        for text in process.joinpath("status").read_text("ascii", "replace").splitlines():
            if text.startswith("Umask:"):
                umask = int(text.split()[1], 8)
    except OSError:
        pass  # no such file system, or the shell has ended
    return home, umask


def _refused(path: str, problem: OSError) -> BlockptyError:
    """Return what a file that cannot be read or written is to the caller."""
    name = repr(path[:_SHOWN])
    details = {"errno": errno.errorcode.get(problem.errno or 0, "")}
    if isinstance(problem, (FileNotFoundError, NotADirectoryError)):
        return NotFound(
            f"there is no file {name}, or no directory for it", hint="a relative path begins at the shell's directory",
            details=details,
        )  # fmt: skip
    if isinstance(problem, IsADirectoryError):
        return BadRequest(f"{name} is a directory", hint="name a file in it", details=details)
    if isinstance(problem, PermissionError):
        return BadRequest(
            f"permission denied: {name}", hint="the user of this shell may not; use another path, or a shell that may",
            details=details,
        )  # fmt: skip
    if isinstance(problem, UnsafeFile):
        return BadRequest(f"{name} is {problem.strerror}", hint="only regular files are moved", details=details)
    if problem.errno in _FULL:
        return StorageFull(f"{name} cannot be written: {problem.strerror}", hint="free space there", details=details)
    if problem.errno == errno.ETXTBSY:
        return Busy(f"{name} is a program that runs", hint="end it first", details=details)
    return BadRequest(f"{name}: {problem.strerror}", hint="use another path", details=details)


def _too_long(path: str, size: int | None) -> BadRequest:
    long = f"is {size} bytes long" if size is not None else "is longer than max_bytes"
    return BadRequest(
        f"{path[:_SHOWN]!r} {long}", hint="raise max_bytes, or read a part with a command such as head or tail",
        details={"bytes": size},
    )  # fmt: skip
