"""A replay that a server plays: its moments are those that the engine gives."""

from __future__ import annotations

from pathlib import Path

import pytest

import blockpty
from blockpty import Client
from blockpty.model.replay_frames import Moment
from tests.support.async_tests import async_test
from tests.support.http_client import serving

pytestmark = pytest.mark.needs("bash")


@async_test
async def test_a_client_gets_what_the_engine_gives(home: Path) -> None:
    async with serving(home) as url, Client(home) as client, Client(home, url=url) as far:
        conversation = await client.open("c1", shell="bash")
        await conversation.run("echo one; sleep 0.1; printf '\\377\\342\\202'; printf '\\254\\n'")
        await conversation.run("echo two")
        # Another engine reads the same record.
        async with blockpty.Engine(home) as engine, (await engine.conversation("c1")).replay(speed=0) as replay:
            expected = [moment async for moment in replay]
        for one in (client, far):
            async with (await one.conversation("c1")).replay(speed=0) as remote:
                moments: list[Moment] = [moment async for moment in remote]
                assert moments == expected and await remote.duration_seconds() > 0.1
                # Played to its end, it can be sought in.
                remote.step(-1)
                assert (await anext(remote)).type == "screen"
                assert (await anext(remote)).block == moments[-2].block or remote.cursor is not None
                remote.seek(0)
                again = await anext(remote)
                assert (again.type, again.at_ms) == ("screen", 0)
                remote.speed = 50
                remote.pause()
                assert remote.paused
                remote.resume()
                remote.seek(cursor=0)
                assert (await anext(remote)).type == "screen"
        async with (await client.conversation("c1")).replay(speed=0, block_id="b2") as remote:
            assert b"".join([moment.data async for moment in remote][1:]) == b"two\r\n"
        await conversation.close()
