"""A client of a server, with the methods of Engine and Conversation: what works with one works with the other.

Rules of this file: no parameter and no rule of its own; a method hands its parameters to the operation of its name.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, cast
from urllib.parse import quote, urlencode

from blockpty.errors import BadRequest, BlockptyError, InternalError, NotFound, error_from_code
from blockpty.model.events import Event
from blockpty.model.results import (
    ArchiveResult,
    ImportResult,
    ListResult,
    OpenResult,
    OverviewResult,
    PruneResult,
    RepairResult,
    Result,
    SealResult,
    SearchResult,
    VerifyResult,
)
from blockpty.ops.kinds import Effect
from blockpty.ops.outline import Outline, outline
from blockpty.spool.layout import check_conversation_id, default_home
from blockpty.surfaces import launching
from blockpty.surfaces.remote import RemoteConversation
from blockpty.surfaces.tokens import owner_token, server_directory
from blockpty.surfaces.wire import Unanswered, ask

if TYPE_CHECKING:
    import httpx2
    from websockets.asyncio.client import ClientConnection

CONNECT_SECONDS: Final = 10.0


class Client:
    """Conversations of a server; an async context manager with the methods of Engine.

    Args:
        home: the home whose server is meant, reached by its unix socket; default as in the documentation.
        url: a server elsewhere, such as https://host:7717, in place of a home.
        token: what to show there; by default the owner's token of the home.
        start: start the home's server when none runs.
        certificates: file with the certificates that `url` may have, if not the system's.

    Raises NotFound when no server answers, and whatever the operations raise. Cancelling a call lets the server drop
    it; the program in the terminal is never touched by that.
    """

    # Of requests to a server elsewhere, and after how many seconds without a word from it it counts as gone.
    _headers: ClassVar[Mapping[str, str]] = {}
    _silence_seconds: ClassVar[float | None] = None

    def __init__(
        self,
        home: str | os.PathLike[str] | None = None,
        *,
        url: str | None = None,
        token: str | None = None,
        start: bool = True,
        certificates: str | None = None,
    ) -> None:
        self.home = Path(home).absolute() if home is not None else default_home()
        self._url = url
        self._token = token
        self._start = start
        self._certificates = certificates
        self._http: httpx2.AsyncClient | None = None
        self._leaving = contextlib.ExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections; conversations go on in the server."""
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()
        self._leaving.close()

    # What Engine has

    async def open(
        self,
        conversation_id: str | None = None,
        *,
        shell: str | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        cols: int = 80,
        rows: int = 24,
        login: bool = False,
        persist: bool | None = None,
        answers: bool = True,
        timeout_ms: int = 30000,
    ) -> RemoteConversation:
        """Start a shell and wait for its prompt, as `Engine.open` does.

        Through a home's socket `cwd` is by default the caller's own directory; a server elsewhere chooses one.
        """
        params = {
            "conversation_id": conversation_id, "shell": shell, "cwd": cwd, "env": None if env is None else dict(env),
            "cols": cols, "rows": rows, "login": login, "persist": persist, "answers": answers,
            "timeout_ms": timeout_ms,
        }  # fmt: skip
        opened = cast("OpenResult", await self.call("open", params))
        return RemoteConversation(self, opened.conversation_id, opened)

    async def list(self, filter: str | None = None) -> ListResult:
        """Return the conversations of the server's home that this token may see, newest first."""
        return cast("ListResult", await self.call("list", {"filter": filter}))

    async def archive(self, conversation_id: str | None = None, *, keep_days: int = 0) -> ArchiveResult:
        """Ship the streams of ended conversations, as `Engine.archive` does."""
        params = {"conversation_id": conversation_id, "keep_days": keep_days}
        return cast("ArchiveResult", await self.call("archive", params))

    async def verify(self, conversation_id: str, *, key: str | None = None) -> VerifyResult:
        """Compare the files of a conversation with its record, as `Engine.verify` does."""
        return cast("VerifyResult", await self.call("verify", {"conversation_id": conversation_id, "key": key}))

    async def repair(self, conversation_id: str, *, key: str | None = None) -> RepairResult:
        """Derive everything of a conversation again, as `Engine.repair` does."""
        return cast("RepairResult", await self.call("repair", {"conversation_id": conversation_id, "key": key}))

    async def seal(self, conversation_id: str, key: str) -> SealResult:
        """Have a conversation's record sealed with a key, as `Engine.seal` does."""
        return cast("SealResult", await self.call("seal", {"conversation_id": conversation_id, "key": key}))

    async def prune(self, *, keep_days: int | None = None, keep_total_mb: int | None = None) -> PruneResult:
        """Delete ended conversations, as `Engine.prune` does."""
        params = {"keep_days": keep_days, "keep_total_mb": keep_total_mb}
        return cast("PruneResult", await self.call("prune", params))

    async def search(
        self,
        query: str,
        *,
        mode: str = "substring",
        ignore_case: bool | None = None,
        conversation_id: str | None = None,
        cwd: str | None = None,
        exit_status: int | None = None,
        failed: bool | None = None,
        since: int | None = None,
        until: int | None = None,
        min_duration_ms: int | None = None,
        author: str | None = None,
        kind: str | None = None,
        part: str = "any",
        per_block: bool = False,
        page: str | None = None,
        page_size: int = 100,
        timeout_ms: int = 2000,
    ) -> SearchResult:
        """Search the output and commands of all conversations of the server's home, as `Engine.search` does."""
        params = {
            "query": query, "mode": mode, "ignore_case": ignore_case, "conversation_id": conversation_id, "cwd": cwd,
            "exit_status": exit_status, "failed": failed, "since": since, "until": until,
            "min_duration_ms": min_duration_ms, "author": author, "kind": kind, "part": part, "per_block": per_block,
            "page": page, "page_size": page_size, "timeout_ms": timeout_ms,
        }  # fmt: skip
        return cast("SearchResult", await self.call("search", params))

    async def overview(
        self,
        *,
        conversations: int = 20,
        blocks: int = 50,
        conversation_id: str | None = None,
        failed: bool | None = None,
        before: int | None = None,
    ) -> OverviewResult:
        """Return what the server's home has done, as `Engine.overview` does."""
        params = {
            "conversations": conversations, "blocks": blocks, "conversation_id": conversation_id, "failed": failed,
            "before": before,
        }  # fmt: skip
        return cast("OverviewResult", await self.call("overview", params))

    async def conversation(self, conversation_id: str) -> RemoteConversation:
        """Return a conversation by its name; whether there is one, the first call to it tells (NotFound)."""
        return RemoteConversation(self, check_conversation_id(conversation_id))

    async def import_recording(
        self,
        path: str | os.PathLike[str],
        conversation_id: str | None = None,
        *,
        timing: str | os.PathLike[str] | None = None,
    ) -> ImportResult:
        """Make a conversation of a recording; the files are those of the server's machine."""
        paths = [None if one is None else os.fspath(one) for one in (path, timing)]
        if self._url is None:
            paths = [None if one is None else os.path.abspath(one) for one in paths]
        params = {"path": paths[0], "conversation_id": conversation_id, "timing": paths[1]}
        return cast("ImportResult", await self.call("import_recording", params))

    # The one way to the server

    async def call(self, name: str, params: Mapping[str, Any]) -> Result:
        """Run an operation of shape CALL; raises BlockptyError."""
        operation = outline(name)
        if operation.result is None:
            raise BadRequest(f"{name} is a stream, not a call")
        if name == "open" and self._url is None and params.get("cwd") is None:
            params = {**params, "cwd": os.getcwd()}
        request = (*_request(operation, params), partial(_check, name, params))
        try:
            content = await self._ask(*request)
        except Unanswered as problem:
            # The server left or died. What was never sent, and what only looks, can be asked for again.
            if problem.sent and operation.effect is not Effect.READ:
                raise self._lost(problem) from None
            try:
                content = await self._ask(*request)
            except Unanswered as again:
                raise self._lost(again) from None
        return operation.result.from_dict(content)

    async def post(self, path: str, content: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Ask for something of the server that is no operation; raises BlockptyError."""
        try:
            return await self._ask("POST", path, dict(content or {}))
        except Unanswered as problem:
            raise self._lost(problem) from None

    async def _ask(
        self, method: str, target: str, content: Mapping[str, Any] | None, check: Callable[[], None] | None = None
    ) -> dict[str, Any]:
        """Return the content of the answer; raises BlockptyError and Unanswered."""
        body = None if content is None else json.dumps(content).encode()
        if self._url is None:
            return _content(*await ask(await self._connection(check), method, target, self._shown(), body))
        import httpx2

        http = await self._library()
        headers = {"Content-Type": "application/json"} if body is not None else None
        try:
            response = await http.request(method, target, content=body, headers=headers)
        except httpx2.HTTPError as problem:
            sent = not isinstance(problem, httpx2.ConnectError)
            raise Unanswered(type(problem).__name__, sent=sent) from None
        return _content(response.status_code, response.content)

    async def _connection(self, check: Callable[[], None] | None = None) -> socket.socket:
        """Return a connection to the home's server, which is started when there is none and it may be.

        `check` raises what will be refused anyway: no home is made and no server started for that.
        """
        found = launching.connect(self.home)
        if found is None and self._start:
            if check is not None:
                check()
            await asyncio.to_thread(launching.start, self.home)
            found = launching.connect(self.home)
        if found is None:
            raise NotFound(f"no server runs in {self.home}", hint="blockpty serve starts one")
        return found

    def _shown(self) -> str:
        return self._token if self._token is not None else owner_token(self.home)

    async def stream(self, name: str, params: Mapping[str, Any]) -> AsyncIterator[Event]:
        """Run an operation of shape STREAM; close the iterator when done."""
        import httpx2

        http = await self._library()
        method, target, _ = _request(outline(name), params)
        try:
            response = await http.send(http.build_request(method, target), stream=True)
            try:
                if response.status_code != 200:
                    _content(response.status_code, await response.aread())
                async for message in httpx2.EventSource(response, max_event_size=None):
                    if message.event == "end":
                        return
                    content = json.loads(message.data)
                    if message.event == "error":
                        raise _error(content)
                    yield Event.from_dict({key: value for key, value in content.items() if key != "conversation_id"})
            finally:
                await response.aclose()
        except httpx2.HTTPError as problem:
            raise self._lost(Unanswered(type(problem).__name__, sent=True)) from None

    async def websocket(self, target: str) -> ClientConnection:
        """Connect to a WebSocket of the server; raises what the server answers instead."""
        from websockets.asyncio.client import connect, unix_connect
        from websockets.exceptions import InvalidStatus, WebSocketException

        headers = {**self._headers, "Authorization": f"Bearer {self._shown()}"}
        options: dict[str, Any] = {"additional_headers": headers, "max_size": None, "compression": None}
        try:
            if self._url is None:
                (await self._connection()).close()
                return await unix_connect(self._socket(), f"ws://localhost{target}", **options)
            if self._url.startswith("https:"):
                options["ssl"] = _trust(self._certificates)
            return await connect(f"ws{self._url.removeprefix('http').rstrip('/')}{target}", proxy=None, **options)
        except InvalidStatus as problem:
            _content(problem.response.status_code, bytes(problem.response.body or b""))
            raise InternalError("the server has not taken the connection") from None
        except (WebSocketException, OSError) as problem:
            raise self._lost(Unanswered(type(problem).__name__, sent=True)) from None

    async def _library(self) -> httpx2.AsyncClient:
        """Return what streams use, and calls to a server elsewhere; loading it takes a while."""
        if self._url is None:
            (await self._connection()).close()
        if self._http is None:
            import httpx2

            limits = httpx2.Limits(max_connections=None, max_keepalive_connections=20)
            where: dict[str, Any] = {"verify": False}
            if self._url is None:
                where["uds"] = self._socket()
            elif self._url.startswith("https:"):
                where["verify"] = _trust(self._certificates)
            # A wait takes as long as it takes; the server keeps the connection alive and ends the wait.
            self._http = httpx2.AsyncClient(
                base_url=self._url or "http://localhost",
                headers={**self._headers, "Authorization": f"Bearer {self._shown()}"},
                transport=httpx2.AsyncHTTPTransport(trust_env=False, limits=limits, **where),
                timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS, read=self._silence_seconds),
                trust_env=False,
            )
        return self._http

    def _socket(self) -> str:
        """Return a path of the socket that is short enough to connect to, valid until `close`."""
        path = server_directory(self.home) / launching.SOCKET_NAME
        if len(os.fsencode(path)) < 100:
            return str(path)
        if sys.platform == "linux":
            directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            self._leaving.callback(os.close, directory)
            return f"/proc/self/fd/{directory}/{launching.SOCKET_NAME}"
        short = self._leaving.enter_context(tempfile.TemporaryDirectory(prefix="bp"))
        os.symlink(path.parent, os.path.join(short, "s"))
        return os.path.join(short, "s", launching.SOCKET_NAME)

    def _lost(self, problem: Unanswered) -> BlockptyError:
        where = self._url or str(self.home)
        return NotFound(
            f"no server answers at {where}: {problem}", hint="blockpty serve starts one", details={"server": where}
        )


def _request(operation: Outline, params: Mapping[str, Any]) -> tuple[str, str, Mapping[str, Any] | None]:
    """Return method, target and JSON body of the request for these parameters."""
    method, path = operation.route
    rest = dict(params)
    for name in operation.positional:
        if f"{{{name}}}" in path:
            # Refused by the server if it is no name; quoted so that it stays one part of the path.
            path = path.replace(f"{{{name}}}", _part(rest.pop(name, "")))
    if method != "GET":
        return method, path, rest
    query = {name: _text(value) for name, value in rest.items() if value is not None}
    # Half a character is for the server to refuse, as the engine does.
    return method, f"{path}?{urlencode(query, errors='surrogatepass')}" if query else path, None


def _part(value: Any) -> str:
    """Return a value as one part of a path, whatever stands in it."""
    part = quote(str(value), safe="", errors="surrogatepass") or "-"
    # What parts of only dots mean, a URL library would do before it asks.
    return part.replace(".", "%2E") if part in (".", "..") else part


def _check(name: str, params: Mapping[str, Any]) -> None:
    from blockpty.ops.table import find

    find(name).parse(params)


def _trust(certificates: str | None) -> Any:
    import ssl

    return ssl.create_default_context(cafile=certificates)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _content(status: int, body: bytes) -> dict[str, Any]:
    try:
        content: Any = json.loads(body)
    except ValueError:
        if status == 200:
            # Begun as a long answer, and never ended.
            raise Unanswered("half an answer", sent=True) from None
        content = None
    if not isinstance(content, dict):
        raise InternalError(f"the answer (status {status}) is not one of a blockpty server")
    if content.get("ok") is not True:
        raise _error(content)
    return content


def _error(content: Mapping[str, Any]) -> BlockptyError:
    error = content.get("error", {})
    return error_from_code(
        str(error.get("code")), str(error.get("message")), str(error.get("hint", "")), error.get("details")
    )
