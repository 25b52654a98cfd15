"""Processes of a host: what they import, and that they stand apart from who started them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.async_tests import async_test
from tests.support.host_driver import running_host


@pytest.mark.linux
@async_test
async def test_the_host_is_light(home: Path) -> None:
    async with running_host(home) as host:
        hello = await host.client.hello()
        for pid in (hello.keeper, hello.recorder):
            maps = Path(f"/proc/{pid}/maps").read_text()
            assert "orjson" not in maps and "_asyncio" not in maps and "_ssl" not in maps
            assert os.getsid(pid) != os.getsid(0)
            assert Path(f"/proc/{pid}/cwd").readlink() == Path("/")
