"""Server of one home: its sockets, its engine, start and end.

Rules of this file: the lock is taken before anything else; a file that says where the server is, is there only while it
is true; when the server goes, shells that were opened to stay run on in the host.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import json
import logging
import os
import signal
import socket
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import uvicorn

from blockpty import __version__
from blockpty.control.principals import OWNER
from blockpty.errors import BadRequest, Busy, StorageFull
from blockpty.host.protocol import socket_address
from blockpty.ops.engine import Engine
from blockpty.surfaces.http.accepting import Listening, PrivateListening, is_news
from blockpty.surfaces.http.app import application
from blockpty.surfaces.http.connection import Connection, is_worth_logging
from blockpty.surfaces.http.guard import UNIX_HOST, App
from blockpty.surfaces.http.mcp import MountedMcp
from blockpty.surfaces.http.metrics import Metrics
from blockpty.surfaces.http.page import page_address
from blockpty.surfaces.http.token_uses import TokenUses
from blockpty.surfaces.launching import LOCK_NAME, SOCKET_NAME, STATE_NAME
from blockpty.surfaces.peers import Peers
from blockpty.surfaces.private_files import open_private, server_directory, write_private
from blockpty.surfaces.settings import DEFAULT_PORT, Settings
from blockpty.surfaces.tokens import TokenBook

GRACE_SECONDS: Final = 3
_PORT_NAME: Final = "port"
_IDLE_CHECK_SECONDS: Final = 5.0
_ROOM_CHECK_SECONDS: Final = 1.0
_HOME_CHECK_SECONDS: Final = 1.0
_MAX_FRAME: Final = 4 * 1024 * 1024


async def serve(home: Path, settings: Settings, ready: Callable[[dict[str, Any]], None]) -> None:
    """Serve a home until it is stopped.

    `ready` is called once, with what server.json says and `page`: an address that signs a browser in within a minute.

    Raises Busy (a server runs already) and BadRequest (the address cannot be used).
    """
    directory = server_directory(home)
    lock = open_private(directory / LOCK_NAME, os.O_RDWR)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Busy(f"a server runs in {home} already", hint="blockpty serve --stop ends it") from None
        await _serve(home, directory, settings, ready)
    finally:
        os.close(lock)


async def _serve(
    home: Path, directory: Path, settings: Settings, ready: Callable[[dict[str, Any]], None]
) -> None:
    tcp = _bind_tcp(settings, directory)
    with contextlib.ExitStack() as leaving:
        leaving.callback(tcp.close)
        unix = leaving.enter_context(_bound_unix(directory))
        port = tcp.getsockname()[1]
        if settings.port != 0:
            # Without it the next server may have another port; a full disk is no reason not to serve.
            with contextlib.suppress(StorageFull, OSError):
                write_private(directory / _PORT_NAME, b"%d\n" % port)
        scheme = "https" if settings.tls_certificate else "http"
        name = f"[{settings.host}]" if ":" in settings.host else settings.host
        url = f"{scheme}://{name}:{port}"
        state = {"pid": os.getpid(), "url": url, "version": __version__}
        hosts, origins = _names(settings, port, scheme)
        metrics = Metrics()
        async with Engine(
            home, session_limit=settings.session_limit, persist=True, durability=settings.durability,
            redact=settings.redact, allow_uncovered=settings.allow_uncovered,
            process_limit=settings.process_limit, shell_nice=settings.shell_nice,
            idle_timeout_seconds=settings.idle_timeout_seconds or None,
            keep_days=settings.keep_days or None, keep_total_mb=settings.keep_total_mb or None,
            keep_conversation_mb=settings.keep_conversation_mb or None,
        ) as engine:  # fmt: skip
            engine.home_search.start()
            peers = Peers(home)
            mcp = MountedMcp(engine, hosts=hosts | {UNIX_HOST}, origins=origins, elsewhere=peers)
            tokens = TokenBook(home)
            app = application(
                engine, tokens, metrics, hosts=hosts, origins=origins, frames=settings.allowed_frames, mcp=mcp,
                elsewhere=peers, stop=lambda: leave(), entered=TokenUses(engine.audit_log),
            )  # fmt: skip
            plain = _SocketServer(app, settings, tls=False)
            listeners = [(plain, unix), (_SocketServer(app, settings, tls=bool(settings.tls_certificate)), tcp)]
            for listener, _ in listeners:
                listener.peers = [one for one, _ in listeners]

            def leave() -> None:
                mcp.end_streams()
                plain.leave()

            own = _home_of(home)
            leaving.callback(_forget, home, own, directory / STATE_NAME)
            said = asyncio.ensure_future(_say_where(directory / STATE_NAME, json.dumps(state).encode() + b"\n"))
            # It is there, or waits for room, before `ready` is called.
            await asyncio.sleep(0)
            loop = asyncio.get_running_loop()
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, leave)
            idle = asyncio.ensure_future(leave_when_idle(engine, metrics, settings.idle_exit_seconds, leave))
            watching = asyncio.ensure_future(_leave_when_moved(home, own, leave))
            # Both sockets listen by now: who connects is kept waiting, not refused.
            code = tokens.make_code(OWNER, time.time())
            ready({**state, "page": page_address(url, code)})
            try:
                await asyncio.gather(*(listener.serve(sockets=[bound]) for listener, bound in listeners))
            finally:
                idle.cancel()
                watching.cancel()
                said.cancel()
                await mcp.close()
                await peers.close()


class _SocketServer(uvicorn.Server):
    """uvicorn on one socket; both stop together."""

    def __init__(self, app: App, settings: Settings, *, tls: bool) -> None:
        self.peers: list[_SocketServer] = [self]
        # No compression: it costs more than a near network, hides how far a slow viewer has fallen back, and the size
        # of what is sent would tell what a secret beside known text may be.
        config: Any = uvicorn.Config(
            app, loop="asyncio", http=Connection, lifespan="off",
            ws="websockets-sansio", ws_max_size=_MAX_FRAME, ws_per_message_deflate=False,
            log_level="warning", access_log=False, server_header=False, date_header=False, proxy_headers=False,
            timeout_graceful_shutdown=GRACE_SECONDS, timeout_keep_alive=30,
            ssl_certfile=settings.tls_certificate if tls else None, ssl_keyfile=settings.tls_key if tls else None,
        )  # fmt: skip
        logging.getLogger("uvicorn.error").addFilter(is_worth_logging)
        logging.getLogger("asyncio").addFilter(is_news)
        try:
            config.load()
        except OSError as problem:  # SSLError is one
            raise BadRequest(
                f"tls_certificate {settings.tls_certificate} with tls_key {settings.tls_key} cannot be used: "
                f"{problem.strerror or problem}",
                hint="both are PEM files, and the key is that of the certificate",
            ) from None
        super().__init__(config)

    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        """Leave signals alone; `_serve` has them."""
        yield

    def leave(self) -> None:
        """Stop, with the other listeners."""
        for one in self.peers:
            one.should_exit = True


async def _say_where(path: Path, content: bytes) -> None:
    """Write where the server is; on a full disk it serves all the same, and this is done when there is room."""
    # What is there is of a server that is gone.
    path.unlink(missing_ok=True)
    while True:
        with contextlib.suppress(StorageFull):
            write_private(path, content)
            return
        await asyncio.sleep(_ROOM_CHECK_SECONDS)


def _home_of(home: Path) -> tuple[int, int] | None:
    """Return what tells a home from another one at its path."""
    try:
        found = home.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _forget(home: Path, own: tuple[int, int] | None, state: Path) -> None:
    if _home_of(home) == own:
        state.unlink(missing_ok=True)


async def _leave_when_moved(home: Path, own: tuple[int, int] | None, leave: Callable[[], None]) -> None:
    """Leave when another home, or none, is at the path: its tokens and records are not ours to serve."""
    while _home_of(home) == own:  # noqa: ASYNC110  (a directory tells nothing)
        await asyncio.sleep(_HOME_CHECK_SECONDS)
    logging.getLogger(__name__).warning("%s was moved or removed; its server leaves", home)
    leave()


async def leave_when_idle(
    engine: Engine, metrics: Metrics, seconds: int, leave: Callable[[], None], *,
    clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> None:  # fmt: skip
    """Leave when no shell has been open and no request has come for so many seconds; 0: never."""
    while seconds:
        await sleep(min(_IDLE_CHECK_SECONDS, seconds))
        if metrics.in_flight or metrics.subscribers or await engine.live():
            metrics.last_activity = clock()
        elif clock() - metrics.last_activity >= seconds:
            leave()
            return


def _bind_tcp(settings: Settings, directory: Path) -> socket.socket:
    """Listen on the port that is set; without one on that of the last time, so that addresses stay what they were."""
    last = _last_port(directory) if settings.port is None else None
    if last is not None:
        with contextlib.suppress(OSError):
            return _listening(settings.host, last)
    wanted = DEFAULT_PORT if settings.port is None else settings.port
    try:
        return _listening(settings.host, wanted)
    except OSError as problem:
        if settings.port is None and problem.errno == errno.EADDRINUSE:
            return _listening(settings.host, 0)
        raise BadRequest(
            f"cannot listen on {settings.host} port {wanted}: {problem.strerror or problem}",
            hint="choose another --port; 0 takes any free one",
        ) from None


def _last_port(directory: Path) -> int | None:
    try:
        port = int((directory / _PORT_NAME).read_bytes()[:6])
    except (OSError, ValueError):
        return None
    return port if 0 < port < 1 << 16 else None


def _listening(host: str, port: int) -> socket.socket:
    family, kind, number, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    bound = Listening(family, kind, number)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(128)
    except OSError:
        bound.close()
        raise
    return bound


@contextlib.contextmanager
def _bound_unix(directory: Path) -> Any:
    """Give the listening unix socket; its file is there as long as it listens."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    bound = PrivateListening(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # We hold the lock, so the server that made this file is gone.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(SOCKET_NAME, dir_fd=descriptor)
        before = os.umask(0o177)
        try:
            with socket_address(descriptor, SOCKET_NAME) as address:
                bound.bind(address)
        finally:
            os.umask(before)
        bound.listen(128)
        yield bound
    finally:
        bound.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(SOCKET_NAME, dir_fd=descriptor)
        os.close(descriptor)


def _names(settings: Settings, port: int, scheme: str) -> tuple[set[str], set[str]]:
    """Return the Host and Origin values that are ours."""
    usual = 443 if scheme == "https" else 80
    names = {"127.0.0.1", "localhost", "[::1]"}
    hosts = {f"{name}:{port}" for name in names}
    if port == usual:
        hosts |= names
    for name in settings.allowed_hosts:
        hosts |= {name, f"{name}:{port}"}
    origins = {f"{scheme}://{name}:{port}" for name in names} | set(settings.allowed_origins)
    if port == usual:
        origins |= {f"{scheme}://{name}" for name in names}
    return hosts, origins
