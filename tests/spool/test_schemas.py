"""The schemas of spool_schema/: complete, strict, described; and the check that holds every test's lines to them."""

from __future__ import annotations

import copy
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from blockpty.engine.marks import KINDS
from blockpty.engine.states import TRANSITIONS, ShellState, Stimulus
from blockpty.model.block import BLOCK_KINDS, BLOCK_STATES, Block
from blockpty.model.entries import ENTRY_KINDS
from blockpty.model.events import EVENT_TYPES
from tests.support.record_fixtures import every
from tests.support.schemas import SCHEMAS, check_files, kinds, problem, schema, validator

NAMES = ("event-v1", "timeline-v1", "block-v1", "meta-v1", "audit-v1")
README = (SCHEMAS / "README.md").read_text("utf-8")
META: dict[str, Any] = {
    "format": 1, "conversation_id": "c1", "created_ts": 1_700_000_000_000, "shell": "",
    "open": {"shell": None, "cwd": "/work", "cols": 80, "rows": 24, "login": False, "persist": True},
}  # fmt: skip


def samples() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield one line of every form there is in the fixtures, with the schema it belongs to."""
    seen = set()
    for name, key in (("event-v1", "event"), ("timeline-v1", "timeline"), ("block-v1", "block")):
        for record in every(key):
            note = record.get("note")
            inner = tuple(note) if isinstance(note, dict) else ()
            form = (name, record.get("type"), record.get("kind"), record.get("reason"), tuple(record), inner)
            if form not in seen and problem(name, record) is None:
                seen.add(form)
                yield name, record
    yield "meta-v1", META


SAMPLES = list(samples())


def parts(node: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every object of a schema with where it stands."""
    if isinstance(node, dict):
        yield path, node
        for key, value in node.items():
            if key not in ("enum", "const", "required", "if", "then", "else"):
                yield from parts(value, f"{path}/{key}")
    elif isinstance(node, list):
        for number, value in enumerate(node):
            yield from parts(value, f"{path}/{number}")


