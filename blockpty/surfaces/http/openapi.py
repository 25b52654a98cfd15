"""OpenAPI document of the table, which `/openapi.json` answers.

Made from the same JSON Schema as `spool_schema/operations-v1.json`; nothing about a parameter is said here again.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping
from typing import Any, Final

from blockpty import __version__
from blockpty.ops.operation import Operation, Shape
from blockpty.ops.schema import document
from blockpty.ops.table import OPERATIONS
from blockpty.surfaces.access import NEEDED
from blockpty.surfaces.faults import STATUS

_SCHEMA: Final = "#/components/schemas/"
_EXTRA_CODES: Final[Mapping[str, int]] = {"the body is too large": 413, "the body is not JSON": 415}
# In OpenAPI 3.1 this describes one event of the stream, as `itemSchema` does from 3.2 on.
_SENT_EVENT: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "event": {"type": "string", "description": "Type of the event; `error` and `end` are the stream's own."},
        "id": {"type": "string", "description": "Number of the event, for Last-Event-ID."},
        "data": {"type": "string", "contentMediaType": "application/json", "description": "The event, in one line."},
    },
    "required": ["event", "data"],
}


@functools.cache
def openapi() -> dict[str, Any]:
    """Return the document."""
    table = _relocated(document())
    paths: dict[str, dict[str, Any]] = {}
    for name, operation in OPERATIONS.items():
        method, path = operation.route
        paths.setdefault(path, {})[method.lower()] = _operation(operation, table["operations"][name], table["$defs"])
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "blockpty",
            "version": __version__,
            "description": "Runs a real shell for your program: exact output and exit status of each command, and "
            "waits for prompts and text. Every answer is one JSON object with `ok`; an error says code, message, hint "
            "and details.",
        },
        "paths": paths,
        "components": {
            "schemas": table["$defs"],
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(operation: Operation, described: Mapping[str, Any], schemas: Mapping[str, Any]) -> dict[str, Any]:
    request = schemas[operation.request.__name__]
    method, path = operation.route
    in_path = [name for name in request["properties"] if f"{{{name}}}" in path]
    spec: dict[str, Any] = {
        "operationId": operation.name,
        "summary": described["description"].partition("\n")[0],
        "description": described["description"],
        "x-effect": operation.effect.value,
        "x-scope": NEEDED[operation.effect].name.lower(),
        "parameters": [_parameter(name, request["properties"][name], "path", True) for name in in_path],
        "responses": _responses(operation),
    }
    rest = {name: schema for name, schema in request["properties"].items() if name not in in_path}
    required = [name for name in request.get("required", ()) if name in rest]
    if method == "GET":
        spec["parameters"] += [_parameter(name, schema, "query", name in required) for name, schema in rest.items()]
        if operation.shape is Shape.STREAM:
            after = {"type": "string", "pattern": "^[0-9]{0,15}$", "description": "Go on after this event."}
            spec["parameters"].append(_parameter("Last-Event-ID", after, "header", False))
    else:
        body: dict[str, Any] = {"type": "object", "properties": rest, "additionalProperties": False}
        if required:
            body["required"] = required
        # Also where every parameter may be left out: a request without a type might be one that a page made (415).
        spec["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    return spec


def _parameter(name: str, schema: Mapping[str, Any], place: str, required: bool) -> dict[str, Any]:
    schema = dict(schema)
    description = schema.pop("description", "")
    if place != "path" and "anyOf" in schema:
        # In a URL what is not given is left out; there is no null.
        kinds = [kind for kind in schema.pop("anyOf") if kind != {"type": "null"}]
        schema = {**kinds[0], **schema} if len(kinds) == 1 else {"anyOf": kinds, **schema}
        if schema.get("default", ...) is None:
            del schema["default"]
    return {"name": name, "in": place, "required": required, "description": description, "schema": schema}


def _responses(operation: Operation) -> dict[str, Any]:
    if operation.shape is Shape.STREAM:
        content = {"text/event-stream": {"schema": _SENT_EVENT}}
    else:
        content = {"application/json": {"schema": {"$ref": _SCHEMA + operation.result.__name__}}}
    answers: dict[str, Any] = {"200": {"description": "It went well.", "content": content}}
    error = {"application/json": {"schema": {"$ref": _SCHEMA + "Error"}}}
    codes: dict[int, list[str]] = {}
    for code, status in (*STATUS.items(), *_EXTRA_CODES.items()):
        codes.setdefault(status, []).append(code)
    for status, names in sorted(codes.items()):
        answers[str(status)] = {"description": ", ".join(names), "content": error}
    return answers


def _relocated(schema: Any) -> Any:
    """Return the document with its definitions where OpenAPI has them, and pairs as lists of two.

    What makes clients and tests from OpenAPI wants `items` of every array; some take `prefixItems` for a mistake.
    """
    if isinstance(schema, dict):
        found = {
            key: value.replace("#/$defs/", _SCHEMA) if key == "$ref" else _relocated(value)
            for key, value in schema.items()
        }
        pair = found.pop("prefixItems", None)
        if pair is not None:
            kinds = [kind for place, kind in enumerate(pair) if kind not in pair[:place]]
            found["items"] = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
        return found
    return [_relocated(item) for item in schema] if isinstance(schema, list) else copy.copy(schema)
