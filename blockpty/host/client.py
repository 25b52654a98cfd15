"""Client of the host, for the engine: one method per operation, and the answers as small frozen records.

This file knows what can be asked and what comes back. It knows nothing of blocks, of the spool or of what the bytes
mean; how a request survives the recorder is in `connection.py`. Keeper and recorder never import it.
"""

from __future__ import annotations

import asyncio
import os
import socket
from binascii import b2a_base64
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from blockpty.errors import BadRequest, BlockptyError, InternalError, error_from_code
from blockpty.host import launch, protocol
from blockpty.host.connection import HostConnection, rebuilt
from blockpty.host.protocol import Refused


class Hello(Struct, frozen=True):
    """The host that answers; `orphans` shells outlived a killed keeper, their exit status will be null."""

    protocol: int
    version: str
    recorder: int
    keeper: int
    transport: Literal["splice", "read"]
    orphans: int


class Sizes(Struct, frozen=True):
    """Sizes of stream and timeline, in bytes, when the entry had been written."""

    offset: int
    timeline: int


class Opened(Sizes, frozen=True):
    """A shell that runs, by its process."""

    pid: int


class Subscribed(Sizes, frozen=True):
    """Whether the conversation is live; `pid` is None where it is not."""

    live: bool
    pid: int | None
    persist: bool


class Typed(Sizes, frozen=True):
    """`offset` is the stream's size at the input entry; `accepted` bytes went in before the deadline.

    `foreground_pid`: the process group that had the terminal at the entry of a command; None where that is unknown.
    """

    accepted: int
    foreground_pid: int | None = None


class Closed(Sizes, frozen=True):
    """`outside`: pid, command and whether it was ended, of each process that had left the session."""

    status: int | None
    signal: str | None
    outside: list[dict[str, Any]]


class Inspected(Sizes, frozen=True):
    """One moment of a terminal; everything but the sizes and `storage` is None when it is not live.

    `unread`: bytes that were typed and not read, None where unknown (not Linux). `program`: name of what the shell's
    own process runs now. `programs`: those of the processes of the foreground, the leader first and parents before
    children; only when asked, as `reader` (name of the one that waits for input from the terminal, if one does) and
    `quiet_ms` (for how long nothing has come or gone in). `stopped`: the shell or the foreground program is stopped.
    `working`: the shell itself computes, or waits for a child of its own process group; False where that is unknown.
    `storage`: why nothing can be recorded now, or None.
    """

    live: bool
    pid: int | None = None
    icanon: bool | None = None
    echo: bool | None = None
    foreground: Literal["shell", "child"] | None = None
    foreground_pid: int | None = None
    foreground_name: str | None = None
    foreground_copy: bool | None = None
    replaced: bool | None = None
    reads: bool | None = None
    unread: int | None = None
    cols: int | None = None
    rows: int | None = None
    stopped: bool | None = None
    working: bool | None = None
    storage: str | None = None
    persist: bool | None = None
    program: str | None = None
    programs: list[str] | None = None
    reader: str | None = None
    quiet_ms: int | None = None
    sandbox: dict[str, Any] | None = None


class ListedShell(Sizes, frozen=True):
    """One live conversation of the home."""

    conversation: str
    pid: int
    persist: bool


async def _socket(path: str, *, start: bool) -> socket.socket | None:
    """Connect in a thread; one that is made after this was cancelled is closed."""
    connecting = asyncio.ensure_future(asyncio.to_thread(launch.connect, path, start=start))
    try:
        return await asyncio.shield(connecting)
    except asyncio.CancelledError:
        connecting.add_done_callback(_close_unused)
        raise


def _close_unused(connecting: asyncio.Future[socket.socket | None]) -> None:
    if not connecting.cancelled() and connecting.exception() is None and (made := connecting.result()) is not None:
        made.close()


