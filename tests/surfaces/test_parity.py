"""One definition, one answer: the same call gives equal JSON through Python, HTTP, the client, MCP and the CLI."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from mcp.client.client import Client as McpClient
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from blockpty import Client, Engine
from blockpty.ops.dispatch import call
from blockpty.ops.operation import Shape
from blockpty.ops.table import OPERATIONS
from blockpty.surfaces.cli.main import main
from blockpty.surfaces.http.app import application
from blockpty.surfaces.http.metrics import Metrics
from blockpty.surfaces.private_files import owner_token
from blockpty.surfaces.tokens import TokenBook
from tests.support.async_tests import async_test
from tests.support.http_client import http, serving
from tests.support.operations import PARAMS, RESULTS, RecordingEngine

Ask = Callable[[str, Mapping[str, Any]], Awaitable[dict[str, Any]]]

CALLS: Final = [name for name, operation in OPERATIONS.items() if operation.shape is Shape.CALL]


@pytest.mark.parametrize("name", CALLS)
@async_test
async def test_every_operation_hands_on_what_it_was_given(name: str, home: Path) -> None:
    engine = RecordingEngine()
    app = application(engine, TokenBook(home), Metrics(), hosts={"localhost"}, origins=())
    headers = {"Authorization": f"Bearer {owner_token(home)}"}
    transport = httpx2.ASGITransport(app=app)  # type: ignore[arg-type]
    local = RecordingEngine()
    expected = (await call(local, name, PARAMS[name])).to_dict()  # type: ignore[arg-type]
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as plain:
        answer = json.loads((await plain.send(_request(plain, name, PARAMS[name]))).content)
        client = Client(home, url="http://localhost")
        client._http = plain
        through = (await client.call(name, PARAMS[name])).to_dict()
    assert answer == expected == RESULTS[name].to_dict()
    assert json.loads(json.dumps(through)) == json.loads(json.dumps(expected))
    assert engine.calls == local.calls * 2


def _request(plain: httpx2.AsyncClient, name: str, params: Mapping[str, Any]) -> httpx2.Request:
    """As a user who has read the reference writes it."""
    method, path = OPERATIONS[name].route
    rest = {key: value for key, value in params.items() if f"{{{key}}}" not in path}
    path = path.format(**params)
    if method == "POST":
        return plain.build_request("POST", path, json=rest)
    query = {key: json.dumps(value) if not isinstance(value, str) else value for key, value in rest.items()}
    return plain.build_request("GET", path, params=query)


SCENARIO: Final[list[tuple[str, dict[str, Any]]]] = [
    ("open", {"shell": "bash", "cwd": "/", "persist": True}),
    ("status", {}),
    ("run", {"command": "printf 'a\\033[31mb\\033[0m\\n'; echo \u00e9; false"}),
    ("run", {"command": "seq 1 400", "max_bytes": 100}),
    ("exec_interactive", {"command": "printf 'Name: '; read -r name; echo Hello, $name."}),
    ("wait_for", {"match": "Name: "}),
    ("send", {"data": "Ada\r"}),
    ("wait_for", {"match": [{"regex": "Hello, (\\w+)"}, {"token": "EOF"}]}),
    ("wait_for", {"match": {"token": "PROMPT"}}),
    ("exec_block", {"command": "echo x"}),
    ("wait_for", {"match": {"token": "PROMPT"}}),
    ("block", {"block_id": "b1"}),
    ("block", {"block_id": "b99"}),
    ("blocks", {"page_size": 2}),
    ("read", {"block_id": "b1", "view": "raw"}),
    ("read", {"block_id": "b1", "view": "text", "max_bytes": 2}),
    ("run", {"command": "printf '\\033[H\\033[2J\\033[31mred\\033[m\\n'"}),
    ("wait_for", {"match": {"screen": "^red$"}}),
    ("screen", {"format": "agent"}),
    ("set_scrollback", {"lines": 10}),
    ("stop_capture", {}),
    ("start_capture", {}),
    ("stop_capture", {}),
    # At some time after that bash draws its prompt again.
    ("resize", {"cols": 100, "rows": 30}),
    ("status", {}),
    ("end_session", {"session_id": "s3"}),
    ("run", {"command": 7}),
    ("wait_for", {"match": {"regex": "("}}),
    ("interrupt", {}),
    ("reset", {}),
    ("export", {"format": "text", "block_id": "b2"}),
    ("export", {"block_id": "b99"}),
    ("verify", {}),
    ("close", {}),
    ("run", {"command": "true"}),
]
# What differs between two runs of the same thing: clocks, processes, and how many digits these have in the stream.
_CHANCE: Final = frozenset({
    "cursor", "span", "pid", "signal", "ts_begin", "ts_end", "duration_ms", "created_ts", "out_path", "stream_bytes",
    "events", "vouched", "head", "record",
    "next_seq", "seqno", "capture_file", "duration_seconds",
    "from_cursor", "already_there", "new_output",
    "tty", "mode",  # as they are in the moment of the answer, when a program may be about to read or to end
})  # fmt: skip


def _settled(value: Any, key: str = "") -> Any:
    # What a dying shell still writes may be a block of its own.
    if (key in _CHANCE and value is not None) or (key == "blocks" and isinstance(value, int)):
        return type(value).__name__ if not isinstance(value, (list, tuple)) else "span"
    if isinstance(value, dict):
        return {name: _settled(item, name) for name, item in value.items()}
    if isinstance(value, str):
        # A message or a joint may name a cursor.
        return "".join("9" if character.isdigit() else character for character in value) if "cursor" in value else value
    return [_settled(item) for item in value] if isinstance(value, list) else value


async def _play(ask: Ask) -> list[Any]:
    answers = []
    for name, params in SCENARIO:
        answers.append((name, _settled(json.loads(json.dumps(await ask(name, {"conversation_id": "c1", **params}))))))
    return answers


async def _python(name: str, params: Mapping[str, Any], engine: Any) -> dict[str, Any]:
    from blockpty.errors import BlockptyError

    try:
        return (await call(engine, name, params)).to_dict()
    except BlockptyError as error:
        return error.to_dict()


def _command_line(home: Path, name: str, params: Mapping[str, Any]) -> dict[str, Any]:
    arguments = [name.replace("_", "-"), "--json", "--home", str(home)]
    operation = OPERATIONS[name]
    for key, value in params.items():
        if key not in operation.positional:
            flag = key.replace("_", "-")
            switch = isinstance(value, bool)
            arguments += [f"--{flag if value else 'no-' + flag}"] if switch else [f"--{flag}", str(value)]
    words = [params[key] for key in operation.positional if key in params]
    arguments += ["--", *(word if isinstance(word, str) else json.dumps(word) for word in words)]
    out = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True)
    with contextlib.redirect_stdout(out):
        main(arguments)
    content: dict[str, Any] = json.loads(out.buffer.getvalue())  # type: ignore[attr-defined]
    return content


@pytest.mark.needs("bash")
@async_test(timeout_seconds=110)
async def test_one_scenario_on_every_surface(tmp_path: Path, home: Path) -> None:
    homes = {name: home / name for name in ("python", "http", "client", "stdio", "mcp", "cli")}
    async with Engine(homes["python"]) as engine:
        expected = await _play(lambda name, params: _python(name, params, engine))
    codes = [answer["error"]["code"] for _, answer in expected if not answer["ok"]]
    assert codes == ["not_found", "not_found", "no_session", "bad_request", "bad_condition", "not_found", "exited"]

    async with serving(homes["http"]) as url, http(homes["http"], url) as plain:

        async def by_http(name: str, params: Mapping[str, Any]) -> dict[str, Any]:
            content: dict[str, Any] = json.loads((await plain.send(_request(plain, name, params))).content)
            return content

        assert await _play(by_http) == expected

    async with serving(homes["client"]), Client(homes["client"]) as client:
        assert await _play(lambda name, params: _python(name, params, client)) == expected

    async with (
        serving(homes["mcp"]) as url,
        http(homes["mcp"], url) as plain,
        McpClient(streamable_http_client(f"{url}/mcp?tools=all", http_client=plain)) as agent,
    ):
        assert await _play(_by_mcp(agent)) == expected

    async with serving(homes["stdio"]):
        command = ["-m", "blockpty", "mcp", "--tools", "all", "--home", str(homes["stdio"])]
        parameters = StdioServerParameters(command=sys.executable, args=command, env=dict(os.environ))
        async with McpClient(stdio_client(parameters)) as agent:
            assert await _play(_by_mcp(agent)) == expected

    async with serving(homes["cli"]):
        loop = asyncio.get_running_loop()

        async def by_cli(name: str, params: Mapping[str, Any]) -> dict[str, Any]:
            return await loop.run_in_executor(None, _command_line, homes["cli"], name, params)

        typed = [one for one in expected if one[1].get("error", {}).get("code") != "bad_request"]
        # 7 is text on a command line, so that call cannot be made there.
        played = []
        for name, params in SCENARIO:
            if params.get("command") != 7:
                played.append((name, _settled(await by_cli(name, {"conversation_id": "c1", **params}))))
        assert played == typed


def _by_mcp(agent: McpClient) -> Ask:
    async def ask(name: str, params: Mapping[str, Any]) -> dict[str, Any]:
        result = await agent.call_tool(f"pty_{name}", dict(params))
        content = result.structured_content
        assert content is not None and content["ok"] is not result.is_error
        return content

    return ask
