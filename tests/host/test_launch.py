"""A host is started once, by the first client, in a home of its own wherever that lies."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from blockpty.errors import SpawnFailed
from blockpty.host.client import HostClient
from tests.support.async_tests import async_test
from tests.support.host_driver import BOUND_SECONDS, gone, running_host


@async_test
async def test_two_clients_that_start_at_once_make_one_host(home: Path) -> None:
    clients = await asyncio.gather(*(HostClient.connect(home) for _ in range(8)))
    hellos = [await client.hello() for client in clients]
    assert len({(hello.keeper, hello.recorder) for hello in hellos}) == 1
    for client in clients:
        client.leave()
    await gone(hellos[0], home)


@async_test
async def test_a_deep_home(home: Path) -> None:
    deep = home / ("d" * 100) / ("e" * 100)
    async with running_host(deep) as host:
        one = await host.spoken()
        await one.sh("echo deep")
        await one.ended()
        assert one.stream() == b"deep\r\n"
        hello = await host.client.hello()
    await gone(hello, deep)


@async_test
async def test_two_clients_that_find_no_socket_wait_for_the_host(home: Path) -> None:
    async with running_host(home) as host:
        hello = await host.client.hello()
        one = await host.spoken()
        await one.open("/bin/cat")
        (home / "host" / "host.sock").unlink()
        async with asyncio.timeout(BOUND_SECONDS):
            clients = await asyncio.gather(HostClient.connect(home), HostClient.connect(home))
        assert {(await client.hello()).keeper for client in clients} == {hello.keeper}
        for client in clients:
            client.leave()


@async_test
async def test_a_home_that_others_may_enter_is_refused(home: Path) -> None:
    (home / "host").mkdir(mode=0o700)
    (home / "host").chmod(0o755)
    with pytest.raises(SpawnFailed, match="mode 0755"):
        await HostClient.connect(home)
    (home / "host").rmdir()
    (home / "elsewhere").mkdir(mode=0o700)
    (home / "host").symlink_to(home / "elsewhere")
    with pytest.raises(SpawnFailed):
        await HostClient.connect(home)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to give a file to another user")
@async_test
async def test_a_directory_of_another_user_is_refused(home: Path) -> None:
    (home / "host").mkdir(mode=0o700)
    os.chown(home / "host", 65534, 65534)
    with pytest.raises(SpawnFailed, match="belongs to user 65534"):
        await HostClient.connect(home)
    os.chown(home / "host", 0, 0)