class HostClient(HostConnection):
    """A connection to the host of one home. Make it with `connect`, end it with `leave`.

    Attributes:
        transport: how bytes get into the stream: "splice" (a kill loses nothing) or "read".
        version: that of the host's program, which may be older than this one.
        closed: done when the connection has ended for good.
        on_lost: called when the host itself is gone (all its shells with it, unless another host has them).
    """

    transport: Literal["splice", "read"] = "splice"
    version: str = protocol.VERSION

    @classmethod
    async def connect(cls, home: str | os.PathLike[str], *, start: bool = True) -> HostClient:
        """Connect to the host of `home`, starting it if there is none and `start` is true.

        Raises:
            NotFound: no host runs and `start` is false.
            SpawnFailed: the host directory is not private to this user, or the host did not come up.
            BadRequest: the running host speaks another protocol version.
        """
        path = os.fspath(home)
        last: BlockptyError = InternalError("the host exits as soon as it starts")
        for _ in range(20):
            try:
                sock = await _socket(path, start=start)
            except Refused as refusal:
                raise rebuilt(refusal.to_wire()) from None
            if sock is None:
                if not start:
                    raise error_from_code("not_found", f"no host runs for {path}")
                continue
            client = cls(path, sock)
            try:
                # A host that was about to leave drops us unanswered; then there is a new one to be started.
                hello = await client.hello()
                client.transport, client.version = hello.transport, hello.version
            except InternalError as error:
                last = error
                client.leave()
                continue
            except BaseException:
                client.leave()
                raise
            client._established = True
            return client
        raise last

    # -- operations -----------------------------------------------------------------------------------------------

    async def hello(self) -> Hello:
        """Say who answers."""
        answer = await self._ask("hello", {"protocol": protocol.PROTOCOL})
        return Hello(
            answer["protocol"], answer["version"], answer["recorder"], answer["keeper"], answer["transport"],
            answer["orphans"],
        )  # fmt: skip

    async def open(
        self,
        conversation: str,
        directory: str | os.PathLike[str],
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: str | os.PathLike[str],
        *,
        cols: int = 80,
        rows: int = 24,
        persist: bool = False,
        entry: Mapping[str, Any] | None = None,
        executable: str | None = None,
        umask: int | None = None,
        segment_bytes: int | None = None,
        durability: str | None = None,
        process_limit: int | None = None,
        shell_nice: int | None = None,
        sandbox: Mapping[str, Any] | None = None,
        is_piped: bool = False,
    ) -> Opened:
        """Start a shell on a new terminal.

        `entry` is what the engine wants in the spawn entry of the timeline; its `nonce` makes asking twice harmless.
        `executable` is what is run when `argv[0]` is only a name (`-bash`). `process_limit` bounds how many processes
        there may be in it at once; 0: no bound. `shell_nice` is how far its session's CPU share may be lowered
        where there are many (host/autogroup.py). `sandbox` is the boundary around it (host/sandbox.py). `is_piped`:
        its standard output is a pipe rather than the terminal, where splice works.

        Raises:
            SpawnFailed: the program or `cwd` cannot be used.
            PtyLimit: no terminal is free.
            Busy: the conversation has a shell.
            BadRequest: `directory` is not a private directory in `<home>/conversations`.
            StorageFull: the stream or the timeline cannot be written.
        """
        fields: dict[str, Any] = {
            "conversation": conversation, "directory": os.fspath(directory), "argv": [*argv], "env": dict(env),
            "cwd": os.fspath(cwd), "cols": cols, "rows": rows, "persist": persist, "entry": dict(entry or {}),
            "is_piped": is_piped,
        }  # fmt: skip
        optional = {
            "executable": executable, "umask": umask, "segment_bytes": segment_bytes, "durability": durability,
            "process_limit": process_limit, "shell_nice": shell_nice, "sandbox": sandbox,
        }  # fmt: skip
        fields.update((name, value) for name, value in optional.items() if value is not None)
        answer = await self._ask("open", fields)
        return Opened(answer["offset"], answer["timeline"], answer["pid"])

    async def subscribe(self, conversation: str, epoch: int, callback: Callable[[], object]) -> Subscribed:
        """Have `callback` called, from the loop, whenever stream or timeline grew (coalesced), and claim `epoch`: from
        now on writers with a lower one are refused. A lower epoch than another's only listens. Also for conversations
        that have no shell now.
        """
        answer = await self._subscribe(conversation, epoch, callback)
        return Subscribed(answer["offset"], answer["timeline"], answer["live"], answer["pid"], answer["persist"])

    async def recover(self, conversation: str) -> bool:
        """Recover the files of a conversation that has no shell, before they are read.

        Returns whether an end had to be cut, which a loss of power had damaged. Raises StorageFull.
        """
        # A host of the first version does not note how far the files are durable.
        if self.version == "1":
            return False
        answer = await self._ask("mend", {"conversation": conversation})  # words: on the wire
        return bool(answer["mended"])  # words: on the wire

    async def unsubscribe(self, conversation: str) -> None:
        """Call the callback no more."""
        self._drop_subscription(conversation)
        await self._ask("unsubscribe", {"conversation": conversation})

    async def input(
        self,
        conversation: str,
        data: bytes,
        *,
        author: str,
        principal: str | None = None,
        req: str | None = None,
        submit: Mapping[str, Any] | None = None,
        program: bool = False,
        secret: Literal["always", "raw"] | None = None,
        hidden_only: bool = False,
        deadline_ms: int = protocol.DEADLINE_MS,
        epoch: int | None = None,
    ) -> Typed:
        """Type `data`; `program`: for what the shell runs, not for its own line editor.

        `principal`: on whose behalf, as the record names it.

        `hidden_only`: refuse it where the terminal shows what is typed.
        `secret`: neither the bytes nor their number are recorded; `raw`: only where the terminal is raw, without echo.

        Returns when the terminal took all of it, or at the deadline with how much it took (the rest is dropped). With
        `submit`, or from the engine, the deadline is that long after the last byte that it took, or up to twice that.
        Cancelling does not take back what was asked.

        Raises:
            LineTooLong: canonical mode, and a line of more than 4,095 bytes; nothing was typed.
            Exited, NotFound, Busy, StorageFull: nothing was typed.
            InternalError: details {"retry": True}: the recorder was killed; whether it was typed is unknown.
        """
        fields: dict[str, Any] = {
            "conversation": conversation, "data_b64": b2a_base64(data, newline=False).decode(), "author": author,
            "deadline_ms": deadline_ms, "epoch": epoch, "program": program,
        }  # fmt: skip
        if principal is not None:
            fields["principal"] = principal
        if req is not None:
            fields["req"] = req
        if submit is not None:
            fields["submit"] = submit
        if secret is not None:
            if secret == "always" and self.version in ("1", "2"):
                raise BadRequest(
                    "the host of this home is older than this program, and would record a secret input",
                    hint="close its conversations, so that a newer one takes its place",
                )
            fields["secret"] = secret
        if hidden_only:
            if self.version in ("1", "2", "3"):
                raise BadRequest(
                    "the host of this home is older than this program, and would type where it shows",
                    hint="close its conversations, so that a newer one takes its place",
                )
            fields["hidden_only"] = True
        answer = await self._ask("input", fields)
        return Typed(answer["offset"], answer["timeline"], answer["accepted"], answer.get("foreground_pid"))

    async def cut(
        self, conversation: str, author: str, *, code: str, message: str, epoch: int | None = None
    ) -> None:  # fmt: skip
        """Stop what an author is typing; its inputs that have not begun are refused with this code and message.

        The answer to one that has begun says how many bytes went in. A host of an earlier version lets them go on.
        """
        if self.version in ("1", "2", "3"):
            return
        fields = {"conversation": conversation, "author": author, "code": code, "message": message, "epoch": epoch}
        await self._ask("cut", fields)

    def note(self, conversation: str, note: Any, *, epoch: int | None = None) -> asyncio.Future[dict[str, Any]]:
        """Write a note entry, in order with everything asked before. The returned future need not be awaited."""
        future = self._ask("note", {"conversation": conversation, "note": note, "epoch": epoch})
        future.add_done_callback(_seen)
        return future

    async def resize(
        self, conversation: str, cols: int, rows: int, *, author: str, epoch: int | None = None
    ) -> Sizes:  # fmt: skip
        """Set the terminal's size; the program in it gets SIGWINCH."""
        fields = {"conversation": conversation, "cols": cols, "rows": rows, "author": author, "epoch": epoch}
        return _sizes(await self._ask("resize", fields))

    async def signal(
        self,
        conversation: str,
        signal: str,
        *,
        target: Literal["foreground", "shell", "session"] = "foreground",
        epoch: int | None = None,
    ) -> Sizes:
        """Send a signal (`INT`) to the foreground process group, to the shell, or to every group of the session."""
        fields = {"conversation": conversation, "signal": signal, "target": target, "epoch": epoch}
        return _sizes(await self._ask("signal", fields))

    async def inspect(self, conversation: str, *, programs: bool = False) -> Inspected:
        """Look at the terminal now, with `programs` also at what runs in its foreground."""
        answer = await self._ask("inspect", {"conversation": conversation, "programs": programs})
        return Inspected(**{name: value for name, value in answer.items() if name not in ("id", "ok")})

    def sample(self, conversation: str) -> asyncio.Future[dict[str, Any]]:
        """Ask how the terminal is read now; the request has been sent when this returns.

        The answer has `live` and, where that is true, `icanon`, `echo`, `foreground`, `replaced` and `reads` as
        `Inspected` has them. The returned future need not be awaited.
        """
        # A host of an earlier version says more than that.
        future = self._ask("inspect", {"conversation": conversation, "brief": True})
        future.add_done_callback(_seen)
        return future

    async def watch_idle(self, conversation: str, ms: int) -> Sizes:
        """Have one silence entry written when nothing has come or gone in for `ms`; at once if that is so already."""
        return _sizes(await self._ask("watch_idle", {"conversation": conversation, "ms": ms}))

    async def adopt(self, conversation: str) -> Sizes:
        """Take the program that the shell process runs now for the one it was started with (see `replaced`)."""
        return _sizes(await self._ask("adopt", {"conversation": conversation}))

    async def set_persist(self, conversation: str, persist: bool) -> Sizes:
        """Note whether the conversation is meant to outlive its engine."""
        return _sizes(await self._ask("set_persist", {"conversation": conversation, "persist": persist}))

    async def close(
        self, conversation: str, *, grace_ms: int = protocol.GRACE_MS, leave: bool = False, epoch: int | None = None
    ) -> Closed:  # fmt: skip
        """Hang the session up, kill what is left of it after the grace, and wait for its end.

        What has left the session (setsid) gets TERM and is killed too, unless `leave`; a second is spent on that.
        """
        fields = {"conversation": conversation, "grace_ms": grace_ms, "leave": leave, "epoch": epoch}
        answer = await self._ask("close", fields)
        # A host of an earlier version does not look outside, nor does one that was killed meanwhile.
        outside = answer.get("outside", [])
        return Closed(answer["offset"], answer["timeline"], answer["status"], answer["signal"], outside)

    async def find(self, conversation: str) -> tuple[bool, int]:
        """Whether a conversation is live, and how many are."""
        answer = await self._ask("find", {"conversation": conversation})
        return answer["live"], answer["open"]

    async def list(self) -> list[ListedShell]:
        """Every live conversation of the home."""
        answer = await self._ask("list", {})
        return [
            ListedShell(one["offset"], one["timeline"], one["conversation"], one["pid"], one["persist"])
            for one in answer["conversations"]
        ]


def _sizes(answer: dict[str, Any]) -> Sizes:
    return Sizes(answer["offset"], answer["timeline"])


def _seen(future: asyncio.Future[dict[str, Any]]) -> None:
    """Let a request fail without a warning: its future need not be awaited."""
    if not future.cancelled():
        future.exception()
