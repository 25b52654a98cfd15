"""The client: Engine's and Conversation's methods over a server's unix socket or HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from blockpty import Client
from blockpty.errors import Busy, NotFound, Unauthorized
from blockpty.model.results import Result
from blockpty.surfaces import launching
from blockpty.surfaces.http import calls
from tests.support.async_tests import async_test
from tests.support.http_client import http, serving
from tests.support.operations import RESULTS

pytestmark = pytest.mark.needs("bash")

GAME = "while printf 'Guess: '; read -r n; do if [ \"$n\" = 7 ]; then echo Correct; break; fi; echo Wrong; done"


@pytest.mark.parametrize("name", RESULTS)
def test_results_come_back_as_they_went(name: str) -> None:
    result: Result = RESULTS[name]
    assert type(result).from_dict(json.loads(json.dumps(result.to_dict()))) == result
    assert type(result).from_dict({**result.to_dict(), "of a later version": 1}) == result


@async_test
async def test_a_game_through_the_socket_and_through_http(home: Path) -> None:
    async with serving(home) as url:
        for place in ({"home": home}, {"home": home, "url": url}):
            async with Client(**place) as client:
                conversation = await client.open(shell="bash")
                session = await conversation.exec_interactive(GAME)
                seen = []
                for guess in (5, 7):
                    assert (await conversation.wait_for("Guess: ")).matched
                    await conversation.send(f"{guess}\r", session_id=session.session_id)
                    seen.append((await conversation.wait_for(["Correct", "Wrong"])).match_text)
                assert seen == ["Wrong", "Correct"]
                assert (await conversation.wait_for({"token": "PROMPT"})).matched
                assert (await conversation.block(session.block_id)).block.exit_status == 0
                result = await conversation.run("echo hi; false")
                assert (result.output, result.exit_status) == ("hi\n", 1)
                assert (await conversation.verify()).clean
                types = [event.type async for event in conversation.events(follow=False)]
                assert types.count("agent_block_begin") == 2 and types.count("agent_session_begin") == 1
                await conversation.close()


@async_test
async def test_errors_arrive_as_what_they_are(home: Path) -> None:
    async with serving(home) as url, Client(home) as client:
        with pytest.raises(NotFound):
            await (await client.conversation("missing")).status()
        conversation = await client.open("c1", shell="bash")
        await conversation.exec_block("sleep 60")
        with pytest.raises(Busy) as found:
            await conversation.exec_block("true")
        assert found.value.hint
        async with Client(home, url=url, token="x" * 43) as stranger:
            with pytest.raises(Unauthorized):
                await stranger.list()
        await conversation.interrupt()
        await conversation.close()
    async with Client(home, start=False) as client:
        with pytest.raises(NotFound, match="no server"):
            await client.list()


@async_test
async def test_a_cancelled_wait_leaves_the_program_and_the_server_alone(home: Path) -> None:
    async with serving(home), Client(home) as client:
        conversation = await client.open("c1", shell="bash")
        begun = await conversation.exec_block("read -r line; echo got $line")
        waiting = asyncio.ensure_future(conversation.wait_for("never", timeout_ms=3_600_000))
        events = conversation.events()
        async with contextlib.aclosing(events):  # type: ignore[type-var]
            async for event in events:
                if event.type == "wait_begin" and "never" in str(event.fields["match"]):
                    break
            waiting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await waiting
            # The server lets the wait go when the connection does: the record says so.
            async for event in events:
                if event.type == "wait_end" and event.fields["reason"] == "cancelled":
                    break
        await conversation.send("ok\r")
        assert (await conversation.wait_for("got ok", from_cursor=begun.cursor)).matched
        await conversation.close()


@async_test
async def test_a_long_wait_is_kept_alive(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "KEEP_ALIVE_SECONDS", 0.05)
    async with serving(home) as url, Client(home) as client, http(home, url) as plain:
        conversation = await client.open("c1", shell="bash")
        result = await conversation.run("sleep 0.5; echo done")
        assert result.output == "done\n"
        path, body = "/v1/conversations/c1/wait_for", {"match": "never", "timeout_ms": 300}
        async with plain.stream("POST", path, json=body) as response:
            parts = [part async for part in response.aiter_raw()]
        assert response.status_code == 200 and len(parts) > 2 and parts[0].strip() == b""
        assert json.loads(b"".join(parts))["reason"] == "timeout"
        # Once the status has gone out as 200, an error says so in the body.
        await conversation.exec_block("sleep 0.3; exit")
        answer = await plain.post("/v1/conversations/c1/run", json={"command": "true", "timeout_ms": 5000})
        assert json.loads(answer.content)["error"]["code"] in ("busy", "exited")
        await conversation.wait_for({"token": "EOF"})


@async_test
async def test_a_home_with_a_long_name(home: Path) -> None:
    deep = home / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    async with serving(deep), Client(deep, start=False) as client:
        assert (await client.list()).conversations == []


@async_test
async def test_a_server_is_started_on_demand_and_only_one(home: Path) -> None:
    clients = [Client(home) for _ in range(3)]
    found = await asyncio.gather(*(client.list() for client in clients))
    assert [one.conversations for one in found] == [[], [], []]
    state = launching.state(home)
    assert state is not None and state["pid"] != os.getpid()
    conversation = await clients[0].open("c1", shell="bash")
    pid = (await conversation.status()).pid
    for client in clients:
        await client.close()
    # Its death takes nothing with it: the next one goes on where it was.
    os.kill(state["pid"], signal.SIGKILL)
    async with Client(home) as client:
        again = await client.conversation("c1")
        assert (await again.status()).pid == pid
        assert (await again.run("echo still here")).output == "still here\n"
        assert (await again.verify()).clean
        await again.close()


@async_test
async def test_an_idle_server_leaves_when_the_last_shell_has_ended(home: Path) -> None:
    await asyncio.to_thread(launching.start, home, ("--port", "0", "--idle-exit-seconds", "1"))
    async with Client(home, start=False) as client:
        conversation = await client.open("c1", shell="bash")
    lock = (home / "server" / launching.LOCK_NAME).open("rb")
    with lock:
        assert launching.is_running(home)
        async with Client(home, start=False) as client:
            await (await client.conversation(conversation.id)).close()
        import fcntl

        await asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX)
    assert not launching.is_running(home)
    assert not (home / "server" / launching.STATE_NAME).exists()


@async_test
async def test_a_second_server_is_refused(home: Path) -> None:
    async with serving(home):
        with pytest.raises(Busy, match="already"):
            async with serving(home):
                pass


def test_what_is_exported_is_this_client() -> None:
    parameters: dict[str, Any] = dict(inspect.signature(Client).parameters)
    assert list(parameters) == ["home", "url", "token", "start", "certificates", "agent"]
