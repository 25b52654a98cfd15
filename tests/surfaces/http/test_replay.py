"""A replay over a server: the moments that the engine gives, a player's buttons, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from websockets.asyncio.client import connect

from blockpty import Client
from blockpty.errors import BadRequest, Forbidden, NotFound
from blockpty.surfaces.private_files import owner_token
from blockpty.surfaces.tokens import add_token
from tests.support.async_tests import async_test
from tests.support.http_client import serving

pytestmark = pytest.mark.needs("bash")


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
            messages = [json.loads(await socket.recv())]
            while messages[-1]["type"] != "end":
                messages.append(json.loads(await socket.recv()))
            assert [messages[0]["type"], messages[1]["type"]] == ["hello", "screen"]
            assert messages[0]["speed"] == 0 and messages[0]["duration_seconds"] > 0
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
