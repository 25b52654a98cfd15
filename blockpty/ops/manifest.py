"""Manifest of the operations: the table without its models, for clients and for commands of the command line.

Rules of this file: nothing is said here about an operation or a parameter. It reads `operations-v1.json`, which is
generated from the table (blockpty.ops.schema) and shipped with the package; a test holds the two equal. It checks no
parameter: a program that has only the manifest leaves that to the server.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from msgspec import Struct

from blockpty.errors import BadRequest, InternalError
from blockpty.model import results


class Effect(Enum):
    """Effect of an operation on the shell."""

    READ = "read"
    """Nothing."""
    INPUT = "input"
    """Something reaches the programs in the terminal: bytes, a size, a signal."""
    LIFECYCLE = "lifecycle"
    """A shell or an interactive session begins or ends."""


class Shape(Enum):
    """Shape of a result."""

    CALL = "call"
    """One result."""
    STREAM = "stream"
    """Events, one after another."""


class ManifestEntry(Struct, frozen=True):
    """One line of the table.

    Attributes:
        name, effect, shape, route, positional: as in `Operation`.
        doc: the description, a line for each paragraph.
        result_name: name of the result's class; None for a stream.
        parameters: the JSON Schema of each, by name, in the order of the Python signature.
        required: names of those that must be given.
    """

    name: str
    effect: Effect
    shape: Shape
    route: tuple[str, str]
    positional: tuple[str, ...]
    doc: str
    result_name: str | None
    parameters: Mapping[str, Mapping[str, Any]]
    required: frozenset[str]

    @property
    def result(self) -> type[results.Result] | None:
        """Class of the result, which is loaded with its file; None for a stream."""
        if self.result_name is None:
            return None
        found: type[results.Result] = getattr(results, self.result_name)
        return found


def manifest() -> dict[str, ManifestEntry]:
    """Return all of them, in the order of the table."""
    return {name: _entry(name) for name in operation_names()}


def operation_names() -> tuple[str, ...]:
    """Return the names of all, in the order of the table."""
    return tuple(_document()["operations"])


def manifest_entry(name: str) -> ManifestEntry:
    """Return one; raises BadRequest."""
    try:
        return _entry(name)
    except KeyError:
        known = ", ".join(operation_names())
        raise BadRequest(f"no operation is called {name[:40]!r}", hint=f"one of {known}") from None


def definitions() -> Mapping[str, Any]:
    """Return the JSON Schemas of all requests and results, by name; they are shared, and not to be changed."""
    found: dict[str, Any] = _document()["$defs"]
    return found


def offered(names: Iterable[str]) -> list[str]:
    """Return those names of an engine or a client that its users call; all others are for the surfaces."""
    known = {*operation_names(), "conversation", "home"}
    return [name for name in names if name.startswith("__") or name in known]


@functools.cache
def _document() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(_file().read_bytes())
    return document


@functools.cache
def _entry(name: str) -> ManifestEntry:
    line = _document()["operations"][name]
    request = definitions()[line["request"]["$ref"].rpartition("/")[2]]
    shape = Shape(line["shape"])
    return ManifestEntry(
        name=name,
        effect=Effect(line["effect"]),
        shape=shape,
        route=(line["route"]["method"], line["route"]["path"]),
        positional=tuple(line["positional"]),
        doc=line["description"],
        result_name=None if shape is Shape.STREAM else line["result"]["$ref"].rpartition("/")[2],
        parameters=request["properties"],
        required=frozenset(request.get("required", ())),
    )


def _file() -> Path:
    package = Path(__file__).resolve().parents[1]
    for candidate in (package / "_spool_schema", package.parent / "spool_schema"):
        if (path := candidate / "operations-v1.json").is_file():
            return path
    raise InternalError("operations-v1.json is missing", hint="reinstall blockpty")
