"""HTTP over the unix socket of a home's server: one call, and as much of HTTP as our own server speaks there.

A connection carries one request and ends with its answer (HTTP/1.0), so that there is none to keep, to share, or to
find closed. Servers elsewhere may stand behind a proxy, and events are a stream: for both the client has a library.
This exists because loading that library takes longer than the call; loading asyncio does too, so that a program with
one call can wait for its answer without an event loop.
"""

from __future__ import annotations

import json
import select
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from blockpty.errors import BlockptyError, ConnectionLost, NotFound

_PIECE: Final = 1 << 16

PROGRESS_TYPE: Final = "application/x-ndjson"
"""What a request accepts that wants the progress of its call: lines of it, and the answer as the last one."""

Report = Callable[[dict[str, Any]], None]
"""Takes what a line of progress says."""


class Unanswered(Exception):
    """There was no answer, or only part of one.

    Attributes:
        sent: whether the server may have had the request.
    """

    def __init__(self, why: str, *, sent: bool) -> None:
        super().__init__(why)
        self.sent = sent


class Exchange:
    """A request that has been sent, and its answer, which is waited for by blocking or by an event loop.

    The connection is closed with the answer, by `close`, and when a wait for it fails or is cancelled.
    """

    def __init__(
        self, connection: socket.socket, method: str, target: str, headers: Mapping[str, str], content: bytes | None
    ) -> None:
        self._connection = connection
        self._received = bytearray()
        try:
            connection.sendall(_request(method, target, headers, content))
        except OSError as problem:
            self.close()
            raise Unanswered(type(problem).__name__, sent=True) from None

    def close(self) -> None:
        """Give up the connection; the server drops the call."""
        self._connection.close()

    def wait(self, seconds: float | None = None) -> bool:
        """Block until all of the answer is there, or for so long; return whether it is. Raises Unanswered."""
        poller = select.poll()
        poller.register(self._connection, select.POLLIN)
        end = None if seconds is None else time.monotonic() + seconds
        try:
            while True:
                left = None if end is None else max(0.0, 1000 * (end - time.monotonic()))
                if not poller.poll(left):
                    return False
                piece = self._connection.recv(_PIECE)
                if not piece:
                    return True
                self._received += piece
        except OSError as problem:
            self.close()
            raise Unanswered(type(problem).__name__, sent=True) from None
        except BaseException:
            self.close()
            raise

    def answer(self) -> tuple[int, bytes]:
        """Return status and body of the answer, which is there; raises Unanswered."""
        self.close()
        return _answer(bytes(self._received))

    async def rest(self, report: Report | None = None) -> tuple[int, bytes]:
        """Return status and body of the answer once it is there; raises Unanswered."""
        return _answer(await _read(self._connection, b"", report, self._received))


async def ask(
    connection: socket.socket,
    method: str,
    target: str,
    headers: Mapping[str, str],
    content: bytes | None,
    report: Report | None = None,
) -> tuple[int, bytes]:
    """Return status and body of the answer to one request; closes the connection, also when cancelled.

    `report`: takes the progress of the call until then. Raises Unanswered.
    """
    return _answer(await _read(connection, _request(method, target, headers, content), report))


async def _read(
    connection: socket.socket, request: bytes, report: Report | None, received: bytes | bytearray = b""
) -> bytes:
    import asyncio

    reader, writer = await asyncio.open_connection(sock=connection)
    try:
        writer.write(request)
        if report is None:
            return bytes(received) + await reader.read()
        received = bytearray(received)
        report_last(received, report)
        while piece := await reader.read(_PIECE):
            received += piece
            if b"\n" in piece:
                report_last(received, report)
        return bytes(received)
    except OSError as problem:
        raise Unanswered(type(problem).__name__, sent=True) from None
    finally:
        writer.close()


def _request(method: str, target: str, headers: Mapping[str, str], content: bytes | None) -> bytes:
    head = f"{method} {target} HTTP/1.0\r\nHost: localhost\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    if content is not None:
        head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n"
    return head.encode("ascii") + b"\r\n" + (content or b"")


def report_last(received: bytes | bytearray, report: Report) -> None:
    """Report the last whole line of what was received, if it says progress."""
    end = received.rfind(b"\n")
    line = received[received.rfind(b"\n", 0, max(0, end)) + 1 : max(0, end)]
    if line.startswith(_PROGRESS):
        report(json.loads(line)["progress"])


_PROGRESS: Final = b'{"progress": '


def progress_line(said: Mapping[str, Any]) -> bytes:
    """Return the line of an answer that says how far its call is."""
    return json.dumps({"progress": said}).encode() + b"\n"


def without_progress(body: bytes) -> bytes:
    """Return the answer itself; it is JSON on one line, the last."""
    return body.rpartition(b"\n")[2] if body.startswith(_PROGRESS) else body


def _answer(answer: bytes) -> tuple[int, bytes]:
    top, found, body = answer.partition(b"\r\n\r\n")
    lines = top.split(b"\r\n")
    parts = lines[0].split(b" ", 2)
    if not found or len(parts) < 2 or not parts[1].isdigit():
        raise Unanswered("no answer", sent=True)
    for line in lines[1:]:
        name, _, value = line.partition(b":")
        # A long answer begins before its length is known; then it is JSON that says whether all of it came.
        if name.lower() == b"content-length" and int(value) != len(body):
            raise Unanswered("half an answer", sent=True)
    return int(parts[1]), without_progress(body)


def lost(where: str, problem: Unanswered) -> BlockptyError:
    """Return the error for a server that has not answered."""
    if problem.sent:
        return ConnectionLost(
            f"the connection to {where} was lost before the answer: {problem}",
            hint="it may have been carried out, and shells keep running; check status and blocks before you repeat it",
            details={"server": where},
        )
    return NotFound(
        f"no server answers at {where}: {problem}", hint="blockpty serve starts one", details={"server": where}
    )
