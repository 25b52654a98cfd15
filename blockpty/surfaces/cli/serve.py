"""Command `blockpty serve`: the server of a home, in the foreground or started and stopped in the background."""

from __future__ import annotations

import gc
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from blockpty.surfaces.cli.invocation import Invocation

_DOC = """Serve the conversations of this home over HTTP, WebSocket, MCP and a unix socket.

Other commands start a server when they need one, which leaves again when nothing is left to do; this one stays until
Ctrl-C. Settings come from these options, then from BLOCKPTY_* variables, then from config.toml in the home.
"""


def command() -> click.Command:
    """Return the command."""
    from blockpty.host.protocol import DURABILITIES
    from blockpty.surfaces.cli.invocation import anywhere

    flag: Any = {"is_flag": True, "default": None}
    return click.Command(
        "serve",
        params=[
            click.Option(["--host"], help="Address to listen on. [default: 127.0.0.1]"),
            click.Option(["--port"], type=click.INT, help="TCP port; 0: any free one. [default: 7717, or a free one]"),
            click.Option(["--allowed-host", "allowed_hosts"], multiple=True, help="A further name in the Host header."),
            click.Option(
                ["--allowed-origin", "allowed_origins"], multiple=True, help="Origin of a web page that may call."
            ),
            click.Option(
                ["--allowed-frame", "allowed_frames"], multiple=True, help="Origin of a page that may frame /embed/."
            ),
            click.Option(["--tls-certificate"], metavar="FILE", help="PEM file; needed to listen beyond loopback."),
            click.Option(["--tls-key"], metavar="FILE", help="PEM file with its key."),
            click.Option(["--behind-proxy"], help="A proxy in front of the server does TLS.", **flag),
            click.Option(
                ["--durability"], type=click.Choice(DURABILITIES), help="What power loss may cost. [default: interval]"
            ),
            click.Option(["--redact/--no-redact"], default=None, help="Redact secrets in all output. [default: yes]"),
            click.Option(["--allow-uncovered"], help="Let an export be asked for with its secrets.", **flag),
            click.Option(["--session-limit"], type=click.INT, help="Shells that may be open at once. [default: 15]"),
            click.Option(
                ["--process-limit"], type=click.INT, help="Processes a conversation may have; 0: any. [default: 4096]"
            ),
            click.Option(
                ["--shell-nice"], type=click.INT, help="Highest nice value when many shells are at work. [default: 10]"
            ),
            click.Option(
                ["--idle-timeout-seconds"],
                type=click.INT,
                help="Close conversations that were not used for so long. [default: never]",
            ),
            click.Option(
                ["--keep-days"], type=click.INT, help="Delete what was not used for so many days. [default: never]"
            ),
            click.Option(
                ["--keep-total-mb"], type=click.INT, help="Delete the oldest above so many MiB. [default: never]"
            ),
            click.Option(
                ["--keep-conversation-mb"],
                type=click.INT,
                help="Drop the oldest part of a longer record. [default: never]",
            ),
            click.Option(
                ["--idle-exit-seconds"],
                type=click.INT,
                help="Leave after so long without shells and requests. [default: never]",
            ),
            click.Option(["--background"], is_flag=True, help="Start it in the background; return when it answers."),
            click.Option(["--status"], is_flag=True, help="Say where the server of this home is, and start none."),
            click.Option(["--stop"], is_flag=True, help="Stop the server of this home; its shells run on."),
            click.Option(["--ready-fd"], type=click.INT, hidden=True),
            *anywhere(),
        ],
        help=_DOC,
        short_help="Serve the conversations of this home.",
        callback=click.pass_obj(_serve),
    )


def _serve(
    invocation: Invocation, /, background: bool, stop: bool, status: bool, ready_fd: int | None, **flags: Any
) -> int:
    from blockpty.surfaces import launching, settings
    from blockpty.surfaces.extras import require

    home = invocation.directory()
    if stop:
        return _stop(invocation, home)
    if status:
        return _status(invocation, home)
    found = settings.load(home, flags)
    if background:
        arguments = [
            f"--{name.replace('_', '-')}={value}" for name, value in _plain(flags) if not isinstance(value, bool)
        ] + [f"--{name.replace('_', '-')}" for name, value in _plain(flags) if value is True]
        arguments += [f"--no-{name.replace('_', '-')}" for name, value in _plain(flags) if value is False]
        running = launching.state(home)
        if running is not None and arguments:
            _refuse_other_settings(home, running, arguments)
        elif running is None:
            launching.start(home, arguments)
        from blockpty.surfaces.cli.view import page_address

        # The server answers by then, and has written its state: one that another program starts may not have yet.
        page = page_address(home)
        _say(invocation, {**(launching.state(home) or {}), "page": page})
        return 0
    if ready_fd is not None:
        return _detached(home, found, ready_fd)
    require("server", "blockpty serve")
    import asyncio

    from blockpty.surfaces.http.server import serve

    def ready(state: dict[str, Any]) -> None:
        _say(invocation, state)
        _spare_what_stays()

    asyncio.run(serve(home, found, ready))
    return 0


