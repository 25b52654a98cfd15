"""Recordings of real shells: the same events, blocks and outputs whatever the chunks, every wait answered as it was.

Each directory beside this file is a conversation as tools/record_stream has kept it: stream and timeline, and the
events, blocks and outputs that a person has looked at once. Nothing here overwrites them.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from blockpty.runtime.record_reader import Position
from blockpty.runtime.verify import Seen, verify
from blockpty.spool.layout import Layout
from blockpty.testing import Derived, Recording, derive, every_split
from tests.support.profile import LONG, some_of
from tests.support.schemas import problem

HERE = Path(__file__).parent
NAMES = sorted(path.parent.name for path in HERE.glob("*/timeline.jsonl"))
SMALL = 1100
ABOUT = (
    *("plain", "at-the-prompt", "syntax-error", "session", "no-newline", "colour", "multi-line", "interrupted"),
    *("exit-inside", "reset", "own-stream"),
)


@cache
def recording(name: str) -> Recording:
    return Recording.load(HERE / name)


@cache
def expected(name: str) -> Derived:
    place = HERE / name
    outputs = {f"blocks/{path.name}": path.read_bytes() for path in (place / "blocks").iterdir()}
    return Derived((place / "events.jsonl").read_bytes(), (place / "blocks.jsonl").read_bytes(), outputs)


def lines(name: str, file: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (HERE / name / file).read_bytes().splitlines()]


def texts(name: str) -> list[bytes]:
    """Return the outputs of a recording, in the order of the blocks."""
    return [expected(name).outputs[block["out_path"]] for block in lines(name, "blocks.jsonl")]


def test_both_shells_are_recorded_in_every_way() -> None:
    assert sorted(f"{shell}-{name}" for shell in ("bash", "zsh") for name in ABOUT) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_whole(name: str) -> None:
    assert derive(recording(name), conversation_id=name) == expected(name)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("step", [1, 2, 3, 7, 509, 512])
def test_in_steps(name: str, step: int) -> None:
    cuts = range(0, len(recording(name).stream), step)
    assert derive(recording(name), cuts, conversation_id=name) == expected(name)


@pytest.mark.parametrize("name", [name for name in NAMES if len(recording(name).stream) <= SMALL])
def test_at_every_single_split(name: str) -> None:
    for cuts in some_of(every_split(recording(name).stream)):
        assert derive(recording(name), cuts, conversation_id=name) == expected(name), cuts


@pytest.mark.parametrize("name", NAMES)
def test_at_random_cuts(name: str) -> None:
    size = len(recording(name).stream)
    chosen = random.Random(name)
    for _ in range(200 if LONG else 50):
        cuts = sorted(chosen.sample(range(1, size), chosen.randint(1, 12)))
        assert derive(recording(name), cuts, conversation_id=name) == expected(name), cuts


@pytest.mark.parametrize("name", NAMES)
def test_the_proof(name: str) -> None:
    """All invariants of a conversation hold for what is kept, and each of its waits gives the same result again."""
    layout = Layout(HERE / name)
    until = Position(len(recording(name).stream), layout.timeline.stat().st_size)
    report = verify(name, layout, Seen.of(layout, until))
    assert report.differences == []
    assert report.waits == sum(event["type"] == "wait_end" for event in lines(name, "events.jsonl")) > 0
    assert report.blocks == len(lines(name, "blocks.jsonl")) == len(expected(name).outputs)


@pytest.mark.parametrize("name", NAMES)
def test_every_line_is_what_the_schemas_say(name: str) -> None:
    for file, schema in (("timeline", "timeline-v1"), ("events", "event-v1"), ("blocks", "block-v1")):
        for line in lines(name, f"{file}.jsonl"):
            assert problem(schema, line) is None, line


@pytest.mark.parametrize("name", NAMES)
def test_deltas_are_the_output(name: str) -> None:
    """The deltas of a block lie inside its span in order, and its output is made of them and of nothing else."""
    stream = recording(name).stream
    nonces = [entry.fields["nonce"].encode() for entry in recording(name).entries if entry.kind == "spawn"]
    deltas: dict[str, list[tuple[int, int]]] = {}
    for event in lines(name, "events.jsonl"):
        if event["type"] == "agent_block_delta":
            deltas.setdefault(event["block_id"], []).append(tuple(event["span"]))
    for block, shown in zip(lines(name, "blocks.jsonl"), texts(name), strict=True):
        spans = deltas.get(block["block_id"], [])
        flat = [offset for span in spans for offset in span]
        assert flat == sorted(flat)
        assert not flat or (block["span"][0] <= flat[0] and flat[-1] <= block["span"][1])
        raw = b"".join(stream[begin:end] for begin, end in spans)
        for nonce in nonces:
            raw = raw.replace(nonce, b"*" * len(nonce))
        assert raw.replace(b"\r\n", b"\n") == shown
        assert len(shown) == block["out_bytes"]


@pytest.mark.parametrize("name", NAMES)
def test_nothing_of_the_machine_it_was_made_on(name: str) -> None:
    for path in (HERE / name).rglob("*"):
        if path.is_file():
            found = re.findall(rb"/(?:tmp|home|root|Users|work)\b[\w./-]*", path.read_bytes())
            assert {place for place in found if not place.startswith(b"/tmp/bp")} <= set(), path


# What a person expects to see, so that a wrong expectation cannot be recorded unnoticed.


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_what_was_shown(shell: str) -> None:
    assert texts(f"{shell}-plain") == [b"hello\n", b"", b"1\n2\n3\n", b"", b"/\n", b"", b""]
    assert [block["exit_status"] for block in lines(f"{shell}-plain", "blocks.jsonl")] == [0, 1, 0, 0, 0, 42, 0]
    assert [block["cwd"] for block in lines(f"{shell}-plain", "blocks.jsonl")] == ["/tmp/bp/home"] * 4 + ["/"] * 3
    assert texts(f"{shell}-no-newline") == [
        b"x", b"two\nlines", b" " * 78 + b"x", b" " * 79 + b"x", b" " * 80 + b"x", b"y\n",
    ]  # fmt: skip
    assert texts(f"{shell}-colour") == [
        b"\x1b[1;31mred\x1b[0m and \x1b[38;5;200mpink\x1b[0m\n",
        b"10%\r20%\r100%\nab\x08c\x07\n\x1b]0;title\x07\x1b[2K\x1b[1Gdone\n",
        b"\xff\x00\xc3\xa9\n",
    ]
    assert texts(f"{shell}-multi-line") == [b"1\n2\n", b"a $b `c`\n\nit's !x\n", b"one\ntwo\n"]
    assert texts(f"{shell}-session") == ["name? Zoë\npassword? \nZoë: 6\n".encode()]
    assert texts(f"{shell}-interrupted") == [b"begun\n^C\n", b"begun\n\n"]
    assert texts(f"{shell}-exit-inside") == [b"bye\n"]
    assert texts(f"{shell}-reset") == [b"one\n", b"two\n", b"30 100\n"]
    assert texts(f"{shell}-at-the-prompt") == [b"after\n"]
    complaint, another, after = texts(f"{shell}-syntax-error")
    assert b"commands/1:" in complaint and b"commands/2:" in another and after == b"after\n"


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_how_it_ended(shell: str) -> None:
    def states(name: str) -> list[str]:
        return [block["state"] for block in lines(f"{shell}-{name}", "blocks.jsonl")]

    assert states("interrupted") == ["interrupted", "interrupted"]
    assert states("exit-inside") == ["shell_exited"]
    assert states("reset") == ["shell_exited", "ended", "ended"]
    assert states("multi-line") == ["ended"] * 3
    kinds = Counter(block["kind"] for name in ABOUT for block in lines(f"{shell}-{name}", "blocks.jsonl"))
    assert (kinds["session"], kinds["user"]) == (1, 1)
    assert not [block for name in ABOUT for block in lines(f"{shell}-{name}", "blocks.jsonl") if block["degraded"]]


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_transcript_shown_again_is_only_output(shell: str) -> None:
    name = f"{shell}-own-stream"
    shown = texts(name)[1]
    nonce = recording(name).entries[1].fields["nonce"].encode()
    assert nonce in recording(name).stream and nonce not in shown
    assert b"__PROMPT__;n=" + b"*" * 22 in shown and shown.endswith(b"first\r\n")
    spoofed = [event for event in lines(name, "events.jsonl") if event["type"] == "spoofed_mark"]
    assert [event["kind"] for event in spoofed] == ["__HELLO__", "__END__", "__CWD__", "__PROMPT__", "__BEGIN__"]
    assert {event["reason"] for event in spoofed} == {"sequence"}


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_the_password_is_not_in_the_record(shell: str) -> None:
    for path in (HERE / f"{shell}-session").rglob("*"):
        assert not path.is_file() or b"secret" not in path.read_bytes()
    inputs = [entry.fields for entry in recording(f"{shell}-session").entries if entry.kind == "input"]
    assert ["redacted" in fields for fields in inputs] == [False, False, True]
    assert ["data" in fields for fields in inputs] == [True, True, False]
