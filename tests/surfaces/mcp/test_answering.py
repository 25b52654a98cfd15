"""Answers to calls of tools: the result, or an error in the one shape."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

import blockpty
from blockpty.errors import BlockptyError
from blockpty.surfaces.access import Caller
from blockpty.surfaces.mcp.bounds import (
    DEFAULTS,
)
from blockpty.surfaces.mcp.schemas import NOTE
from blockpty.surfaces.mcp.server import build_server
from blockpty.surfaces.mcp.tools import TOOLS
from tests.support.async_tests import async_test
from tests.support.mcp_clients import client_of, ok, text_of


@pytest.mark.needs("bash")
@async_test
async def test_structured_content_is_the_result(home: Path) -> None:
    async with blockpty.Engine(home) as engine, client_of(engine) as client:
        caller = Caller(engine)
        await ok(client, "pty_open", conversation_id="c1", shell="bash", cwd="/")
        ran = await ok(
            client, "pty_run", conversation_id="c1", command="printf 'a\\tb\\n'; exit_with() { return 3; }; exit_with"
        )
        assert (ran["output"], ran["block"]["exit_status"]) == ("a\tb\n", 3)
        one = {"conversation_id": "c1"}
        same: list[tuple[str, dict[str, Any]]] = [
            ("status", one),
            ("list", {}),
            ("blocks", one),
            ("block", {**one, "block_id": "b1"}),
            ("read", {**one, "block_id": "b1"}),
            ("read", {**one, "from_cursor": 0, "view": "raw", "max_bytes": 300}),
            ("wait_for", {**one, "match": {"regex": r"(\w)\tb"}, "from_cursor": 0}),
            ("wait_for", {**one, "match": "never", "from_cursor": 0, "timeout_ms": 0}),
        ]
        for name, params in same:
            result = await client.call_tool(f"pty_{name}", params)
            meant = {**DEFAULTS.get(name, {}), **params}
            assert result.structured_content == (await caller.call(name, meant)).to_dict(), name
            assert NOTE not in result.structured_content
        verified = await ok(client, "pty_verify", **one)
        assert verified["clean"] is True
        place, screen = await ok(client, "pty_get_cursor", **one), await ok(client, "pty_screen", **one)
        assert [place["column"], place["row"]] == screen["cursor_position"] and place["cols"] == 80


@pytest.mark.needs("bash")
@async_test
async def test_errors_are_results_in_the_one_shape(home: Path) -> None:
    async with blockpty.Engine(home) as engine, client_of(engine) as client:
        caller = Caller(engine)
        assert (await client.call_tool("pty_status", {})).structured_content["error"]["code"] == "bad_request"
        await ok(client, "pty_open", conversation_id="c1", shell="bash")
        wrong: list[tuple[str, dict[str, Any], str]] = [
            ("status", {"conversation_id": "nope"}, "not_found"),
            ("status", {"conversation_id": "../c1"}, "bad_request"),
            ("run", {"conversation_id": "c1"}, "bad_request"),
            ("run", {"conversation_id": "c1", "command": "true", "timeout": 5}, "bad_request"),
            ("run", {"conversation_id": "c1", "command": "true", "timeout_ms": "5"}, "bad_request"),
            ("run", {"conversation_id": "c1", "command": "true", "timeout_ms": -5}, "bad_request"),
            ("run", {"conversation_id": "c1", "command": "true", "max_bytes": "many"}, "bad_request"),
            ("wait_for", {"conversation_id": "c1", "match": {"regex": "("}}, "bad_condition"),
            ("wait_for", {"conversation_id": "c1", "match": "x", "from_cursor": 10**9}, "bad_cursor"),
            ("send", {"conversation_id": "c1", "data": "x"}, "no_session"),
            ("block", {"conversation_id": "c1", "block_id": "b99"}, "not_found"),
            ("events", {"conversation_id": "nope"}, "not_found"),
            ("events", {"conversation_id": "c1", "from_seq": -1}, "bad_request"),
        ]
        for name, params, code in wrong:
            result = await client.call_tool(f"pty_{name}", params)
            assert result.is_error, (name, params)
            content = result.structured_content
            assert content["ok"] is False and content["error"]["code"] == code, content
            assert set(content["error"]) == {"code", "message", "hint", "details"}
            assert text_of(result).startswith(f"error {code}: ") and "Traceback" not in text_of(result)
            jsonschema.validate(content, TOOLS[f"pty_{name}"].listed.output_schema or {})
            if name != "events":
                with pytest.raises(BlockptyError) as caught:
                    await caller.call(name, params)
                assert content == caught.value.to_dict()
        followed = await client.call_tool("pty_events", {"conversation_id": "c1", "follow": True})
        assert followed.is_error and "next_seq" in text_of(followed)
        with pytest.raises(MCPError) as unknown:
            await client.call_tool("pty_other", {})
        assert unknown.value.error.code == -32602
        assert unknown.value.error.data["error"]["code"] == "bad_request"


@async_test
async def test_a_defect_has_the_one_shape_too(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        async def list(self, _filter: str | None) -> Any:
            raise RuntimeError("a defect")

    caller = Caller(Broken())
    async with Client(build_server(lambda _context: caller), mode="legacy") as client:
        result = await client.call_tool("pty_list", {})
    assert result.is_error and result.structured_content["error"]["code"] == "internal"
    assert "Traceback" not in text_of(result)
    # The trace is for who runs the server.
    assert caplog.records[-1].exc_info is not None
