"""JSON Schemas of the tools: the request models in the plain form that every client understands.

Rules of this file: nothing is described here, only rewritten, from the file that is generated of the table: to make the
schemas anew takes a third of a second, in every program that serves an agent. References are put in place, "or null" is
left out where a parameter may simply be missing, and titles say nothing. The limits of this surface replace the wider
ones of the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from blockpty.model.events import Event
from blockpty.ops.manifest import definitions as known_definitions
from blockpty.ops.operation import Operation
from blockpty.ops.requests import Request

NOTE: Final = "mcp_note"
"""Field that is added to a result of which this surface has left something out."""


def input_schema(
    request: type[Request],
    *,
    defaults: Mapping[str, Any] | None = None,
    limits: Mapping[str, int] | None = None,
    without: Iterable[str] = (),
    optional: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the schema of a tool's arguments.

    Args:
        request: the model of the parameters.
        defaults: what is meant on this surface where a parameter is not given.
        limits: largest values of this surface, by parameter; also the default where that is larger or missing.
        without: parameters that mean nothing here.
        optional: required parameters that may be left out here, with what is taken then.
    """
    definitions = known_definitions()
    schema = definitions.get(request.__name__)
    if schema is None:  # of a tool that is no operation
        schema = request.model_json_schema()
        definitions = schema.get("$defs", {})
    properties = {
        name: _argument(_inlined(field, definitions))
        for name, field in schema.get("properties", {}).items()
        if name not in without
    }
    for name, default in (defaults or {}).items():
        properties[name]["default"] = default
    for name, limit in (limits or {}).items():
        field = properties[name]
        field["maximum"] = limit
        field["default"] = min(limit, field.get("default", limit))
    plain: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    for name, default in (optional or {}).items():
        properties[name]["description"] = f"{properties[name]['description']} {default}"
    required = [name for name in schema.get("required", ()) if name in properties and name not in (optional or {})]
    if required:
        plain["required"] = required
    return plain


def output_schema(operation: Operation) -> dict[str, Any]:
    """Return the schema of an operation's structured content: its result, or the one error shape."""
    definitions = known_definitions()
    if operation.result is Event:
        raise ValueError(f"{operation.name} is a stream")
    schema = _inlined(definitions[operation.result.__name__], definitions)
    return outcome_schema(schema["properties"], schema["required"])


def outcome_schema(properties: Mapping[str, Any], required: Iterable[str]) -> dict[str, Any]:
    """Return the schema of a result with these fields, or of the one error shape.

    Some clients hold even the structured content of an error to the tool's schema, so it must allow both.
    """
    error = known_definitions()["Error"]["properties"]["error"]
    fields = {name: field for name, field in properties.items() if name != "ok"}
    return {
        "type": "object",
        "properties": {
            "ok": {"type": "boolean"},
            **fields,
            NOTE: {"type": "string", "description": "What was left out here, and the call that gives the rest."},
            "error": error,
        },
        "required": ["ok"],
        "anyOf": [{"required": [name for name in required if name != "ok"]}, {"required": ["error"]}],
    }


def _inlined(schema: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_inlined(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        target = _inlined(definitions[schema["$ref"].rpartition("/")[2]], definitions)
        return {**target, **{key: value for key, value in schema.items() if key != "$ref"}}
    return {key: _inlined(value, definitions) for key, value in schema.items()}


def _argument(field: dict[str, Any]) -> dict[str, Any]:
    field = {key: value for key, value in field.items() if key != "title"}
    choices = [choice for choice in field.get("anyOf", ()) if choice != {"type": "null"}]
    if len(choices) == 1:
        (choice,) = choices
        field = {**choice, **{key: value for key, value in field.items() if key != "anyOf"}}
    elif choices:
        field["anyOf"] = choices
    if field.get("default", ...) is None:
        del field["default"]
    if "description" in field:
        field["description"] = " ".join(field["description"].split())
    return field
