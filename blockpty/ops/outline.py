"""The table without its models, for a program that is over before they are loaded: a command of the command line.

Rules of this file: nothing is said here about an operation or a parameter. It reads `operations-v1.json`, which is
generated from the table (blockpty.ops.schema) and shipped with the package; a test holds the two equal. It checks no
parameter: who has only an outline leaves that to the server.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from blockpty.errors import BadRequest, InternalError
from blockpty.model import results
from blockpty.ops.kinds import Effect, Shape


@dataclass(frozen=True, slots=True)
class Outline:
    """One line of the table.

    Attributes:
        name, effect, shape, route, positional: as in `Operation`.
        doc: the description, a line for each paragraph.
        result: class of the result; None for a stream.
        parameters: the JSON Schema of each, by name, in the order of the Python signature.
        required: names of those that must be given.
    """

    name: str
    effect: Effect
    shape: Shape
    route: tuple[str, str]
    positional: tuple[str, ...]
    doc: str
    result: type[results.Result] | None
    parameters: Mapping[str, Mapping[str, Any]]
    required: frozenset[str]


@functools.cache
def outlines() -> dict[str, Outline]:
    """Return all of them, in the order of the table."""
    document = json.loads(_file().read_bytes())
    return {name: _outline(name, line, document["$defs"]) for name, line in document["operations"].items()}


def outline(name: str) -> Outline:
    """Return one; raises BadRequest."""
    try:
        return outlines()[name]
    except KeyError:
        raise BadRequest(f"no operation is called {name[:40]!r}", hint=f"one of {', '.join(outlines())}") from None


def _outline(name: str, line: Mapping[str, Any], definitions: Mapping[str, Any]) -> Outline:
    request = definitions[line["request"]["$ref"].rpartition("/")[2]]
    shape = Shape(line["shape"])
    return Outline(
        name=name,
        effect=Effect(line["effect"]),
        shape=shape,
        route=(line["route"]["method"], line["route"]["path"]),
        positional=tuple(line["positional"]),
        doc=line["description"],
        result=None if shape is Shape.STREAM else getattr(results, line["result"]["$ref"].rpartition("/")[2]),
        parameters=request["properties"],
        required=frozenset(request.get("required", ())),
    )


def _file() -> Path:
    package = Path(__file__).resolve().parents[1]
    for candidate in (package / "_spool_schema", package.parent / "spool_schema"):
        if (path := candidate / "operations-v1.json").is_file():
            return path
    raise InternalError("operations-v1.json is missing", hint="reinstall blockpty")
