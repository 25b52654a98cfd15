"""ASGI endpoint for the bytes of a span of the stream: what `read` answers, without JSON around it.

    GET /v1/conversations/{conversation_id}/stream?from=731904&to=994048&view=raw

With the view `raw` (the default) the body is application/octet-stream: exactly the bytes from one cursor to the other,
redacted, which keeps their number. With `text` it is a text file, to be saved. An answer has at most 1 MiB; the header
`Blockpty-Cursor` says where the next one begins, and `Blockpty-Eof` whether nothing follows it, as in the result of
`read`. `Blockpty-Truncated-Before` is the first cursor that is kept, where the span begins before it.
"""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Mapping
from typing import Any, Final, cast

from blockpty.errors import BadRequest, BlockptyError
from blockpty.model.results import ReadResult
from blockpty.surfaces.access import Caller, PeerForwarder
from blockpty.surfaces.http.calls import defect, disconnected, not_forwarded, query
from blockpty.surfaces.http.guard import Receive, Scope, Send, refuse
from blockpty.surfaces.http.metrics import Metrics

MAX_SPAN: Final = 1024 * 1024
_PARAMETERS: Final = ("from", "to", "view")
_CURSOR: Final = re.compile("[0-9]{1,16}")
_TYPES: Final[Mapping[str, tuple[str, str]]] = {
    "raw": ("application/octet-stream", "bin"),
    "text": ("text/plain; charset=utf-8", "txt"),
}


class SpanEndpoint:
    """The bytes of a conversation's stream."""

    def __init__(self, engine: Any, metrics: Metrics, elsewhere: PeerForwarder | None = None) -> None:
        self._engine = engine
        self._metrics = metrics
        self._elsewhere = elsewhere

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            params = _asked(scope)
        except BlockptyError as error:
            await refuse(scope, receive, send, error)
            return
        caller = Caller(self._engine, scope["state"]["principal"], not_forwarded(scope, self._elsewhere))
        task = asyncio.ensure_future(self._read(caller, params))
        gone = asyncio.ensure_future(disconnected(receive))
        try:
            # Who goes away ends the read.
            await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                await self._answer(task, params, scope, receive, send)
        finally:
            for one in (task, gone):
                one.cancel()
            await asyncio.wait((task, gone))

    async def _read(self, caller: Caller, params: Mapping[str, Any]) -> ReadResult:
        with self._metrics.call("read"):
            return cast("ReadResult", await caller.call("read", params))

    async def _answer(
        self, task: asyncio.Future[ReadResult], params: Mapping[str, Any], scope: Scope, receive: Receive, send: Send
    ) -> None:
        try:
            result = task.result()
        except BlockptyError as error:
            await refuse(scope, receive, send, error)
            return
        except Exception as problem:  # noqa: BLE001  (a defect has the one error shape too; its trace goes to the log)
            await refuse(scope, receive, send, defect(problem))
            return
        body = result.data.encode() if result.data_b64 is None else base64.b64decode(result.data_b64)
        media_type, suffix = _TYPES[params["view"]]
        # A conversation's name has no character that ends a file name or a header.
        name = f"{params['conversation_id']}-{params['from_cursor']}-{result.cursor}.{suffix}"
        headers = {
            "content-type": media_type,
            "content-length": str(len(body)),
            "content-disposition": f'attachment; filename="{name}"',
            "blockpty-cursor": str(result.cursor),
            "blockpty-eof": "true" if result.eof else "false",
        }
        if result.truncated_before is not None:
            headers["blockpty-truncated-before"] = str(result.truncated_before)
        encoded = [(key.encode(), value.encode()) for key, value in headers.items()]
        await send({"type": "http.response.start", "status": 200, "headers": encoded})
        await send({"type": "http.response.body", "body": body})


def _asked(scope: Scope) -> dict[str, Any]:
    """Return the parameters of `read`; raises BadRequest."""
    given = query(scope)
    for name in given:
        if name not in _PARAMETERS:
            raise BadRequest(
                f"stream has no parameter {name[:40]!r}", hint=f"the parameters are {', '.join(_PARAMETERS)}"
            )
    for name in ("from", "to"):
        if name in given and not _CURSOR.fullmatch(given[name]):
            raise BadRequest(f"stream: {name}: must be a whole number", hint="a cursor, as results give it")
    view = given.get("view", "raw")
    if view not in _TYPES:
        raise BadRequest(f"stream: view: must be one of {', '.join(_TYPES)}", hint="read has the other views")
    return {
        "conversation_id": scope["path_params"]["conversation_id"],
        "from_cursor": int(given.get("from", "0")),
        "to_cursor": int(given["to"]) if "to" in given else None,
        "max_bytes": MAX_SPAN,
        "view": view,
    }
