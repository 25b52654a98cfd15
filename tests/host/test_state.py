"""State of a host: what it leaves in its home is private."""

from __future__ import annotations

import stat
from pathlib import Path

from tests.support.async_tests import async_test
from tests.support.host_driver import running_host


@async_test
async def test_modes_of_what_it_leaves_in_the_home(home: Path) -> None:
    async with running_host(home) as host:
        one = await host.spoken()
        await one.sh("echo x")
        await one.ended()
        modes = {
            str(path.relative_to(home)): stat.S_IMODE(path.lstat().st_mode) for path in [home, *home.rglob("*")]
        }  # fmt: skip
        assert modes["host"] == 0o700
        assert modes["host/host.sock"] == 0o600
        wrong = {name: oct(mode) for name, mode in modes.items() if mode & 0o077}
        assert wrong == {}
