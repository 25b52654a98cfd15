"""Whatever a record holds: derived alike for every cut, blocks in order, resumable anywhere, no nonce in files."""

from __future__ import annotations

import itertools
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from blockpty.engine.machine import Machine
from blockpty.engine.marks import MAX_MARK
from blockpty.model.entries import ENTRY_KINDS, Entry
from blockpty.testing import FakePty, Recording, derive
from tests.support.machines import NONCE, property_settings, steps_after, stops_of, through_json
from tests.support.random_records import PLACES, RECORDS, SHELL, _shell


@property_settings(300)
@given(RECORDS, PLACES)
def test_files_are_the_same_for_every_cut(recording: Recording, places: list[int]) -> None:
    expected = derive(recording)
    size = len(recording.stream)
    for cuts in (range(size + 1), [place % (size + 1) for place in places]):
        assert derive(recording, cuts) == expected


@property_settings(300)
@given(RECORDS)
def test_invariants(recording: Recording) -> None:
    derived = derive(recording)
    events = [orjson.loads(line) for line in derived.events.splitlines()]
    assert [event["seq"] for event in events] == list(range(len(events)))
    assert all(0 <= event["cursor"] <= len(recording.stream) for event in events)
    begun = [event["block_id"] for event in events if event["type"] == "agent_block_begin"]
    ended = [event["block_id"] for event in events if event["type"] == "agent_block_end"]
    assert begun == [f"b{number}" for number in range(1, len(begun) + 1)]
    assert ended == begun[: len(ended)]
    assert len(begun) - len(ended) <= 1
    blocks = [orjson.loads(line) for line in derived.blocks.splitlines()]
    at = 0
    for block in blocks:
        begin, end = block["span"]
        assert at <= begin <= end <= len(recording.stream)
        at = end
        assert block["out_bytes"] == len(derived.outputs[block["out_path"]])
    deltas = [event["span"] for event in events if event["type"] == "agent_block_delta"]
    assert all(begin < end for begin, end in deltas)
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(deltas))
    for data in (derived.events, derived.blocks, *derived.outputs.values()):
        assert NONCE.encode() not in data


@property_settings(150)
@given(RECORDS, PLACES)
def test_going_on_from_a_snapshot_is_going_on(recording: Recording, places: list[int]) -> None:
    size = len(recording.stream)
    stops, events = stops_of(recording, [place % (size + 1) for place in [*places, *range(0, size, 37)]])
    for stop in stops:
        machine = Machine(through_json(stop.state))
        later = []
        for step in steps_after(recording, stop):
            later += (machine.feed(step) if isinstance(step, bytes) else machine.apply(step))[0]
        assert later == events[stop.events :]
        assert machine.state == stops[-1].state


@property_settings(300)
@given(st.binary(max_size=600), PLACES)
def test_no_bytes_raise(data: bytes, places: list[int]) -> None:
    recording = Recording(data, [Entry(0, 0, "spawn", {"nonce": NONCE, "pid": 42})])
    assert derive(recording) == derive(recording, range(len(data))) == derive(recording, places)


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**63), 2**63), st.floats(allow_nan=False), st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=6,
)
NAMES = st.sampled_from(
    ["instance", "nonce", "pid", "shell", "hooks", "cols", "rows", "ms", "icanon", "echo", "foreground",
     "replaced", "data",
     "author", "bytes", "data_b64", "submit", "redacted", "accepted", "note", "status", "signal", "state"]
)  # fmt: skip
DAMAGED = st.lists(
    st.tuples(st.sampled_from([*sorted(ENTRY_KINDS), "else"]), st.dictionaries(NAMES, JSON, max_size=6)), max_size=6
)


@property_settings(400)
@given(DAMAGED, st.lists(SHELL, max_size=6))
def test_no_entries_raise(entries: list[tuple[str, dict[str, Any]]], acts: list[str]) -> None:
    pty = FakePty()
    pty.spawn(nonce=NONCE)
    for place, (kind, fields) in enumerate(entries):
        if place < len(acts):
            _shell(pty, acts[place])
        pty.recording.entries.append(Entry(len(pty.recording.stream), place, kind, fields))
        pty.output(b"out\r\n")
    for event in derive(pty.recording).events.splitlines():
        orjson.loads(event)


@property_settings(100)
@given(RECORDS)
def test_little_is_held_back(recording: Recording) -> None:
    machine, fed = Machine(), 0
    for step in recording.steps(range(len(recording.stream))):
        machine.feed(step) if isinstance(step, bytes) else machine.apply(step)
        fed += len(step) if isinstance(step, bytes) else 0
        assert fed - MAX_MARK <= machine.classified <= fed
