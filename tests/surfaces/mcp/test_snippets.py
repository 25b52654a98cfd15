"""The configuration that docs/how-to/agents.md shows for each client is what that client reads."""

from __future__ import annotations

import json
import tomllib
from typing import Any, Final

import pytest

from tests.support.markdown import TOP, code_blocks

PAGE: Final = TOP / "docs" / "how-to" / "agents.md"
URL: Final = "http://127.0.0.1:7717/mcp"
STDIO: Final = {"command": "blockpty", "args": ["mcp"]}


def snippets(client: str) -> list[dict[str, Any]]:
    """Return what is configured for blockpty in each snippet under a heading."""
    text = PAGE.read_text("utf-8")
    begin = text.count("\n", 0, text.index(f"## {client}\n"))
    end = text.count("\n", 0, text.find("\n## ", text.index(f"## {client}\n")))
    found = []
    for block in code_blocks(PAGE):
        if begin < block.line < end and block.language in ("json", "toml"):
            parsed = json.loads(block.text) if block.language == "json" else tomllib.loads(block.text)
            (servers,) = (parsed[key] for key in ("mcpServers", "servers", "mcp_servers") if key in parsed)
            found.append({**servers["blockpty"], "inputs": parsed.get("inputs")})
    return found


@pytest.mark.parametrize("client", ["Claude Code", "Codex", "VS Code", "Cursor"])
def test_each_client_has_both_ways(client: str) -> None:
    stdio, http = snippets(client)
    assert {name: stdio[name] for name in STDIO} == STDIO
    assert http["url"] == URL and "command" not in http


def test_how_each_client_names_the_transport_and_the_token() -> None:
    claude, codex, code, cursor = (snippets(client) for client in ("Claude Code", "Codex", "VS Code", "Cursor"))
    assert [one["type"] for one in (*claude, *code)] == ["stdio", "http"] * 2
    assert claude[1]["headers"] == {"Authorization": "Bearer ${BLOCKPTY_TOKEN}"}
    assert codex[1]["bearer_token_env_var"] == "BLOCKPTY_TOKEN"
    (asked,) = code[1]["inputs"]
    assert asked["password"] is True
    assert code[1]["headers"] == {"Authorization": f"Bearer ${{input:{asked['id']}}}"}
    assert cursor[1]["headers"] == {"Authorization": "Bearer ${env:BLOCKPTY_TOKEN}"}
