"""The versioned fixtures of spool_schema/: what this version makes of every record that an earlier one has written.

A fixture is a small conversation, one JSON object a line: a heading, then stream pieces and timeline entries in the
order in which they were recorded, then every line of events.jsonl and blocks.jsonl and every `.out` file that follows
from them.

Nothing here overwrites a fixture. When one does not come out byte for byte, a candidate is written beside the other
temporary files of the test, to be compared by hand: if the difference is meant, it is a new version of the format.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import orjson
import pytest

from blockpty.model.block import BLOCK_KINDS, BLOCK_STATES, Block
from blockpty.model.entries import ENTRY_KINDS, Entry
from blockpty.model.events import EVENT_TYPES, Event
from blockpty.testing import Derived, Recording, derive
from tests.support.record_fixtures import FIXTURES, every, lines
from tests.support.schemas import problem

NAMES = [path.stem for path in FIXTURES]


def load(path: Path) -> tuple[dict[str, Any], Recording]:
    """Return the heading and the record of a fixture."""
    heading, *rest = lines(path)
    recording = Recording()
    for line in rest:
        if "stream" in line or "stream_b64" in line:
            recording.stream += content(line, "stream") * line.get("times", 1)
        elif "timeline" in line:
            recording.entries.append(Entry.from_dict(line["timeline"]))
    return heading, recording


def content(line: dict[str, Any], name: str) -> bytes:
    return line[name].encode() if name in line else base64.b64decode(line[f"{name}_b64"])


def render(path: Path, derived: Derived) -> bytes:
    """Return the fixture as it is with its record as given and everything derived from it as just made."""
    given = [line for line in lines(path) if not {"event", "block", "out"} & set(line)]
    made: list[dict[str, Any]] = [{"event": orjson.loads(line)} for line in derived.events.splitlines()]
    made += [{"block": orjson.loads(line)} for line in derived.blocks.splitlines()]
    made += [{"out": name, **_shown(derived.outputs[name])} for name in sorted(derived.outputs)]
    return b"".join(orjson.dumps(line) + b"\n" for line in [*given, *made])


def _shown(data: bytes) -> dict[str, Any]:
    if len(data) > 1024 and len(set(data)) == 1:
        return {"data": data[:1].decode("ascii"), "times": len(data)}
    try:
        return {"data": data.decode("utf-8")}
    except UnicodeDecodeError:
        return {"data_b64": base64.b64encode(data).decode("ascii")}


def expected(path: Path) -> Derived:
    """Return what the fixture says the files hold, byte for byte."""
    found = Derived(b"", b"", {})
    events, blocks, outputs = [], [], {}
    for line in path.read_bytes().splitlines():
        if line.startswith(b'{"event":'):
            events.append(line.removeprefix(b'{"event":')[:-1] + b"\n")
        elif line.startswith(b'{"block":'):
            blocks.append(line.removeprefix(b'{"block":')[:-1] + b"\n")
        elif line.startswith(b'{"out":'):
            record = orjson.loads(line)
            outputs[record["out"]] = content(record, "data") * record.get("times", 1)
    return Derived(b"".join([found.events, *events]), b"".join([found.blocks, *blocks]), outputs)


@pytest.mark.parametrize("path", FIXTURES, ids=NAMES)
def test_the_record_gives_these_files(path: Path, tmp_path: Path) -> None:
    heading, recording = load(path)
    assert heading["fixture"] == path.stem
    derived = derive(recording, conversation_id=heading["conversation_id"])
    made = render(path, derived)
    if made != path.read_bytes():
        candidate = tmp_path / path.name
        candidate.write_bytes(made)
        pytest.fail(f"{path.name} comes out differently; compare it with {candidate}", pytrace=False)
    assert derived == expected(path)


@pytest.mark.parametrize("path", FIXTURES, ids=NAMES)
def test_whatever_the_chunks(path: Path) -> None:
    heading, recording = load(path)
    whole = expected(path)
    for step in (1, 2, 3, 5, 64, 1000) if len(recording.stream) < 10_000 else (511, 65_536):
        cuts = range(0, len(recording.stream), step)
        assert derive(recording, cuts, conversation_id=heading["conversation_id"]) == whole


@pytest.mark.parametrize("path", FIXTURES, ids=NAMES)
def test_a_mismatch_is_never_accepted(path: Path, tmp_path: Path) -> None:
    """The test above can fail, and it leaves the fixture as it was."""
    broken = tmp_path / path.name
    broken.write_bytes(path.read_bytes().replace(b'{"event":{"seq":0,', b'{"event":{"seq":7,', 1))
    before = broken.read_bytes()
    (tmp_path / "candidates").mkdir()
    with pytest.raises(pytest.fail.Exception):
        test_the_record_gives_these_files(broken, tmp_path / "candidates")
    assert broken.read_bytes() == before
    assert (tmp_path / "candidates" / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("path", FIXTURES, ids=NAMES)
def test_what_is_read_is_written_again_as_it_was(path: Path) -> None:
    """The other direction: every line becomes an object, and the object becomes the same bytes."""
    conversation_id = lines(path)[0]["conversation_id"]
    written = b""
    for line in lines(path):
        if "timeline" in line:
            line["timeline"] = Entry.from_dict(line["timeline"]).to_dict()
        elif "event" in line:
            line["event"] = Event.from_dict(line["event"]).to_dict(conversation_id)
        elif "block" in line:
            line["block"] = Block.from_dict(line["block"]).to_dict()
        written += orjson.dumps(line) + b"\n"
    assert written == path.read_bytes()


@pytest.mark.parametrize("path", FIXTURES, ids=NAMES)
def test_every_line_is_what_the_schemas_say(path: Path) -> None:
    later_version = path.stem.startswith("unknown")
    for line in lines(path):
        if "timeline" in line and not later_version:
            assert problem("timeline-v1", line["timeline"]) is None, line
        if "event" in line:
            assert problem("event-v1", line["event"]) is None, line
        if "block" in line:
            assert problem("block-v1", line["block"]) is None, line


def test_the_fixtures_leave_nothing_out() -> None:
    assert {event["type"] for event in every("event")} == EVENT_TYPES
    assert {entry["kind"] for entry in every("timeline")} >= ENTRY_KINDS
    assert {block["state"] for block in every("block")} == set(BLOCK_STATES) - {"running"}
    assert {block["kind"] for block in every("block")} == set(BLOCK_KINDS)
    assert {block["degraded"] for block in every("block")} == {
        None, "begin_lost", "end_lost", "hooks_lost", "shell_entered", "no_hooks", "redrawn",
    }  # fmt: skip
    assert {event["reason"] for event in every("event") if event["type"] == "spoofed_mark"} == {
        "nonce", "instance", "sequence",
    }  # fmt: skip
    reasons = {event["reason"].partition("_")[0] for event in every("event") if event["type"] == "anomaly"}
    assert reasons == {"malformed", "hooks", "input", "unexpected"}
