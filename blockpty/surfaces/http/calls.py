"""ASGI endpoint of one operation of shape CALL: parameters in, one JSON object out.

A call that lasts is answered in time all the same: after `KEEP_ALIVE_SECONDS` the status line goes out, then a space
now and again, which JSON allows before a value, so that no proxy takes the connection for dead. The status is 200
then; whether it went well stands in `ok`, as always. When the client goes away, a call that waits, reads or gives input
is cancelled, which never touches the program; one that begins or ends a shell is finished.

A caller that accepts `application/x-ndjson` gets lines while a long operation works, such as
`{"progress": {"what": "verify", "done": 1048576, "total": 4194304}}`, and the answer as the last line.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import sys
import traceback
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

from blockpty.api.progress import Progress
from blockpty.errors import BadRequest, BlockptyError, InternalError, NotFound
from blockpty.ops.operation import Effect, Operation
from blockpty.runtime.shell_start import no_descriptors
from blockpty.surfaces.access import Caller, PeerForwarder
from blockpty.surfaces.faults import status_of
from blockpty.surfaces.http.guard import Receive, Scope, Send, refuse
from blockpty.surfaces.http.metrics import Metrics
from blockpty.surfaces.peers import FORWARDED
from blockpty.surfaces.wire import PROGRESS_TYPE, progress_line

KEEP_ALIVE_SECONDS: Final = 10.0
PROGRESS_SECONDS: Final = 0.25
# Neither begins nor ends a shell, and leaves nothing when it is cancelled.
_STOPPED: Final = frozenset({"import_recording"})
# As a client says it of a server that is gone.
_STOPS: Final = NotFound(
    "the server stops, and this call had not ended", hint="blockpty serve starts one; the shells run on"
)
_JSON: Final = (b"content-type", b"application/json")
_LINES: Final = (b"content-type", PROGRESS_TYPE.encode())


class ClientGone(Exception):
    """The client went away before its request was whole; there is nothing to answer."""


class CallEndpoint:
    """Endpoint of a route of the table."""

    def __init__(
        self, operation: Operation, engine: Any, metrics: Metrics, elsewhere: PeerForwarder | None = None
    ) -> None:
        self._operation = operation
        self._engine = engine
        self._metrics = metrics
        self._elsewhere = elsewhere

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        operation = self._operation
        try:
            params = await parameters(operation, scope, receive)
        except BlockptyError as error:
            self._metrics.calls.labels(operation.name, error.code).inc()
            await refuse(scope, receive, send, error)
            return
        except ClientGone:
            return
        caller = Caller(self._engine, scope["state"]["principal"], not_forwarded(scope, self._elsewhere))
        progress = Progress() if _accepts_lines(scope) else None
        with progress or contextlib.nullcontext():
            task = asyncio.ensure_future(self._call(caller, params))
        gone = asyncio.ensure_future(disconnected(receive))
        try:
            await self._answer(task, gone, send, progress)
        finally:
            gone.cancel()
            if operation.effect is not Effect.LIFECYCLE or operation.name in _STOPPED:
                task.cancel()
            await asyncio.wait((task, gone))

    async def _call(self, caller: Caller, params: Mapping[str, Any]) -> tuple[int, bytes]:
        try:
            with self._metrics.call(self._operation.name):
                result = await caller.call(self._operation.name, params)
            return 200, json.dumps(result.to_dict()).encode()
        except BlockptyError as error:
            return status_of(error), json.dumps(error.to_dict()).encode()
        except Exception as problem:  # noqa: BLE001  (a defect has the one error shape too; its trace goes to the log)
            return 500, json.dumps(defect(problem).to_dict()).encode()

    async def _answer(
        self, task: asyncio.Future[tuple[int, bytes]], gone: asyncio.Future[None], send: Send, progress: Progress | None
    ) -> None:
        late, said, silent = False, 0, 0.0
        seconds = KEEP_ALIVE_SECONDS if progress is None else PROGRESS_SECONDS
        try:
            while True:
                await asyncio.wait((task, gone), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
                if task.done() or gone.done():
                    break
                silent += seconds
                if progress is not None and progress.done > said:
                    said, line = progress.done, progress_line(progress.to_dict())
                elif silent < KEEP_ALIVE_SECONDS:
                    continue
                else:
                    line = b" "
                silent = 0.0
                if not late:
                    headers = [_JSON if progress is None else _LINES]
                    await send({"type": "http.response.start", "status": 200, "headers": headers})
                    late = True
                await send({"type": "http.response.body", "body": line, "more_body": True})
        except asyncio.CancelledError:
            # The server stops, and this has not ended in the time that it gives: the caller gets an error, and no trace
            # in the log would help with that.
            status, body = 503, json.dumps(_STOPS.to_dict()).encode()
        else:
            if not task.done():
                return
            status, body = task.result()
        if not late:
            headers = [_JSON, (b"content-length", str(len(body)).encode())]
            await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def _accepts_lines(scope: Scope) -> bool:
    return any(key == b"accept" and PROGRESS_TYPE.encode() in value for key, value in scope["headers"])


def not_forwarded(scope: Scope, elsewhere: PeerForwarder | None) -> PeerForwarder | None:
    """Return what forwards a request; None when it has been forwarded already."""
    name = FORWARDED.lower().encode()
    return None if any(key == name for key, _ in scope["headers"]) else elsewhere


def defect(problem: Exception) -> BlockptyError:
    """Return the error for a defect of ours, and write its trace to the log; want of descriptors is no defect."""
    if isinstance(problem, OSError) and problem.errno in (errno.EMFILE, errno.ENFILE):
        return no_descriptors()
    traceback.print_exception(problem, file=sys.stderr)
    return InternalError(f"{type(problem).__name__} while answering", hint="please report it; the log has more")


async def disconnected(receive: Receive) -> None:
    """Return when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def parameters(operation: Operation, scope: Scope, receive: Receive) -> dict[str, Any]:
    """Return the parameters of a request: from the path, and from the query (GET) or the body.

    Raises BadRequest, and ClientGone when the client goes away in the middle.
    """
    path: dict[str, Any] = scope.get("path_params", {})
    if operation.route[0] == "GET":
        given: dict[str, Any] = {**query(scope)}
    else:
        if scope["query_string"]:
            raise BadRequest(f"{operation.name} takes its parameters in the body, as JSON, not in the query")
        given = await body(receive)
    for name in path:
        if name in given:
            raise BadRequest(f"{name} stands in the path and must not be given again")
    if operation.route[0] == "GET":
        # Text becomes what the parameter is; the model itself takes no "5" for a number.
        return operation.parse_text({**path, **given}).model_dump()
    return {**path, **given}


def query(scope: Scope) -> dict[str, str]:
    """Return the query's parameters; raises BadRequest for one that is given twice or is no UTF-8."""
    try:
        pairs = parse_qsl(scope["query_string"].decode("ascii"), keep_blank_values=True, errors="strict")
    except ValueError:
        raise BadRequest("the query is not URL-encoded UTF-8") from None
    found = dict(pairs)
    if len(found) != len(pairs):
        raise BadRequest("a parameter stands in the query more than once")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        # Which one counts is up to each parser; what was checked must be what is done.
        raise BadRequest("a name stands in one JSON object more than once")
    return found


async def body(receive: Receive) -> dict[str, Any]:
    """Return the JSON object of a body, {} when it is empty."""
    parts = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        parts.append(message.get("body", b""))
        if not message.get("more_body", False):
            break
    content = b"".join(parts)
    if not content.strip():
        return {}
    try:
        found = json.loads(content, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise BadRequest("the body is not JSON in UTF-8") from None
    if not isinstance(found, dict):
        raise BadRequest("the body must be a JSON object with the parameters")
    return found
