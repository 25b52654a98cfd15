"""A replay over a server: the moments that the engine gives, a player's buttons, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from websockets.asyncio.client import connect

import blockpty
from blockpty import Client
from blockpty.errors import BadRequest, Forbidden, NotFound
from blockpty.model.replay_frames import Moment
from blockpty.surfaces.private_files import owner_token
from blockpty.surfaces.tokens import add_token
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


@async_test
async def test_what_is_refused(home: Path) -> None:
    async with serving(home) as url, Client(home) as client:
        conversation = await client.open("c1", shell="bash")
        for options, error in (({"block_id": "b9"}, NotFound), ({"speed": -1}, BadRequest)):
            with pytest.raises(error):
                await anext(conversation.replay(**options))  # type: ignore[arg-type]
        with pytest.raises(NotFound):
            await anext((await client.conversation("c2")).replay())
        token = add_token(home, "other", "read", ("c2",), 0)
        async with Client(home, url=url, token=token) as other:
            with pytest.raises(Forbidden):
                await anext((await other.conversation("c1")).replay())
        await conversation.close()


@async_test
async def test_the_messages_of_a_viewer(home: Path) -> None:
    async with serving(home) as url, Client(home) as client:
        conversation = await client.open("c1", shell="bash")
        await conversation.run("echo one")
        address = f"{url.replace('http', 'ws')}/v1/conversations/c1/replay?speed=0"
        headers = {"Authorization": f"Bearer {owner_token(home)}"}
        async with connect(address, additional_headers=headers, proxy=None) as socket:
            told = [json.loads(await socket.recv())]
            while told[-1]["type"] != "end":
                told.append(json.loads(await socket.recv()))
            assert [told[0]["type"], told[1]["type"]] == ["hello", "screen"]
            assert told[0]["speed"] == 0 and told[0]["duration_seconds"] > 0
            for wrong in ("x", "[]", '{"type": "fly"}', '{"type": "seek"}', '{"type": "seek", "cursor": 1.5}',
                          '{"type": "speed", "speed": "fast"}', '{"type": "step", "blocks": true}'):  # fmt: skip
                await socket.send(wrong)
                assert json.loads(await socket.recv())["error"]["code"] == "bad_request", wrong
            await socket.send('{"type": "step", "blocks": -1, "tag": 7}')
            assert json.loads(await socket.recv()) == {"type": "turned", "tag": 7}
            assert json.loads(await socket.recv())["type"] == "screen"
            # A seek while it plays is over with its screen, and the end comes once for all that follows.
            await socket.send('{"type": "pause"}')
            await socket.send('{"type": "seek", "cursor": 0, "tag": 8}')
            while json.loads(await socket.recv()) != {"type": "turned", "tag": 8}:
                pass
            await socket.send('{"type": "resume"}')
            while json.loads(await socket.recv())["type"] != "end":
                pass
            await socket.send("x")
            assert json.loads(await socket.recv())["error"]["code"] == "bad_request"
        await conversation.close()
