"""spool_schema/operations-v1.json: up to date, and true of what the operations take and give."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from blockpty.errors import BadRequest, Busy
from blockpty.ops.schema import document as make_document
from blockpty.ops.schema import error_codes, render
from blockpty.ops.table import OPERATIONS
from tests.support.operations import PARAMS, REFUSED, RESULTS

TOP = Path(__file__).resolve().parents[2]
SCHEMA = TOP / "spool_schema" / "operations-v1.json"

# Every code of the contract; those whose capability comes with a later issue, with its topic.
CONTRACT_CODES = (
    "bad_request", "bad_condition", "bad_cursor", "not_found", "busy", "interactive_session_active",
    "no_session", "exited", "spawn_failed", "no_prompt", "pty_limit", "session_limit", "approval_required",
    "approval_denied", "stale", "user_in_control", "halted", "connection_lost", "line_too_long", "storage_full",
    "spool_corrupt",
    "spool_version", "unauthorized", "internal",
)  # fmt: skip
NOT_YET: dict[str, str] = {}
ADDED = {
    "forbidden": "a token is known but does not allow this; distinct from a token that is not known",
    "archive_unreachable": "a store beside the home is down; what is here is whole",
}


document = functools.cache(make_document)


@functools.cache
def validator(definition: str) -> jsonschema.Draft202012Validator:
    schema = {"$ref": f"#/$defs/{definition}", "$defs": document()["$defs"]}
    return jsonschema.Draft202012Validator(schema)


def test_the_file_is_what_the_table_gives() -> None:
    assert SCHEMA.read_text("utf-8") == render(), "run tools/gen_schema"


def test_the_tool_notices_drift(tmp_path: Path) -> None:
    copy = tmp_path / "tools" / "gen_schema"
    copy.parent.mkdir()
    copy.write_text((TOP / "tools" / "gen_schema").read_text("utf-8"), "utf-8")
    (tmp_path / "spool_schema").mkdir()
    (tmp_path / "blockpty").symlink_to(TOP / "blockpty")

    def tool(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-B", str(copy), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    assert tool("--check").returncode == 1
    assert tool().returncode == 0
    assert tool("--check").returncode == 0
    written = tmp_path / "spool_schema" / "operations-v1.json"
    assert written.read_text("utf-8") == render()
    written.write_text(render().replace("1000", "1001", 1), "utf-8")
    drifted = tool("--check")
    assert drifted.returncode == 1 and "tools/gen_schema" in drifted.stderr


def test_every_definition_is_a_valid_schema() -> None:
    for schema in document()["$defs"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("name", OPERATIONS)
def test_requests_fit_their_schema(name: str) -> None:
    validator(OPERATIONS[name].request.__name__).validate(PARAMS[name])


# JSON has no bytes and does not tell 80.0 from 80; `$` in a pattern means another thing to Python's own `re`.
IN_JSON = [
    (name, params)
    for name, params, _ in REFUSED
    if not any(isinstance(value, (bytes, float)) or value == "x\n" for value in params.values())
]


@pytest.mark.parametrize(("name", "params"), IN_JSON)
def test_what_a_request_refuses_its_schema_refuses(name: str, params: dict[str, Any]) -> None:
    assert not validator(OPERATIONS[name].request.__name__).is_valid(params)


@pytest.mark.parametrize(
    "match",
    [
        "x", {"regex": "x+"}, {"token": "PROMPT"}, {"idle_ms": 5}, {"text": "x", "ignore_case": True},
        ["a", {"token": "EOF"}],
    ],
)  # fmt: skip
def test_conditions_of_the_contract_fit(match: Any) -> None:
    for params in ({"match": match}, {"match": "x", "stop": match}):
        validator("WaitForRequest").validate({"conversation_id": "c1", **params})


@pytest.mark.parametrize("match", ["", None, {}, {"regx": "x"}, {"token": "DONE"}, {"regex": "a", "idle_ms": 1}, [], 7])
def test_what_is_no_condition_does_not_fit(match: Any) -> None:
    assert not validator("WaitForRequest").is_valid({"conversation_id": "c1", "match": match})


@pytest.mark.parametrize("name", RESULTS)
def test_results_fit_their_schema_and_all_fields_are_promised(name: str) -> None:
    result = json.loads(json.dumps(RESULTS[name].to_dict()))
    definition = OPERATIONS[name].result.__name__
    validator(definition).validate(result)
    schema = document()["$defs"][definition]
    left_out = OPERATIONS[name].result.LEFT_OUT  # type: ignore[union-attr]
    assert list(result) == schema["required"] == [one for one in schema["properties"] if one not in left_out]
    assert not validator(definition).is_valid({**result, "ok": False})


def test_every_operation_is_in_the_file() -> None:
    described = document()["operations"]
    assert list(described) == list(OPERATIONS)
    for name, operation in OPERATIONS.items():
        assert described[name]["positional"] == list(operation.positional)
        assert described[name]["description"].split() == operation.doc.split()


def test_every_error_code_of_the_contract_exists_or_is_named_here() -> None:
    assert set(error_codes()) == (set(CONTRACT_CODES) - set(NOT_YET)) | set(ADDED)
    assert set(NOT_YET) <= set(CONTRACT_CODES)
    assert all(error_codes().values())
    assert error_codes()["bad_request"] == BadRequest.__doc__


def test_errors_fit_the_error_shape() -> None:
    validator("Error").validate(Busy("a block is running", hint="wait", details={"block_id": "b7"}).to_dict())
    assert not validator("Error").is_valid({"ok": False, "error": "busy"})
