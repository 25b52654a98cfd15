"""Connection to the host, on asyncio, that outlives the recorder at its other end.

This file knows framing, subscriptions and what may be asked twice; which operations there are is in `client.py`. A
request goes out at once, on the socket itself: a round trip costs two system calls here and no task.

Carrying on: when the connection ends, a new one is made as long as a host listens. Notification descriptors are
passed again and each callback is called once (a notification may have been lost). What has no answer is asked again.
That is harmless for most operations; an `input` with a `req` and a `note` say how far the timeline was known, and the
host looks there first, so that they are entered once; `open` is recognised by the nonce in its entry. Only `signal`, an
`input` without `req`, and one that was just being written fail with `internal`, details {"retry": true}: they may or
may not have been done.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import socket
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from blockpty.errors import BadRequest, BlockptyError, InternalError, error_from_code
from blockpty.host import launch, protocol
from blockpty.host.protocol import Refused

RECONNECT_SECONDS = 10.0
FIRST_PAUSE_SECONDS = 0.002
LONGEST_PAUSE_SECONDS = 0.25

_MAX_REQUEST = protocol.MAX_LINE - 1024  # room for what is added when it is asked again

_encode_any = json.JSONEncoder(separators=(",", ":")).encode


class _Subscription:
    """The notification descriptor that the recorder writes to, the one that we read, and the callback."""

    __slots__ = ("callback", "epoch", "read_fd", "write_fd")

    def __init__(self, epoch: int, callback: Callable[[], object]) -> None:
        self.epoch = epoch
        self.callback = callback
        if hasattr(os, "eventfd"):
            self.read_fd = self.write_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        else:
            self.read_fd, self.write_fd = os.pipe()
            os.set_blocking(self.read_fd, False)
            os.set_blocking(self.write_fd, False)

    def close(self) -> None:
        for fd in {self.read_fd, self.write_fd}:
            os.close(fd)


class _PendingRequest:
    """A request that is under way."""

    __slots__ = ("subscription", "fields", "future", "known", "op")

    def __init__(
        self, op: str, fields: Mapping[str, Any], future: asyncio.Future[dict[str, Any]],
        subscription: _Subscription | None, known: int,
    ) -> None:  # fmt: skip
        self.op = op
        self.fields = fields
        self.future = future
        self.subscription = subscription
        self.known = known

    @property
    def repeatable(self) -> bool:
        return self.op != "signal" and (self.op != "input" or "req" in self.fields)

    def again(self, number: int) -> bytes:
        more = {"again": self.known} if self.op in ("input", "note", "close") else {}
        return _line({"id": number, "op": self.op, **self.fields, **more})


class HostConnection:
    """Requests and notifications over one socket after another.

    Attributes:
        closed: done when the connection has ended for good.
        on_lost: called when the host itself is gone (all its shells with it, unless another host has them).
    """

    def __init__(self, home: str, sock: socket.socket) -> None:
        self.home = home
        self._loop = asyncio.get_running_loop()
        self.closed: asyncio.Future[None] = self._loop.create_future()
        self.on_lost: Callable[[], object] | None = None
        self._sock: socket.socket | None = None
        self._in = bytearray()
        self._out: deque[tuple[memoryview, list[int]]] = deque()
        self._writing = False
        self._numbers = itertools.count(1)
        self._calls: dict[int, _PendingRequest] = {}
        self._subscriptions: dict[str, _Subscription] = {}
        # How long each timeline is, as far as the host has reported.
        self._known: dict[str, int] = {}
        self._reconnecting: asyncio.Task[None] | None = None
        self._established = False
        self._attach(sock)

    # -- connection -----------------------------------------------------------------------------------------------

    def leave(self) -> None:
        """End the connection (not the conversations). What is under way fails with `internal`."""
        self._established = False
        if self._reconnecting is not None:
            self._reconnecting.cancel()
            self._reconnecting = None
        self._detach()
        self._end("the connection to the host was ended")
        for conversation in [*self._subscriptions]:
            self._drop_subscription(conversation)

    def _attach(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._loop.add_reader(sock.fileno(), self._readable)

    def _detach(self) -> None:
        if self._sock is not None:
            self._loop.remove_reader(self._sock.fileno())
            if self._writing:
                self._loop.remove_writer(self._sock.fileno())
            self._sock.close()
            self._sock = None
        self._writing = False
        self._in.clear()
        self._out.clear()

    def _end(self, why: str) -> None:
        for call in self._calls.values():
            if not call.future.done():
                call.future.set_exception(InternalError(why, details={"retry": False}))
        self._calls.clear()
        if not self.closed.done():
            self.closed.set_result(None)

    def _lost(self) -> None:
        """The connection has ended: the recorder was killed, or the host is gone."""
        self._detach()
        if not self._established:
            self._end("the host ended the connection")
            return
        for number, call in [*self._calls.items()]:
            if not call.repeatable:
                del self._calls[number]
                if not call.future.done():
                    call.future.set_exception(InternalError("host restarted", details={"retry": True}))
        self._reconnecting = self._loop.create_task(self._reconnect())

    async def _reconnect(self) -> None:
        pause = FIRST_PAUSE_SECONDS
        end = self._loop.time() + RECONNECT_SECONDS
        while True:
            sock = None
            with contextlib.suppress(OSError, Refused):
                sock = launch.connect(self.home, start=False)
            if sock is None:
                break
            if await self._answers(sock):
                self._reconnecting = None
                self._attach(sock)
                self._resume()
                return
            if self._loop.time() > end:
                break
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)
        self._reconnecting = None
        self._established = False
        self._end("the host is gone")
        if self.on_lost is not None:
            self.on_lost()

    async def _answers(self, sock: socket.socket) -> bool:
        """Whether a recorder (not only the keeper's socket) is behind the connection."""
        sock.setblocking(False)
        try:
            line = protocol.encode({"id": 0, "op": "hello", "protocol": protocol.PROTOCOL})
            await self._loop.sock_sendall(sock, line)
            got = b""
            while not got.endswith(b"\n"):
                piece = await self._loop.sock_recv(sock, 65536)
                if not piece:
                    sock.close()
                    return False
                got += piece
        except OSError:
            sock.close()
            return False
        except BaseException:
            sock.close()
            raise
        return True

    def _resume(self) -> None:
        """Subscribe again, call each callback, and ask again what can be asked again."""
        for conversation, subscription in self._subscriptions.items():
            self._send(_subscribe_line(conversation, subscription.epoch), [subscription.write_fd])
        for number, call in self._calls.items():
            self._send(call.again(number), [call.subscription.write_fd] if call.subscription is not None else [])
        for subscription in [*self._subscriptions.values()]:
            subscription.callback()

    # -- sending and receiving ------------------------------------------------------------------------------------

    def _ask(
        self, op: str, fields: Mapping[str, Any], subscription: _Subscription | None = None
    ) -> asyncio.Future[dict[str, Any]]:
        future: asyncio.Future[dict[str, Any]] = self._loop.create_future()
        if self._sock is None and self._reconnecting is None:
            future.set_exception(InternalError("there is no connection to the host", details={"retry": False}))
            return future
        number = next(self._numbers)
        line = _line({"id": number, "op": op, **fields})
        if len(line) > _MAX_REQUEST:
            # The host would end the connection, and asking again on the next one would end that too.
            future.set_exception(
                BadRequest(
                    f"the request takes {len(line)} bytes as JSON, and the host {_MAX_REQUEST} at most",
                    hint="put the data into a file",
                )
            )
            return future
        known = self._known.get(fields.get("conversation", ""), 0)
        self._calls[number] = _PendingRequest(op, fields, future, subscription, known)
        if self._sock is not None:
            self._send(line, [subscription.write_fd] if subscription is not None else [])
        return future

    def _send(self, line: bytes, fds: list[int]) -> None:
        sock = self._sock
        if sock is None:
            return
        if not self._out and not fds:
            try:
                sent = sock.send(line)
            except (BlockingIOError, InterruptedError):
                sent = 0
            except OSError:
                return  # the reader notices the end, and what is under way is dealt with there
            if sent == len(line):
                return
            line = line[sent:]
        self._out.append((memoryview(line), fds))
        self._flush()

    def _flush(self) -> None:
        sock = self._sock
        assert sock is not None
        while self._out:
            line, fds = self._out[0]
            try:
                sent = socket.send_fds(sock, [line], fds) if fds else sock.send(line)
            except (BlockingIOError, InterruptedError):
                if not self._writing:
                    self._writing = True
                    self._loop.add_writer(sock.fileno(), self._flush)
                return
            except OSError:
                self._out.clear()
                break
            if sent == len(line):
                self._out.popleft()
            else:
                self._out[0] = (line[sent:], [])
        if self._writing:
            self._writing = False
            self._loop.remove_writer(sock.fileno())

    def _readable(self) -> None:
        assert self._sock is not None
        try:
            data = self._sock.recv(262144)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if not data:
            self._lost()
            return
        if self._in or not data.endswith(b"\n"):
            self._in += data
            end = self._in.rfind(b"\n")
            if end < 0:
                return
            data = bytes(self._in[: end + 1])
            del self._in[: end + 1]
        for line in data[:-1].split(b"\n"):
            message = _message(line)
            call = self._calls.pop(message.get("id"), None)
            if call is None:
                continue
            if "timeline" in message:
                name = call.fields["conversation"]
                self._known[name] = max(self._known.get(name, 0), message["timeline"])
            if call.future.done():
                continue
            if message["ok"]:
                call.future.set_result(message)
            else:
                call.future.set_exception(rebuilt(message["error"]))

    # -- subscriptions --------------------------------------------------------------------------------------------

    async def _subscribe(self, conversation: str, epoch: int, callback: Callable[[], object]) -> dict[str, Any]:
        subscription = _Subscription(epoch, callback)
        try:
            answer = await self._ask("subscribe", {"conversation": conversation, "epoch": epoch}, subscription)
        except BaseException:
            subscription.close()
            raise
        self._drop_subscription(conversation)
        self._subscriptions[conversation] = subscription
        self._loop.add_reader(subscription.read_fd, self._notified, subscription)
        return answer

    def _notified(self, subscription: _Subscription) -> None:
        try:
            os.read(subscription.read_fd, 65536 if subscription.read_fd != subscription.write_fd else 8)
        except BlockingIOError:
            pass  # it was read already
        subscription.callback()

    def _drop_subscription(self, conversation: str) -> None:
        subscription = self._subscriptions.pop(conversation, None)
        if subscription is not None:
            self._loop.remove_reader(subscription.read_fd)
            subscription.close()


def _line(message: Mapping[str, Any]) -> bytes:
    try:
        return orjson.dumps(message, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:
        # A text with bytes that are none, or a very large number.
        return (_encode_any(message) + "\n").encode()


def _message(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except ValueError:
        return json.loads(line)  # the same


def _subscribe_line(conversation: str, epoch: int) -> bytes:
    return _line({"op": "subscribe", "conversation": conversation, "epoch": epoch})


def rebuilt(error: Mapping[str, Any]) -> BlockptyError:
    return error_from_code(error["code"], error["message"], error["hint"], error["details"])
