"""The instructions for a model, and the prompt with the loop of run, wait and send."""

from __future__ import annotations

import re

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import GetPromptRequestParams, TextContent

from blockpty.surfaces.mcp.prompts import INSTRUCTIONS, listed_prompts, prompt
from blockpty.surfaces.mcp.toolsets import tool_set


def text_of(arguments: dict[str, str] | None = None) -> str:
    found = prompt(GetPromptRequestParams(name="terminal", arguments=arguments))
    content = found.messages[0].content
    assert isinstance(content, TextContent)
    return content.text


def test_what_is_listed_can_be_had() -> None:
    (listed,) = listed_prompts().prompts
    assert listed.name == "terminal"
    assert [one.name for one in listed.arguments or ()] == ["task", "conversation_id"]
    whole = text_of({"task": "fix the build", "conversation_id": "c7"})
    assert whole.startswith(text_of())
    assert "fix the build" in whole and "conversation c7" in whole


def test_only_tools_of_the_core_are_named() -> None:
    core = {tool.name for tool in tool_set("core").listed}
    assert set(re.findall(r"pty_\w+", INSTRUCTIONS + text_of())) <= core


@pytest.mark.parametrize(("name", "arguments"), [("other", None), ("terminal", {"tsak": "x"})])
def test_anything_else_is_refused(name: str, arguments: dict[str, str] | None) -> None:
    with pytest.raises(MCPError, match="Unknown"):
        prompt(GetPromptRequestParams(name=name, arguments=arguments))
