"""Events that speak of the screen: the same for any chunks, and only where an owner has announced them."""

from __future__ import annotations

import random

import pytest

from blockpty.engine.machine import Machine
from blockpty.engine.machine_state import MachineState
from blockpty.model.events import Event
from blockpty.screen import Emulator
from blockpty.testing import FakePty, events_of, every_split
from tests.support.emulators import random_output
from tests.support.machines import at_prompt, through_json


def announced() -> FakePty:
    pty = at_prompt()
    pty.entry("note", note={"type": "owner", "epoch": 1, "pictures": True})
    return pty


def of(events: list[Event], kind: str) -> list[Event]:
    return [event for event in events if event.type == kind]


@pytest.mark.parametrize("mode", ["47", "1047", "1049", "0001049", "25;1049", "1049;2004"])
def test_the_alternate_screen_comes_and_goes(mode: str) -> None:
    pty = announced()
    on, off = f"\x1b[?{mode}h".encode(), f"\x1b[?{mode}l".encode()
    pty.run("vim", b"a" + on + b"b" + on + b"c" + off + b"d" + off, 0)
    begin = pty.recording.stream.index(on)
    found = of(events_of(pty.recording), "alt_screen")
    assert [(event.cursor, event.fields["on"]) for event in found] == [
        (begin + len(on), True), (begin + 2 * len(on) + 2 + len(off), False),
    ]  # fmt: skip


def test_a_reset_and_another_shell_end_it() -> None:
    pty = announced()
    pty.run("reset", b"\x1b[?1049hx\x1bcy", 0)
    pty.submit("vim")
    pty.begin()
    pty.output(b"\x1b[?1049h")
    pty.spawn(nonce="Zbcdefghij-lmno_qrstu1")
    found = of(events_of(pty.recording), "alt_screen")
    assert [event.fields["on"] for event in found] == [True, False, True, False]
    assert found[-1].cursor == len(pty.recording.stream)


def test_each_block_end_names_its_picture_and_a_look_does_too() -> None:
    pty = announced()
    pty.run("true", b"out\r\n", 0)
    at = len(pty.recording.stream)
    pty.entry("note", note={"type": "screen_snapshot", "at": at - 1})
    pty.submit("vim")
    pty.begin()
    pty.output(b"\x1b[?1049h")
    pty.end(0)
    pty.prompt()
    events = events_of(pty.recording)
    pictures = of(events, "screen_snapshot")
    ends = of(events, "agent_block_end")
    shown = [(event.fields["block_id"], event.fields["at"], event.fields["alt_screen"]) for event in pictures]
    assert shown == [("b1", ends[0].cursor, False), (None, at - 1, False), ("b2", ends[1].cursor, True)]
    assert [event.cursor for event in pictures] == [ends[0].cursor, at, ends[1].cursor]
    assert all((event.fields["cols"], event.fields["rows"]) == (80, 24) for event in pictures)


def test_a_record_of_an_older_engine_keeps_its_events() -> None:
    pty = at_prompt()
    pty.entry("note", note={"type": "owner", "epoch": 1})
    pty.run("vim", b"\x1b[?1049hx\x1b[?1049l", 0)
    pty.entry("note", note={"type": "screen_snapshot", "at": 0})
    events = events_of(pty.recording)
    assert not of(events, "alt_screen") and not of(events, "screen_snapshot")


def test_any_cut_gives_the_same_events_also_through_a_checkpoint() -> None:
    pty = announced()
    entries = pty.recording.entries
    head = bytes(pty.recording.stream)
    tail = b"x\x1b[?1049hA\x1b]7;y\x1b\\\x1b[?10\x1b[?1049;1049lB\x1b[?47h\x1bc\x1b"

    def events(cuts: list[int]) -> list[Event]:
        machine, found = Machine(), []
        at = 0
        for entry in entries:
            found += machine.feed(head[at : entry.offset])[0]
            found += machine.apply(entry)[0]
            at = entry.offset
        found += machine.feed(head[at:])[0]
        begin = 0
        fed = head
        for cut in [*cuts, len(tail)]:
            found += machine.feed(tail[begin:cut])[0]
            fed, begin = head + tail[:cut], cut
            state = machine.snapshot()
            machine = Machine(through_json(state))
            found += machine.feed(fed[state.classified :])[0]
        return found

    whole = events([])
    assert [event.fields["on"] for event in of(whole, "alt_screen")] == [True, False, True, False]
    for cuts in every_split(tail):
        assert events(list(cuts)) == whole, cuts


def test_the_events_say_what_the_emulator_shows() -> None:
    """Random output: after all of it both agree, unless a saved mode or what else no program prints switched."""
    rng = random.Random(9)
    seen = 0
    for _ in range(900):
        pieces = [random_output(rng, 1) for _ in range(20)]
        pieces += [rng.choice((b"\x1b[?1049h", b"\x1b[?47l", b"\x1b[?1047;25h", b"\x1bc", b"text")) for _ in range(8)]
        rng.shuffle(pieces)
        data = b"".join(pieces)
        if b"r" in data or (b"\x1b[?" in data and any(piece in data for piece in (b"\x1b[3\x08", b"\x1b[1\r"))):
            continue
        machine = Machine(MachineState(pictures=True))
        machine.feed(data + b"\r\n" * 300)
        emulator = Emulator()
        emulator.feed(data + b"\r\n" * 300)
        if machine.classified < len(data):
            continue
        seen += 1
        assert machine.state.screen.shown == emulator.alt, data
    assert seen > 40


def test_the_beginning_of_a_record_of_an_older_version_can_be_read() -> None:
    state = MachineState().to_dict()
    for name in ("pictures", "alternate", "switching"):
        del state[name]
    assert MachineState.from_dict(state) == MachineState()


@pytest.mark.parametrize("data", [b"\r\n\x1b\x1b]", b"\x1b[\x1b]", b"x\x1b\x1b]7717;", b"\x1b[?10\x1b]"])
def test_a_beginning_in_front_of_what_the_scanner_holds_back(data: bytes) -> None:
    whole = Machine()
    whole.feed(data)
    for at in range(1, len(data)):
        split = Machine()
        split.feed(data[:at])
        split.feed(data[at:])
        assert split.snapshot() == whole.snapshot()
