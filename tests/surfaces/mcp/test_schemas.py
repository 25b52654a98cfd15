"""Schemas of the tools: plain, described, and what the table takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema
import pytest

from blockpty.ops.table import OPERATIONS
from blockpty.surfaces.mcp.bounds import (
    MAX_OUTPUT_BYTES,
    MODEL_BYTES,
)
from blockpty.surfaces.mcp.tools import TOOLS, takes_own


def every(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every object in a schema."""
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from every(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from every(item)


@pytest.mark.parametrize("name", TOOLS)
def test_schemas_are_plain_and_described(name: str) -> None:
    tool = TOOLS[name].listed
    assert tool.description and tool.output_schema is not None
    for schema in (tool.input_schema, tool.output_schema):
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"
        assert not [part for part in every(schema) if "$ref" in part or "$defs" in part]
    # Some clients take neither of these at the top.
    assert not {"anyOf", "oneOf", "allOf"} & set(tool.input_schema)
    for field, schema in tool.input_schema["properties"].items():
        assert schema.get("description"), field
        assert {"type": "null"} not in schema.get("anyOf", ()), field
        assert "title" not in schema and schema.get("default", ...) is not None, field
    operation = OPERATIONS.get(name.removeprefix("pty_"))
    if operation is not None:
        required = [key for key, field in operation.request.model_fields.items() if field.is_required()]
        if "conversation_id" in required and takes_own(operation):
            required.remove("conversation_id")
        assert tool.input_schema.get("required", []) == required
        missing = set(operation.request.model_fields) - set(tool.input_schema["properties"])
        assert missing == ({"follow"} if name == "pty_events" else set())


def test_arguments_that_the_schema_allows_are_those_that_the_table_takes() -> None:
    schema = jsonschema.Draft202012Validator(TOOLS["pty_wait_for"].listed.input_schema)
    good: list[object] = [{"screen": "x"}, {"changed": "0a-1b-2c"}]
    good += ["x", {"regex": "x"}, {"token": "PROMPT"}, {"token": "EOF"}, {"idle_ms": 5}, ["x", {"idle_ms": 5}]]
    bad = ["", {"token": "OTHER"}, {}, {"regex": "x", "idle_ms": 5}, [], 5]
    for match, allowed in [*((match, True) for match in good), *((match, False) for match in bad)]:
        assert schema.is_valid({"conversation_id": "c1", "match": match}) is allowed, match
    assert not schema.is_valid({"conversation_id": "c1", "match": "x", "timeout": 5})
    assert not schema.is_valid({"conversation_id": "../c1", "match": "x"})


def test_the_limits_of_this_surface_are_stated() -> None:
    assert TOOLS["pty_run"].listed.input_schema["properties"]["max_bytes"]["default"] == MODEL_BYTES
    assert TOOLS["pty_read"].listed.input_schema["properties"]["max_bytes"]["maximum"] == MAX_OUTPUT_BYTES
    assert str(MAX_OUTPUT_BYTES) in (TOOLS["pty_run"].listed.description or "")