def _refuse_other_settings(home: Path, running: dict[str, Any], arguments: list[str]) -> None:
    """Raise Busy: a server that runs has the settings that it was started with, unless only its own port is given."""
    from urllib.parse import urlsplit

    from blockpty.errors import Busy

    port = urlsplit(running.get("url", "")).port
    if arguments != [f"--port={port}"]:
        raise Busy(
            f"a server runs in {home} already, at {running.get('url')}, with settings of its own",
            hint="blockpty serve --stop ends it, and its shells run on; then start it with these settings",
        )


def _status(invocation: Invocation, home: Path) -> int:
    """Say where the server is; 1 where none runs."""
    from blockpty.errors import NotFound
    from blockpty.surfaces import launching

    running = launching.state(home)
    if running is None:
        raise NotFound(f"no server runs in {home}", hint="blockpty serve --background starts one")
    _say(invocation, running, signs_in=False)
    return 0


def _spare_what_stays() -> None:
    """Have the garbage collector pass over what was made by now: modules, which stay as long as the server does.

    With thousands of conversations a full collection keeps the loop for a tenth of a second and more.
    """
    gc.collect()
    gc.freeze()


def _plain(flags: dict[str, Any]) -> list[tuple[str, Any]]:
    singular = {"allowed_hosts": "allowed_host", "allowed_origins": "allowed_origin", "allowed_frames": "allowed_frame"}
    pairs: list[tuple[str, Any]] = []
    for name, value in flags.items():
        if isinstance(value, tuple):
            pairs += [(singular[name], one) for one in value]
        elif value is not None:
            pairs.append((name, value))
    return pairs


def _say(invocation: Invocation, state: dict[str, Any], *, signs_in: bool = True) -> None:
    home = invocation.directory()
    facts = {**state, "token_file": str(home / "server" / "token"), "socket": str(home / "server" / "socket")}
    if invocation.as_json:
        print(json.dumps({"ok": True, **facts}), flush=True)
        return
    for name, value in facts.items():
        print(f"{name:<10}  {value}", flush=True)
    if not signs_in:
        return
    print("\nthe address after page signs a browser in, once, within a minute; `blockpty view --web` makes new ones")
    print(f"an agent connects to {facts.get('url')}/mcp with the token as bearer, or runs `blockpty mcp`", flush=True)


def _stop(invocation: Invocation, home: Path) -> int:
    import asyncio
    import fcntl

    from blockpty.surfaces.client import Client
    from blockpty.surfaces.launching import LOCK_NAME

    async def stop() -> None:
        async with Client(home, start=False) as client:
            await client.post("/admin/stop")

    asyncio.run(stop())
    lock = os.open(home / "server" / LOCK_NAME, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        # The server has it for as long as it lives, some seconds more if it still answers a request.
        fcntl.flock(lock, fcntl.LOCK_EX)
    finally:
        os.close(lock)
    print(json.dumps({"ok": True}) if invocation.as_json else "the server has stopped; shells keep running")
    return 0


def _detached(home: Path, settings: Any, ready_fd: int) -> int:
    """Serve in a process of its own, and report to the process that started it, through the descriptor."""
    if os.fork():
        os._exit(0)
    os.setsid()
    import asyncio

    from blockpty.errors import BlockptyError
    from blockpty.surfaces.http.server import serve

    def tell(content: dict[str, Any]) -> None:
        os.write(ready_fd, json.dumps(content).encode() + b"\n")
        os.close(ready_fd)

    reported: list[bool] = []

    def ready(state: dict[str, Any]) -> None:
        reported.append(True)
        tell({"ok": True, **state})
        _spare_what_stays()

    try:
        asyncio.run(serve(home, settings, ready))
    except BlockptyError as error:
        if reported:
            raise
        tell(error.to_dict())
        print(error, file=sys.stderr)
        return 1
    return 0
