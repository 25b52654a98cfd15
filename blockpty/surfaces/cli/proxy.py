"""Command `blockpty proxy`: the far side of ssh. Its standard input and output lead to the server of a home here.

A blockpty on another machine runs it through ssh; a person has no use for it. What it prints is for that program.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from pathlib import Path

    from blockpty.surfaces.cli.invocation import Invocation

_DOC: Final = """Join standard input and output to the server of this home, which is started when there is none.

A blockpty on another machine runs this through ssh, for `open` with a source ssh: that is to survive its connection,
and for `peers` with an address ssh:."""
_STEP: Final = 256 * 1024


def command() -> click.Command:
    """Return the command."""
    from blockpty.surfaces.cli.invocation import anywhere

    return click.Command(
        "proxy",
        params=[
            click.Option(["--session"], is_flag=True, help="Serve one session, as the first line asks for it."),
            click.Option(["--greet"], is_flag=True, help="Start the server, say how to be let in, and end."),
            *anywhere(),
        ],
        help=_DOC,
        short_help="Serve a blockpty on another machine, through ssh.",
        callback=click.pass_obj(_proxy),
    )


def _proxy(invocation: Invocation, /, session: bool, greet: bool) -> int:
    home = invocation.directory()
    if session:
        from blockpty.runtime.far_session import serve_session

        return asyncio.run(serve_session(home))
    connection = _connected(home)
    if greet:
        import json

        from blockpty.host.ssh_bridge import GREETING
        from blockpty.surfaces.private_files import owner_token

        connection.close()
        # Over a connection on which this user could read the file of the token as well.
        sys.stdout.write(f"\n{GREETING.decode()}{json.dumps({'version': 1, 'token': owner_token(home)})}\n")
        return 0
    with connection:
        _join(connection)
    return 0


def _connected(home: Path) -> socket.socket:
    from blockpty.errors import NotFound
    from blockpty.surfaces import launching

    found = launching.connect(home)
    if found is None:
        launching.start(home)
        found = launching.connect(home)
    if found is None:
        raise NotFound(f"no server answers in {home}", hint="blockpty doctor may say why")
    return found


def _join(connection: socket.socket) -> None:
    """Pass bytes on both ways until the server has ended the connection."""

    def hand_in() -> None:
        try:
            while data := os.read(0, _STEP):
                connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    threading.Thread(target=hand_in, daemon=True).start()
    try:
        while data := connection.recv(_STEP):
            view = memoryview(data)
            while view:
                view = view[os.write(1, view) :]
    except OSError:
        pass