@pytest.mark.parametrize("name", NAMES)
def test_it_is_a_schema(name: str) -> None:
    loaded = schema(name)
    jsonschema.Draft202012Validator.check_schema(loaded)
    assert loaded["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert loaded["$id"] == f"{name}.json"
    assert loaded["title"] and loaded["description"]
    assert (SCHEMAS / f"{name}.json").read_text("utf-8") == json.dumps(loaded, indent=2, ensure_ascii=False) + "\n"


def test_they_know_what_the_program_knows() -> None:
    assert kinds("event-v1") == EVENT_TYPES
    assert kinds("timeline-v1") == ENTRY_KINDS
    block = schema("block-v1")["properties"]
    assert tuple(block) == Block.__struct_fields__
    assert set(block["kind"]["enum"]) == set(BLOCK_KINDS)
    assert {*block["state"]["enum"], "running"} == set(BLOCK_STATES)
    events = schema("event-v1")["$defs"]
    assert set(events["spoofed_mark"]["properties"]["kind"]["enum"]) == KINDS
    unexpected = events["anomaly"]["oneOf"][3]["properties"]
    # The END of another line differs from any END only where a line was submitted, an entry is abandoned only where
    # hooks are awaited, and a submitted line comes late only behind a prompt; there all of them are in the table.
    listed = (Stimulus.OTHER_END, Stimulus.ENTRY_ABANDONED, Stimulus.LOADED)
    pairs = [
        (state, stimulus)
        for state in ShellState
        for stimulus in Stimulus
        if TRANSITIONS.get((state, stimulus)) is None and stimulus not in listed
    ]
    assert set(unexpected["reason"]["enum"]) == {f"unexpected_{stimulus.value}" for _, stimulus in pairs}
    assert set(unexpected["state"]["enum"]) == {state.value for state, _ in pairs}


@pytest.mark.parametrize("name", NAMES)
def test_every_field_is_described_and_bounded(name: str) -> None:
    loaded = schema(name)
    for path, part in parts(loaded):
        if path.endswith("/properties"):
            for field, what in part.items():
                shared = what.get("$ref", "").removeprefix("#/$defs/")
                said = what.get("description") or loaded["$defs"][shared].get("description", "")
                assert len(said) > 3, f"{path}/{field}"
        types = part.get("type", ())
        if "integer" in types:
            assert {"minimum", "maximum"} <= part.keys(), f"{path} has no range"
        if types == "object" and "properties" in part:
            # A line of the audit log has fields of its type as well.
            assert name == "audit-v1" or part["additionalProperties"] is False, f"{path} lets anything in"
            assert set(part["required"]) <= set(part["properties"])
        assert "number" not in types, f"{path}: numbers are whole"


@pytest.mark.parametrize(("name", "record"), SAMPLES)
def test_every_line_is_held_to_every_field(name: str, record: dict[str, Any]) -> None:
    assert problem(name, record) is None
    assert validator(name).is_valid(record), "by the whole schema as well"
    assert problem(name, {**record, "surprise": 1}) is not None
    optional = {"submit", "hooks", "more", "redact"}
    for field in record:
        without = {key: value for key, value in record.items() if key != field}
        # Older records name no principal of an input.
        left_out = field in optional or (field == "principal" and "author" in record)
        # Only where it is not the usual end.
        left_out |= (field, record.get("type") or record.get("kind")) in {("reason", "shell_exit"), ("source", "spawn")}
        assert (problem(name, without) is None) == left_out, field
        wrong: tuple[Any, ...] = ([[]], {"a": []}, -1, 1.5)
        for value in wrong:
            assert problem(name, {**record, field: value}) is not None, f"{field} may be {value!r}"


@pytest.mark.parametrize(("name", "record"), SAMPLES)
def test_fields_stand_in_the_order_of_the_schema(name: str, record: dict[str, Any]) -> None:
    known = record.get("type" if name == "event-v1" else "kind")
    described = schema(name)["$defs"][known] if name in ("event-v1", "timeline-v1") else schema(name)
    forms = described.get("oneOf", [described])
    orders = [[field for field in form["properties"] if field in record] for form in forms]
    assert list(record) in orders


@pytest.mark.parametrize(
    ("name", "kind", "change"),
    [
        ("event-v1", "agent_block_begin", {"kind": "session"}),
        ("event-v1", "agent_block_begin", {"session_id": "s1"}),
        ("event-v1", "agent_block_begin", {"block_id": "7"}),
        ("event-v1", "agent_block_begin", {"block_seq": 0}),
        ("event-v1", "agent_block_begin", {"conversation_id": "../x"}),
        ("event-v1", "agent_block_delta", {"span": [1]}),
        ("event-v1", "agent_block_delta", {"span": [1, 2, 3]}),
        ("event-v1", "agent_block_delta", {"data": "only when live"}),
        ("event-v1", "agent_block_end", {"state": "running"}),
        ("event-v1", "prompt", {"exit_status": 256}),
        ("event-v1", "prompt", {"exit_status": -1}),
        ("event-v1", "input", {"redacted": True}),
        ("event-v1", "input", {"data": "secret"}),
        ("event-v1", "input", {"author": "stranger"}),
        ("event-v1", "shell_exit", {"signal": "9"}),
        ("event-v1", "eof", {"type": "end_of_file"}),
        ("timeline-v1", "input", {"redacted": True}),
        ("timeline-v1", "input", {"data_b64": "eA=="}),
        ("timeline-v1", "silence", {"ms": 0}),
        ("timeline-v1", "spawn", {"nonce": "short"}),
        ("timeline-v1", "spawn", {"transport": "magic"}),
        ("timeline-v1", "note", {"note": {"type": "poem"}}),
        ("timeline-v1", "tick", {"ts": 1.5}),
        ("block-v1", None, {"session_id": "s1"}),
        ("block-v1", None, {"out_path": "../../etc/passwd"}),
        ("block-v1", None, {"span": [0, None]}),
        ("meta-v1", None, {"format": 5}),
        ("meta-v1", None, {"crc": 7}),
        ("timeline-v1", "tick", {"crc": "00"}),
        ("meta-v1", None, {"open": {**META["open"], "env": {"TOKEN": "secret"}}}),
    ],
)
def test_what_is_refused(name: str, kind: str | None, change: dict[str, Any]) -> None:
    record = next(
        record for known, record in SAMPLES if known == name and kind in (None, record.get("type"), record.get("kind"))
        and not record.get("session_id") and record.get("state") != "lost" and "redacted" not in record
    )  # fmt: skip
    assert problem(name, record) is None
    assert problem(name, {**record, **change}) is not None


# The check behind the fixture `home`


def conversation(home: Path, **files: bytes) -> Path:
    directory = home / "conversations" / "c1"
    directory.mkdir(parents=True)
    for name, content in files.items():
        (directory / name.replace("_", ".")).write_bytes(content)
    return directory


def test_the_check_finds_a_wrong_line_and_says_where(tmp_path: Path) -> None:
    good = b'{"offset":0,"ts":1,"kind":"tick"}\n'
    directory = conversation(tmp_path, timeline_jsonl=good + b'{"offset":0,"ts":-1,"kind":"tick"}\n' + good)
    (found,) = check_files(tmp_path)
    assert found.startswith("c1/timeline.jsonl line 1: $.ts: -1 is less than the minimum")
    (directory / "timeline.jsonl").write_bytes(good + b"\n" + good)
    assert len(check_files(tmp_path)) == 1
    (directory / "timeline.jsonl").write_bytes(good + good[:-5])
    assert check_files(tmp_path) == [], "a torn line is no line"


@pytest.mark.parametrize("name", ["events_jsonl", "blocks_jsonl", "timeline_jsonl", "meta_json"])
def test_the_check_reads_every_file(tmp_path: Path, name: str) -> None:
    conversation(tmp_path, **{name: b'{"x":1}\n'})
    (found,) = check_files(tmp_path)
    assert name.replace("_", ".") in found


def test_the_check_says_no_more_than_can_be_read(tmp_path: Path) -> None:
    conversation(tmp_path, events_jsonl=b"{}\n" * 50)
    assert len(check_files(tmp_path)) == 11
    assert check_files(tmp_path / "nothing") == []


def test_what_a_test_of_the_host_gives_is_its_own(tmp_path: Path) -> None:
    spawn = b'{"offset":0,"ts":1,"kind":"spawn","anything":1,"pid":7,"transport":"splice"}\n'
    note = b'{"offset":0,"ts":1,"kind":"note","note":"free"}\n'
    directory = conversation(tmp_path, timeline_jsonl=note + spawn.replace(b',"anything":1', b""))
    assert check_files(tmp_path) == []
    (directory / "meta.json").write_text(json.dumps(META))
    assert len(check_files(tmp_path)) == 2, "but in a conversation of an engine it is part of the format"


# The specification in words


def test_the_readme_names_everything() -> None:
    words = set(re.findall(r"`([^`\n]+)`", README))
    for name in ("event-v1", "timeline-v1"):
        assert kinds(name) <= words, kinds(name) - words
    assert words >= KINDS
    for name in NAMES:
        assert f"{name}.json" in README
    tables = [part for name in NAMES for path, part in parts(schema(name)) if path.endswith("/properties")]
    fields = {field for table in tables for field in table}
    plain = set(re.findall(r"\w+", README))
    assert fields <= plain, sorted(fields - plain)


def test_the_examples_in_the_readme_are_true() -> None:
    examples = [json.loads(line) for line in re.findall(r"^(\{.*\})$", README, re.MULTILINE)]
    assert len(examples) >= 10
    for record in examples:
        name = "event-v1" if "type" in record else "meta-v1" if "format" in record else "block-v1"
        name = "timeline-v1" if "offset" in record else name
        assert problem(name, record) is None, record


def test_they_are_in_the_wheel() -> None:
    project = tomllib.loads((SCHEMAS.parent / "pyproject.toml").read_text("utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert "spool_schema" in wheel["only-include"]
    assert wheel["sources"]["spool_schema"] == "blockpty/_spool_schema"


def test_nothing_changes_a_sample() -> None:
    before = copy.deepcopy(SAMPLES)
    for name, record in SAMPLES:
        problem(name, record)
    assert before == SAMPLES
