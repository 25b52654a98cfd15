"""HTTP over the unix socket of a home's server: one call, and as much of HTTP as our own server speaks there.

A connection carries one request and ends with its answer (HTTP/1.0), so that there is none to keep, to share, or to
find closed. Servers elsewhere may stand behind a proxy, and events are a stream: for both the client has a library.
This exists because loading that library takes longer than the call.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping


class Unanswered(Exception):
    """There was no answer, or only part of one.

    Attributes:
        sent: whether the server may have had the request.
    """

    def __init__(self, why: str, *, sent: bool) -> None:
        super().__init__(why)
        self.sent = sent


async def ask(
    connection: socket.socket, method: str, target: str, headers: Mapping[str, str], content: bytes | None
) -> tuple[int, bytes]:
    """Return status and body of the answer to one request; closes the connection, also when cancelled.

    Raises Unanswered.
    """
    head = f"{method} {target} HTTP/1.0\r\nHost: localhost\r\n"
    head += "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    if content is not None:
        head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n"
    reader, writer = await asyncio.open_connection(sock=connection)
    try:
        writer.write(head.encode("ascii") + b"\r\n" + (content or b""))
        answer = await reader.read()
    except OSError as problem:
        raise Unanswered(type(problem).__name__, sent=True) from None
    finally:
        writer.close()
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
    return int(parts[1]), body
