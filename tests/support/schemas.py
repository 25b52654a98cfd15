"""Holds every line that a test has written to the schemas of spool_schema/.

`check_files(home)` returns what is wrong with the files below a home, one sentence each. It looks at whole lines only:
a torn last line is no line yet. The fixture `home` calls it after each test; a test that damages files on purpose says
so with `@pytest.mark.damages_files`.

Two libraries look at a line. jsonschema-rs says whether it is allowed, some hundred times faster: the tests of a whole
run write a few hundred thousand lines. What is wrong with one that is not, jsonschema says in better words.

A conversation without a meta.json was made by the host alone, in a test of the host. What the host is given to write
down without looking into it (the caller's part of a spawn, notes, the submit of an input) is anything there, so it is
replaced by a sample first; the host's own part is checked as everywhere.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import jsonschema_rs
import referencing

SCHEMAS = Path(__file__).resolve().parents[2] / "spool_schema"
MAX_PROBLEMS = 10

_SPAWN = {"instance": 1, "nonce": "A" * 22, "shell": "sh", "argv": ["sh"], "cwd": "/", "cols": 80, "rows": 24}
_SUBMIT = {"kind": "command", "cmd": "true", "request": "1.1"}
_NOTE = {"type": "owner", "epoch": 1}


@functools.cache
def schema(name: str) -> dict[str, Any]:
    """Return one of the schemas: event-v1, timeline-v1, block-v1, meta-v1 or audit-v1."""
    loaded: dict[str, Any] = json.loads((SCHEMAS / f"{name}.json").read_bytes())
    return loaded


@functools.cache
def validator(name: str, kind: str | None = None) -> jsonschema.Draft202012Validator:
    """Return a validator of a schema, or of what it says of one type or kind: faster, and more to the point."""
    everything = [(known["$id"], referencing.Resource.from_contents(known)) for known in _all()]
    chosen = {"$ref": schema(name)["$id"] + (f"#/$defs/{kind}" if kind else "")}
    registry: referencing.Registry[Any] = referencing.Registry().with_resources(everything)
    return jsonschema.Draft202012Validator(chosen, registry=registry)


@functools.cache
def _quick(name: str, kind: str | None) -> jsonschema_rs.Draft202012Validator:
    """Return a validator that says yes or no."""
    registry = jsonschema_rs.Registry([(known["$id"], known) for known in _all()])
    chosen = {"$ref": schema(name)["$id"] + (f"#/$defs/{kind}" if kind else "")}
    return jsonschema_rs.Draft202012Validator(chosen, registry=registry)


def _all() -> Iterator[dict[str, Any]]:
    return map(schema, ("event-v1", "timeline-v1", "block-v1", "meta-v1", "audit-v1"))


def kinds(name: str) -> set[str]:
    """Return the types or kinds that a schema knows."""
    return {branch["$ref"].removeprefix("#/$defs/") for branch in schema(name)["oneOf"]}


def problem(name: str, record: Any) -> str | None:
    """Return what is wrong with one record, or None."""
    known = "type" if name == "event-v1" else "kind" if name == "timeline-v1" else None
    kind = record.get(known) if known and isinstance(record, dict) else None
    if known and (not isinstance(kind, str) or kind not in kinds(name)):
        return f"the {known} {kind!r} is not in the schema"
    if _quick(name, kind).is_valid(record):
        return None
    error = jsonschema.exceptions.best_match(validator(name, kind).iter_errors(record))
    return f"{error.json_path}: {error.message}" if error is not None else "refused by jsonschema-rs alone"


def check_files(home: Path) -> list[str]:
    """Return what is wrong with the files of every conversation below a home."""
    found = list(_check_lines(home / "audit.jsonl", "audit-v1", dict, 0))
    for directory in sorted((home / "conversations").glob("*")):
        if directory.is_dir():
            found += [f"{directory.name}/{problem}" for problem in _check_conversation(directory)]
    return found[:MAX_PROBLEMS] + [f"... and {len(found) - MAX_PROBLEMS} more"] * (len(found) > MAX_PROBLEMS)


def _check_conversation(directory: Path) -> Iterator[str]:
    meta = directory / "meta.json"
    complete: Callable[[dict[str, Any]], Mapping[str, Any]] = dict
    if meta.exists():
        wrong = problem("meta-v1", json.loads(meta.read_bytes()))
        if wrong:
            yield f"meta.json: {wrong}"
    else:
        complete = _with_samples
    begins = _begins(directory / "begin.json")
    yield from _check_lines(directory / "timeline.jsonl", "timeline-v1", complete, begins[0])
    yield from _check_lines(directory / "events.jsonl", "event-v1", dict, begins[1])
    yield from _check_lines(directory / "blocks.jsonl", "block-v1", dict, begins[2])


def _begins(path: Path) -> tuple[int, int, int]:
    """Return where timeline and journals of a record begin whose first part is not kept."""
    if not path.exists():
        return 0, 0, 0
    record = json.loads(path.read_bytes())
    return record["timeline"], record["files"]["events"][0], record["files"]["blocks"][0]


def _check_lines(
    path: Path, name: str, complete: Callable[[dict[str, Any]], Mapping[str, Any]], begin: int
) -> Iterator[str]:
    if not path.exists():
        return
    for number, line in enumerate(path.read_bytes()[begin:].split(b"\n")[:-1]):
        try:
            record = json.loads(line)
            wrong = problem(name, complete(record) if isinstance(record, dict) else record)
        except ValueError as error:
            wrong = str(error)
        if wrong:
            yield f"{path.name} line {number}: {wrong} in {line[:300].decode('utf-8', 'replace')}"


def _with_samples(entry: dict[str, Any]) -> Mapping[str, Any]:
    if entry.get("kind") == "spawn":
        return {**entry, **_SPAWN}
    if entry.get("kind") == "note":
        return {**entry, "note": _NOTE}
    return {**entry, "submit": _SUBMIT} if "submit" in entry else entry
