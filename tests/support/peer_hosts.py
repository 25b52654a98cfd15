"""Two hosts with one catalogue, each with a server that the other may ask."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from blockpty.errors import NotFound
from blockpty.surfaces.client import Client
from blockpty.surfaces.private_files import server_directory, write_private
from tests.support.http_client import serving
from tests.support.ports import free_port
from tests.support.postgres_servers import Databases, Servers


@pytest.fixture
def databases(postgres_servers: Servers) -> Iterator[Databases]:
    with postgres_servers.databases(sharded=False) as made:
        yield made


@dataclass
class Host:
    home: Path
    address: str

    def may_ask(self, other: Host, token: str) -> None:
        write_private(server_directory(self.home) / "peers", f"{other.address} {token}\n".encode())


@contextlib.asynccontextmanager
async def two_hosts(place: Path, databases: Databases, patch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Host, Host]]:
    patch.setenv("BLOCKPTY_DATABASE_URL", databases.url)
    async with contextlib.AsyncExitStack() as stack:
        hosts = []
        for name in ("one", "two"):
            port = free_port()
            # It is read when a home is first opened; these live in one process.
            patch.setenv("BLOCKPTY_ADDRESS", f"http://127.0.0.1:{port}")
            hosts.append(Host(place / name, await stack.enter_async_context(serving(place / name, port=port))))
        yield hosts[0], hosts[1]


async def ended(client: Client) -> None:
    """Return when a server answers no more."""
    with contextlib.suppress(NotFound):
        while True:
            await client.list()
