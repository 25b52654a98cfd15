"""The page's types of answers say what the schema of the operations says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

_TOP = Path(__file__).parents[3]
_TYPES = (_TOP / "blockpty/surfaces/web/src/api/types.ts").read_text()
_SCHEMA: dict[str, Any] = json.loads((_TOP / "spool_schema/operations-v1.json").read_text())["$defs"]
# The page's name of an answer, where it is not the schema's.
_NAMES = {"Overview": "OverviewResult", "BlocksPage": "BlocksResult", "Status": "StatusResult", "Block": "ListedBlock",
          "Timeline": "TimelineResult"}  # fmt: skip
# What is no result of an operation: parts of a screen, what the socket and the feed send.
_OTHER = {"Run", "ApprovalRequest", "JournalEvent"}
_INTERFACE = re.compile(r"^export interface (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"^  (\w+)(\??): ((?:[^;{]|\{.*?\n?  \})+);", re.MULTILINE | re.DOTALL)
_KINDS = {"string": "string", "number": "number", "integer": "number", "boolean": "boolean", "array": "array",
          "object": "object"}  # fmt: skip


def _resolved(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what a value may be."""
    if "$ref" in schema:
        return _resolved(_SCHEMA[schema["$ref"].rpartition("/")[2]])
    if "anyOf" in schema:
        return [one for part in schema["anyOf"] for one in _resolved(part)]
    kinds = schema.get("type", "object")
    return [{**schema, "type": kind} for kind in (kinds if isinstance(kinds, list) else [kinds])]


def _kind(written: str) -> str:
    """Return the kind of JSON value that a type of the page has, apart from null."""
    if written.endswith("]") or written.startswith("["):
        return "array"
    return "string" if written.startswith('"') else written if written in ("string", "number", "boolean") else "object"


@pytest.mark.parametrize("name", [name for name, _ in _INTERFACE.findall(_TYPES) if name not in _OTHER])
def test_an_answer_is_what_the_page_takes_it_for(name: str) -> None:
    body = next(body for found, body in _INTERFACE.findall(_TYPES) if found == name)
    schema = _SCHEMA[_NAMES.get(name, name)]
    fields = _FIELD.findall(body)
    assert fields
    for field, optional, written in fields:
        assert field in schema["properties"], f"{name}.{field} is in no answer"
        possible = _resolved(schema["properties"][field])
        kinds = {_KINDS[one["type"]] for one in possible if one["type"] != "null"}
        parts = [part.strip() for part in re.split(r"\|(?![^\[{]*[\]}])", written)]
        # Where a field may be left out, it is instead of null.
        may_be_null = any(one["type"] == "null" for one in possible) and not optional
        assert ("null" in parts) == may_be_null, f"{name}.{field}: null"
        assert {_kind(part) for part in parts if part != "null"} == kinds, f"{name}.{field}: {written} is {kinds}"


def test_no_answer_is_forgotten() -> None:
    names = {name for name, _ in _INTERFACE.findall(_TYPES)}
    assert names >= _OTHER and len(names - _OTHER) >= 8
    assert {_NAMES.get(name, name) for name in names - _OTHER} <= set(_SCHEMA)
