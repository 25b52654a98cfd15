"""Client of a server, with the methods of Engine and Conversation: what works with one works with the other.

Rules of this file: no operation and no rule of its own; the methods are derived from the manifest.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, cast
from urllib.parse import quote

from blockpty.api.conversation_context import ConversationContext, output_path
from blockpty.api.progress import Progress
from blockpty.errors import BadRequest, BlockptyError, InternalError, NotFound
from blockpty.model.block import Block
from blockpty.model.events import Event
from blockpty.model.results import OpenResult, Result
from blockpty.ops.manifest import Effect, manifest_entry, offered
from blockpty.spool.layout import check_conversation_id, conversations_directory, default_home
from blockpty.surfaces import launching
from blockpty.surfaces.access import AGENT_HEADER, AGENT_LENGTH
from blockpty.surfaces.extras import require
from blockpty.surfaces.live_socket import growing
from blockpty.surfaces.operation_methods import ConversationOperations, EngineOperations
from blockpty.surfaces.private_files import owner_token, server_directory
from blockpty.surfaces.replay import RemoteReplay
from blockpty.surfaces.requesting import content_of, error_of, request_of, wire_params
from blockpty.surfaces.wire import PROGRESS_TYPE, Unanswered, ask, lost, report_last, without_progress

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import httpx2
    from websockets.asyncio.client import ClientConnection

    from blockpty.surfaces.ssh_way import SshWay

CONNECT_SECONDS: Final = 10.0
AGAIN_SECONDS: Final = 60.0
"""How long a connection over ssh that was lost is made again for what only looks."""


class Client(EngineOperations):
    """Conversations of a server; an async context manager with the methods of Engine.

    Args:
        home: the home whose server is meant, reached by its unix socket; default as in the documentation.
        url: a server elsewhere, such as https://host:7717, in place of a home; or ssh:[user@]host[:port], where
            blockpty is installed there: no token is needed then, and the server is started when there is none.
        token: what to show there; by default the owner's token of the home.
        start: start the home's server when none runs.
        certificates: file with the certificates that `url` may have, if not the system's.
        agent: name of the agent that this client works for; what it types is then an agent's, whatever the token is.

    Raises NotFound when no server answers, and whatever the operations raise. Cancelling a call lets the server drop
    it; the program in the terminal is never touched by that.
    """

    # Of every request.
    _headers: Mapping[str, str] = {}
    # After how many seconds without a word a server elsewhere counts as gone.
    _silence_seconds: ClassVar[float | None] = None

    def __init__(
        self,
        home: str | os.PathLike[str] | None = None,
        *,
        url: str | None = None,
        token: str | None = None,
        start: bool = True,
        certificates: str | None = None,
        agent: str | None = None,
    ) -> None:
        self.home = Path(home).absolute() if home is not None else default_home()
        self._url = url
        self._token = token
        self._start = start
        self._certificates = certificates
        if agent is not None:
            self._headers = {**self._headers, AGENT_HEADER: quote(agent[:AGENT_LENGTH], safe=" ")}
        self._http: httpx2.AsyncClient | None = None
        self._leaving = contextlib.ExitStack()
        self._way: SshWay | None = None
        if url is not None and url.startswith("ssh:"):
            from blockpty.surfaces.ssh_way import SshWay

            self._way = SshWay(url)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __dir__(self) -> list[str]:
        """Offer the operations and what belongs to them."""
        return offered(super().__dir__())

    async def close(self) -> None:
        """Close the connections; conversations go on in the server."""
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()
        if self._way is not None:
            await self._way.close()
        self._leaving.close()

    async def conversation(self, conversation_id: str) -> RemoteConversation:
        """Return a conversation by its name; whether there is one, the first call to it tells (NotFound)."""
        return RemoteConversation(self, check_conversation_id(conversation_id))

    def directory_of(self, conversation_id: str) -> Path:
        """Return where the files of a conversation are; raises BadRequest when they are elsewhere."""
        if self._url is not None:
            raise BadRequest("the files are on the machine of the server", hint="read(block_id=...) gives an output")
        return conversations_directory(self.home) / conversation_id

    # The one way to the server

    async def _call(self, name: str, params: Mapping[str, Any]) -> Any:
        """Return what the method of an operation returns."""
        result = await self.call(name, params)
        return RemoteConversation(self, result.conversation_id, result) if isinstance(result, OpenResult) else result

    async def call(self, name: str, params: Mapping[str, Any]) -> Result:
        """Run an operation of shape CALL; raises BlockptyError.

        Through a home's socket paths are those of the caller: `cwd` of open is by default its own directory, and
        `env_from` its own environment.
        """
        operation = manifest_entry(name)
        if operation.result is None:
            raise BadRequest(f"{name} is a stream, not a call")
        params = wire_params(name, params, here=self._url is None)
        request = (*request_of(operation, params), partial(_check, name, params))
        try:
            content = await self._ask(*request)
        except Unanswered as problem:
            # The server left or died. What was never sent, and what only looks, can be asked for again.
            if problem.sent and operation.effect is not Effect.READ:
                raise self._lost(problem) from None
            content = await self._ask_again(request)
        return operation.result.from_dict(content)

    async def _ask_again(self, request: tuple[str, str, Any, Callable[[], None]]) -> dict[str, Any]:
        """Return the answer to what was asked before in vain; over ssh for a while, until there is a connection."""
        deadline = asyncio.get_running_loop().time() + (AGAIN_SECONDS if self._way is not None else 0.0)
        for pause in growing():
            try:
                return await self._ask(*request)
            except Unanswered as problem:
                if asyncio.get_running_loop().time() + pause > deadline:
                    raise self._lost(Unanswered(str(problem), sent=False)) from None
            await asyncio.sleep(pause)
        raise AssertionError("the pauses have no end")

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
        progress = Progress.wanted()
        headers = {} if progress is None else {"Accept": PROGRESS_TYPE}
        report = None if progress is None else progress.take
        if self._url is None:
            sent = {**self._sent(), **headers}
            return content_of(*await ask(await self._connection(check), method, target, sent, body, report))
        require("server", "a client of a server elsewhere", "httpx2")
        import httpx2

        http = await self._library()
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            async with http.stream(method, target, content=body, headers=headers) as response:
                received = bytearray()
                async for piece in response.aiter_bytes():
                    received += piece
                    if report is not None:
                        report_last(received, report)
        except httpx2.HTTPError as problem:
            was_sent = not isinstance(problem, httpx2.ConnectError)
            raise Unanswered(type(problem).__name__, sent=was_sent) from None
        return content_of(response.status_code, without_progress(bytes(received)))

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

    def _sent(self) -> dict[str, str]:
        return {**self._headers, "Authorization": f"Bearer {self._shown()}"}

    def _shown(self) -> str:
        if self._token is None and self._way is not None:
            return self._way.token
        return self._token if self._token is not None else owner_token(self.home)

    async def stream(self, name: str, params: Mapping[str, Any]) -> AsyncIterator[Event]:
        """Run an operation of shape STREAM; close the iterator when done.

        Over ssh a lost connection is made again, and the next event is the one behind the last.
        """
        loop, deadline, pauses = asyncio.get_running_loop(), 0.0, growing()
        while True:
            try:
                events = self._streamed(name, params)
                async with contextlib.aclosing(cast("AsyncGenerator[Event, None]", events)):
                    async for event in events:
                        yield event
                        params, deadline, pauses = {**params, "from_seq": event.seq + 1}, 0.0, growing()
                return
            except NotFound as problem:
                # No server answers; that there is no such conversation is said by one.
                deadline = deadline or loop.time() + AGAIN_SECONDS
                if self._way is None or "server" not in problem.details or loop.time() > deadline:
                    raise
            await asyncio.sleep(next(pauses))

    async def _streamed(self, name: str, params: Mapping[str, Any]) -> AsyncIterator[Event]:
        require("server", "following events through a server", "httpx2")
        import httpx2

        http = await self._library()
        method, target, _ = request_of(manifest_entry(name), params)
        try:
            response = await http.send(http.build_request(method, target), stream=True)
            try:
                if response.status_code != 200:
                    content_of(response.status_code, await response.aread())
                async for message in httpx2.EventSource(response, max_event_size=None):
                    if message.event == "end":
                        return
                    content = json.loads(message.data)
                    if message.event == "error":
                        raise error_of(content)
                    yield Event.from_dict({key: value for key, value in content.items() if key != "conversation_id"})
            finally:
                await response.aclose()
        except httpx2.HTTPError as problem:
            # It only looks.
            raise self._lost(Unanswered(type(problem).__name__, sent=False)) from None

    async def websocket(self, target: str) -> ClientConnection:
        """Connect to a WebSocket of the server; raises what the server answers instead."""
        require("server", "a WebSocket of a server", "websockets")
        from websockets.asyncio.client import connect, unix_connect
        from websockets.exceptions import InvalidStatus, WebSocketException

        path = await self._way.open() if self._way is not None else None
        options: dict[str, Any] = {"additional_headers": self._sent(), "max_size": None, "compression": None}
        try:
            if path is not None:
                return await unix_connect(path, f"ws://localhost{target}", **options)
            if self._url is None:
                (await self._connection()).close()
                return await unix_connect(self._socket(), f"ws://localhost{target}", **options)
            if self._url.startswith("https:"):
                options["ssl"] = _trust(self._certificates)
            return await connect(f"ws{self._url.removeprefix('http').rstrip('/')}{target}", proxy=None, **options)
        except InvalidStatus as problem:
            content_of(problem.response.status_code, bytes(problem.response.body or b""))
            raise InternalError("the server has not taken the connection") from None
        except (WebSocketException, OSError) as problem:
            # It only looks.
            raise self._lost(Unanswered(type(problem).__name__, sent=False)) from None

    async def _library(self) -> httpx2.AsyncClient:
        """Return what streams use, and calls to a server elsewhere; loading it takes a while."""
        if self._url is None:
            (await self._connection()).close()
        if self._http is None:
            import httpx2

            limits = httpx2.Limits(max_connections=None, max_keepalive_connections=20)
            where: dict[str, Any] = {"verify": False}
            if self._way is not None:
                where["uds"] = await self._way.open()
            elif self._url is None:
                where["uds"] = self._socket()
            elif self._url.startswith("https:"):
                where["verify"] = _trust(self._certificates)
            # A wait takes as long as it takes; the server keeps the connection alive and ends the wait.
            self._http = httpx2.AsyncClient(
                base_url="http://localhost" if self._way is not None else self._url or "http://localhost",
                headers=self._sent(),
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
        import tempfile

        short = self._leaving.enter_context(tempfile.TemporaryDirectory(prefix="bp"))
        os.symlink(path.parent, os.path.join(short, "s"))
        return os.path.join(short, "s", launching.SOCKET_NAME)

    def _lost(self, problem: Unanswered) -> BlockptyError:
        return lost(self._url or str(self.home), problem)


class RemoteConversation(ConversationContext, ConversationOperations):
    """A conversation of a server, with the methods of Conversation. A context manager that closes it.

    Attributes:
        id, conversation_id: its name.
        opened: the result of `open`, None for one that existed.
    """

    def __init__(self, client: Client, conversation_id: str, opened: OpenResult | None = None) -> None:
        self.id = self.conversation_id = conversation_id
        self.opened = opened
        self._client = client

    def __repr__(self) -> str:
        return f"<RemoteConversation {self.id}>"

    def output_path(self, block: Block) -> Path:
        """Return the file with the output of a block that has ended; as `Conversation.output_path`.

        Raises BadRequest when the server is elsewhere, NotFound.
        """
        return output_path(self._client.directory_of(self.id), block)

    async def _call(self, name: str, params: Mapping[str, Any]) -> Result:
        return await self._client.call(name, {"conversation_id": self.id, **params})

    async def _stream(self, name: str, params: Mapping[str, Any]) -> AsyncIterator[Event]:
        async with contextlib.aclosing(
            cast("Any", self._client.stream(name, {"conversation_id": self.id, **params}))
        ) as events:
            async for event in events:
                yield event

    def replay(
        self,
        *,
        speed: float = 1.0,
        idle_limit: float | None = None,
        from_seconds: float = 0.0,
        to_seconds: float | None = None,
        from_cursor: int | None = None,
        to_cursor: int | None = None,
        block_id: str | None = None,
    ) -> RemoteReplay:
        """Return an async iterator of the moments at their recorded times; the server keeps the time."""
        params = {
            "speed": speed, "idle_limit": idle_limit, "from_seconds": from_seconds, "to_seconds": to_seconds,
            "from_cursor": from_cursor, "to_cursor": to_cursor, "block_id": block_id,
        }  # fmt: skip
        return RemoteReplay(self._client.websocket, self.id, params)


def _check(name: str, params: Mapping[str, Any]) -> None:
    from blockpty.ops.table import find

    find(name).parse(params)


def _trust(certificates: str | None) -> Any:
    import ssl

    return ssl.create_default_context(cafile=certificates)
