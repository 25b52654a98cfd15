"""JSON Schema of the table as one document, `spool_schema/operations-v1.json`.

Generated, never edited: tools/gen_schema writes it, a test and `tools/gen_schema --check` compare. What differs between
versions of pydantic and says nothing (titles, "anything goes") is left out, so that a change is a change of the table.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from msgspec.json import schema_components
from pydantic import TypeAdapter

from blockpty import errors
from blockpty.model.events import Event
from blockpty.ops.operation import Operation, unwrapped
from blockpty.ops.table import OPERATIONS

VERSION: Final = 1

# `items` is false where a tuple has no more than its `prefixItems`, which `maxItems` beside it says already.
_SAYS_NOTHING: Final = (("additionalProperties", True), ("items", False))

_ERROR_SHAPE: Final[dict[str, Any]] = {
    "description": "What every surface answers when an operation fails.",
    "type": "object",
    "properties": {
        "ok": {"const": False},
        "error": {
            "type": "object",
            "properties": {
                "code": {"type": "string", "description": "Stable name; the known ones are under errors."},
                "message": {"type": "string", "description": "What went wrong and where."},
                "hint": {"type": "string", "description": "What to do now; may be empty."},
                "details": {"type": "object", "description": "Structured facts."},
            },
            "required": ["code", "message", "hint", "details"],
        },
    },
    "required": ["ok", "error"],
}


def document() -> dict[str, Any]:
    """Return the whole document; every request and result is under `$defs`."""
    called = [operation for operation in OPERATIONS.values() if operation.result is not Event]
    requests = [operation.request for operation in OPERATIONS.values()]
    _, schemas = TypeAdapter.json_schemas(
        [(kind.__name__, "validation", TypeAdapter(kind)) for kind in requests],
        ref_template="#/$defs/{model}",
    )
    _, answers = schema_components({operation.result for operation in called}, ref_template="#/$defs/{name}")
    definitions = _plain({**schemas["$defs"], **answers})
    for result in {operation.result for operation in called}:
        _complete_result(definitions[result.__name__], getattr(result, "LEFT_OUT", frozenset()))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "operations-v1.json",
        "title": "Operations of blockpty",
        "version": VERSION,
        "operations": {name: _operation(operation) for name, operation in OPERATIONS.items()},
        "errors": dict(sorted(error_codes().items())),
        "$defs": {"Error": _ERROR_SHAPE, **dict(sorted(definitions.items()))},
    }


def render() -> str:
    """Return the content of the file."""
    return json.dumps(document(), indent=2, ensure_ascii=False) + "\n"


def error_codes() -> dict[str, str]:
    """Return every stable code with its meaning; where a base class shares a code, the most specific one says it."""
    meanings: dict[str, str] = {}
    for cls in _error_classes(errors.BlockptyError):
        meanings[cls.code] = (cls.__doc__ or "").strip().partition("\n")[0]
    return meanings


def _error_classes(cls: type[errors.BlockptyError]) -> Iterator[type[errors.BlockptyError]]:
    yield cls
    for child in cls.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from _error_classes(child)


def _operation(operation: Operation) -> dict[str, Any]:
    streamed = operation.result is Event
    return {
        "description": unwrapped(operation.doc),
        "effect": operation.effect.value,
        "shape": operation.shape.value,
        "route": {"method": operation.route[0], "path": operation.route[1]},
        "positional": list(operation.positional),
        "request": {"$ref": f"#/$defs/{operation.request.__name__}"},
        "result": {"$ref": "event-v1.json" if streamed else f"#/$defs/{operation.result.__name__}"},
    }


def _complete_result(schema: dict[str, Any], left_out: frozenset[str]) -> None:
    """Say what `Result.to_dict` does: `ok` is added, and every field is always there but those it may leave out."""
    if "ok" not in schema["properties"]:
        schema["properties"] = {"ok": {"const": True}, **schema["properties"]}
    for field in schema["properties"].values():
        field.pop("default", None)
    schema["required"] = [name for name in schema["properties"] if name not in left_out]


def _plain(schema: Any, *, named: bool = False) -> Any:
    """Drop titles and empty statements; `named` is set where keys are names of parameters or definitions."""
    if isinstance(schema, list):
        return [_plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: unwrapped(value)
        if key == "description" and isinstance(value, str)
        else _plain(value, named=key in ("properties", "$defs") and not named)
        for key, value in schema.items()
        if named or (key != "title" and (key, value) not in _SAYS_NOTHING)
    }
