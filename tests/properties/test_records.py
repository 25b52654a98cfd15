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

PIECES = st.sampled_from(
    [b"text", b"\r\n", b"\r", b"\n", b"\x1b", b"\x1b[1m", b"\x1b]0;t\x07", b"\x1b]", b"\x1b]7717;", b"\x1b]77", b"\x07",
     b"\x1b\\", b"\x18", NONCE.encode(), NONCE[:11].encode(), NONCE[11:].encode(), b"\xff\xc3", b" . /c/1\r\n",
     b"\x1b]133;A\x07", b"\x1b]133;C\x07", b"\x1b]133;C", b"\x1b]7;file:", b"\x1b]633;E\x1b\\",
     b"\x1b]3008;start=1\x07"]
)  # fmt: skip
SHELL = st.sampled_from(["spawn", "begin", "end", "prompt", "redraw", "submit", "late", "out_end", "ps2", "cwd"])
OTHER = st.sampled_from(["silence", "settle", "type", "resize", "tick", "exit", "eof", "interrupt"])
TRICK = st.tuples(st.sampled_from(["replay", "reverse", "truncate", "forge", "miss"]), st.integers(0, 400))
ACTS = st.lists(st.one_of(PIECES, SHELL, SHELL, OTHER, TRICK), max_size=40)
PLACES = st.lists(st.integers(0, 4000), max_size=6)


def _shell(pty: FakePty, act: str) -> None:
    if act in ("begin", "end", "prompt"):
        getattr(pty, act)()
    elif act == "spawn":
        pty.spawn(nonce=NONCE)
    elif act == "submit":
        pty.submit("x", "session" if len(pty.recording.stream) % 2 else "command")
    elif act == "late":
        pty.seq, pty.count = pty.seq + 1, pty.count + 1
        pty.end()
    elif act == "redraw":
        pty.output(pty.mark("PROMPT", x=0))
    else:
        pty.output(pty.mark(act.upper(), d="/tmp"))


def _other(pty: FakePty, act: str) -> None:
    pty.clock.advance(30)
    if act == "silence":
        pty.silence()
    elif act == "settle":
        pty.silence(icanon=False, echo=False, foreground="shell")
    elif act == "type":
        pty.type(b"typed\r")
    elif act == "resize":
        pty.entry("resize", cols=100, rows=30)
    elif act == "interrupt":
        pty.entry("note", note={"type": "interrupt"})
    else:
        pty.entry(act, status=3, signal=None)


def _trick(pty: FakePty, act: str, number: int) -> None:
    stream = pty.recording.stream
    own = pty.mark(("BEGIN", "END", "PROMPT")[number % 3], x=0, p=pty.prompts + 1)
    if act == "replay":
        pty.output(stream[number:])
    elif act == "reverse":
        pty.output(b"\x07".join(reversed(stream[-number:].split(b"\x07"))))
    elif act == "truncate":
        pty.output(own[: number % len(own)])
    elif act == "forge":
        pty.output(own.replace(NONCE.encode(), b"B" * 22))
    else:
        pty.output(own[:number] + b"." + own[number:])


def played(acts: list[Any], places: list[int]) -> Recording:
    """Return the record of these acts, with more silences wherever `places` says."""
    pty = FakePty()
    pty.spawn(nonce=NONCE)
    for act in acts:
        if isinstance(act, bytes):
            pty.output(act)
        elif isinstance(act, tuple):
            if len(pty.recording.stream) < 4000:
                _trick(pty, *act)
        elif act in ("silence", "settle", "type", "resize", "tick", "exit", "eof", "interrupt"):
            _other(pty, act)
        else:
            _shell(pty, act)
    recording = pty.recording
    for number, place in enumerate(places):
        fields = {"ms": 25, "icanon": bool(number % 2), "echo": False, "foreground": ("shell", "child")[number % 3 > 0]}
        recording.entries.append(Entry(place % (len(recording.stream) + 1), 0, "silence", fields))
    recording.entries.sort(key=lambda entry: entry.offset)
    return recording


RECORDS = st.builds(played, ACTS, PLACES)


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
