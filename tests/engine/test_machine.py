"""Events and blocks of hand-made records: derived the same for every cut, whatever the entries hold."""

from __future__ import annotations

import itertools
from typing import Any

import orjson
import pytest

from blockpty.engine.machine import Machine
from blockpty.engine.machine_state import MachineState
from blockpty.engine.states import ShellState
from blockpty.model.entries import ENTRY_KINDS
from blockpty.testing import FakePty, Recording, derive, every_split
from blockpty.testing.recordings import events_of, state_of
from tests.support.machines import NONCE, at_prompt, blocks_of, in_state, running, stops_of, through_json, unmarked

FIELDS = {
    "spawn": ("instance", "nonce", "pid", "shell", "hooks", "cols", "rows", "system"),
    "tick": ("ms",),
    "silence": ("ms", "icanon", "echo", "foreground", "replaced", "reads", "depth", "busy", "wants_input"),
    "input": ("author", "req", "bytes", "data", "data_b64", "redacted", "echo", "icanon", "submit"),
    "input_cut": ("req", "accepted"),
    "resize": ("cols", "rows", "author"),
    "note": ("note",),
    "exit": ("status", "signal"),
    "eof": ("x",),
    "storage": ("state", "seq", "type", "cursor"),
}
ODD: tuple[Any, ...] = (
    None, True, -1, 1.5, 2**62, 1e300, "", "x", "9" * 5000, "\x00", [], [1], {}, {"a": 1},
    {"type": "wait_end"}, {"type": "wait_end", "cursor": None}, {"type": "wait_end", "cursor": "x"},
    {"type": "wait_begin", "seq": 99, "cursor": [], "conversation_id": 1, "ts": "x"}, {"type": []},
    {"kind": 7, "cmd": [1], "request": {}, "author": None}, {"kind": "session", "ts": "x", "line": 3},
)  # fmt: skip


def test_the_fields_of_every_kind_are_tried() -> None:
    assert set(FIELDS) == ENTRY_KINDS


@pytest.mark.parametrize("state", ShellState)
@pytest.mark.parametrize("kind", sorted(FIELDS))
def test_no_entry_raises(kind: str, state: ShellState) -> None:
    for name, value in [("absent", 0), *itertools.product(FIELDS[kind], ODD)]:
        pty = in_state(state)
        pty.entry(kind, **{name: value})
        pty.output(b"more\r\n")
        pty.entry("exit", status=0, signal=None)
        derived = derive(pty.recording)
        numbers = [orjson.loads(line)["seq"] for line in derived.events.splitlines()]
        assert numbers == list(range(len(numbers))), f"{name}={value!r}"


def whole(name: str) -> Recording:
    """Return the record of a situation by its name."""
    pty = at_prompt()
    if name == "one command":
        pty.run("echo", b"out\r\n\x1b[1mput\x1b[0m\r\n", 3)
    elif name == "commands one after the other":
        for number in range(4):
            pty.run(f"echo {number}", b"x\r\n" * number)
    elif name == "a part after the end":
        pty.submit("x")
        pty.begin()
        pty.output(b"one\r\n")
        pty.end(3)
        pty.begin()
        pty.output(b"two\r\n")
        pty.end(0)
        pty.prompt()
    elif name == "a part after the end, its end lost":
        pty.submit("x")
        pty.begin()
        pty.output(b"one\r\n")
        pty.end(3)
        pty.begin()
        pty.output(b"two\r\n")
        pty.prompt(4)
    elif name == "a part after the end, then the shell exits":
        pty.submit("x")
        pty.begin()
        pty.output(b"one\r\n")
        pty.end(3)
        pty.begin()
        pty.output(b"two\r\n")
        pty.entry("exit", status=7, signal=None)
    elif name == "two parts":
        pty.submit("x")
        pty.begin()
        pty.output(b"one\r\n")
        pty.begin()
        pty.output(b"two\r\n")
        pty.end()
        pty.prompt()
    elif name == "begin lost":
        pty.submit("x")
        pty.output(b"one\r\n")
        pty.seq, pty.count = pty.seq + 1, pty.count + 1
        pty.end()
        pty.prompt()
    elif name == "begin lost, prompt redrawn in the echo":
        pty.submit("x")
        pty.recording.stream = pty.recording.stream[: -len(b" . /c/1\r\n")]
        pty.output(pty.mark("PROMPT", x=0) + b" . /c/1\r\none\r\n")
        pty.seq, pty.count = pty.seq + 1, pty.count + 1
        pty.end()
        pty.prompt()
    elif name == "exit in the middle":
        pty.submit("x")
        pty.begin()
        pty.output(b"one\r\n\x1b]7717;__EN")
        pty.entry("exit", status=None, signal="SIGKILL")
        pty.entry("eof")
    elif name == "long output":
        pty.run("x", b"0123456789abcde\n" * 13_000)
    return pty.recording


OUTPUTS: dict[str, list[bytes]] = {
    "one command": [b"out\n\x1b[1mput\x1b[0m\n"],
    "commands one after the other": [b"x\n" * number for number in range(4)],
    "a part after the end": [b"one\ntwo\n"],
    # Without END the prompt's text is in front of the first mark; the block says so (degraded: end_lost).
    "a part after the end, its end lost": [b"one\ntwo\n$ "],
    "a part after the end, then the shell exits": [b"one\ntwo\n"],
    "two parts": [b"one\ntwo\n"],
    "begin lost": [b"one\n"],
    "begin lost, prompt redrawn in the echo": [b"one\n"],
    "exit in the middle": [b"one\n\x1b]7717;__EN"],
    "long output": [b"0123456789abcde\n" * 13_000],
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_files_are_the_same_for_every_cut(name: str) -> None:
    recording = whole(name)
    expected = derive(recording)
    assert [expected.outputs[key] for key in sorted(expected.outputs, key=_number)] == OUTPUTS[name]
    short = len(recording.stream) < 2000
    sizes = (range(1, len(recording.stream), size) for size in (1021, 4096, 65_535, 65_536, 65_537))
    for cuts in every_split(recording.stream, pairs=50) if short else sizes:
        assert derive(recording, cuts) == expected


def _number(name: str) -> int:
    return int(name.removeprefix("blocks/").split("_")[0])


@pytest.mark.parametrize("name", OUTPUTS)
def test_span_ends_where_the_output_ends(name: str) -> None:
    recording = whole(name)
    for block, output in zip(blocks_of(recording), OUTPUTS[name], strict=True):
        begin, end = block["span"]
        last = output.rstrip(b"\n").rsplit(b"\n", 1)[-1]
        assert recording.stream[begin:end].rstrip(b"\r\n").endswith(last)


def test_exit_in_a_reopened_block_is_reported() -> None:
    (block,) = blocks_of(whole("a part after the end, then the shell exits"))
    assert (block["state"], block["exit_status"]) == ("shell_exited", 7)


def test_status_of_a_reopened_block_is_the_last_one() -> None:
    (block,) = blocks_of(whole("a part after the end, its end lost"))
    assert block["exit_status"] == 4


@pytest.mark.parametrize("place", range(0, 60, 3))
def test_entry_in_the_middle_of_a_mark_moves_nothing(place: int) -> None:
    # Where it lies decides what an entry means, never how the mark around it is read.
    pty, _ = running()
    pty.output(b"out\r\n")
    begin = len(pty.recording.stream)
    pty.end(3)
    pty.prompt(3)
    stream, pty.recording.stream = pty.recording.stream, pty.recording.stream[: begin + place]
    pty.silence(foreground="child")
    pty.entry("resize", cols=100, rows=30)
    pty.entry("tick")
    pty.recording.stream = stream
    (block,) = blocks_of(pty.recording)
    assert (block["exit_status"], block["span"][1]) == (3, begin)
    expected = derive(pty.recording)
    for cuts in every_split(stream):
        assert derive(pty.recording, cuts) == expected


def test_submission_in_the_middle_of_what_is_no_mark() -> None:
    pty = at_prompt()
    pty.output(b"\x1b]7717;" + b"x" * 400)
    pty.submit("x")
    pty.output(b"one\r\n")
    pty.seq, pty.count = pty.seq + 1, pty.count + 1
    pty.end()
    pty.prompt()
    size = len(pty.recording.stream)
    (block,) = blocks_of(pty.recording)
    begin, end = block["span"]
    assert pty.recording.stream[begin:end] == b"one\r\n"
    assert end <= size


def test_forged_marks_never_change_the_block_list() -> None:
    pty, _ = running()
    numbers = {"s": pty.seq + 1, "c": pty.count}
    wrong: list[dict[str, Any]] = [
        {"n": "B" * 22}, {"n": NONCE[:-1]}, {"n": NONCE + "x"}, {"n": NONCE.lower()}, {"n": NONCE.swapcase()},
        {"i": 4243}, {"i": "04242"}, {"i": ""}, {"i": "4242.0"},
        {"s": pty.seq}, {"s": pty.seq - 1}, {"s": pty.seq + 2}, {"s": pty.seq + 1000}, {"c": pty.count + 1},
        {"c": pty.count - 1}, {"s": 10**12},
    ]  # fmt: skip
    for fields in wrong:
        for kind in ("END", "BEGIN", "PROMPT"):
            own = {**numbers, "c": numbers["c"] + (kind == "BEGIN"), "p": pty.prompts + 1, **fields}
            authentic = "n" not in fields and "i" not in fields
            next_one = (own["s"], own["c"]) == (pty.seq + 1, pty.count + (kind == "BEGIN"))
            if authentic and (next_one or (kind == "PROMPT" and own["s"] in (pty.seq, pty.seq + 1))):
                continue  # the shell's own next numbers; a prompt may also tell of an END that was lost
            pty.output(pty.mark(kind, x=0, **own))
    assert blocks_of(pty.recording) == []
    pty.end(5)
    pty.prompt(5)
    (block,) = blocks_of(pty.recording)
    assert (block["exit_status"], block["parts"]) == (5, 1)


def test_an_old_transcript_changes_nothing() -> None:
    pty = at_prompt()
    for number in range(3):
        pty.run(f"c{number}", b"x\r\n")
    before = blocks_of(pty.recording)
    transcript = pty.recording.stream
    pty.submit("cat transcript")
    pty.begin()
    pty.output(transcript)
    assert blocks_of(pty.recording) == before
    pty.output(transcript.replace(b"s=0", b"s=9"))
    pty.end()
    pty.prompt()
    (*_, block) = blocks_of(pty.recording)
    assert (block["cmd"], block["parts"], block["exit_status"]) == ("cat transcript", 1, 0)


def test_marks_of_an_earlier_shell_change_nothing() -> None:
    pty = at_prompt()
    pty.run("x", b"y\r\n")
    old = pty.recording.stream
    pty.spawn(nonce="C" * 22)
    pty.prompt()
    pty.submit("z")
    pty.begin()
    pty.output(old)
    pty.end(1)
    pty.prompt(1)
    assert [block["cmd"] for block in blocks_of(pty.recording)] == ["x", "z"]


# Nonces that overlap themselves are the hard ones: what has been covered must not count as a beginning.
@pytest.mark.parametrize("nonce", [NONCE, "A" * 22, "Q" + "b" * 20 + "Q", "ab" * 11, "abc" + "d" * 16 + "abc"])
def test_nonce_is_in_no_derived_file(nonce: str) -> None:
    secret = nonce.encode()
    for place in range(len(secret) + 1):
        pty = at_prompt(nonce)
        pty.submit(f"echo {nonce}")
        pty.begin()
        pty.output(b"x" + secret[:place])
        pty.silence()
        pty.output(secret[place:])
        pty.silence()
        pty.output(secret[:1] + secret + b"\r\n" + pty.mark("END", s=99))
        pty.end()
        pty.prompt()
        for cuts in ((), range(len(pty.recording.stream))):
            derived = derive(pty.recording, cuts)
            for name, data in [("events", derived.events), ("blocks", derived.blocks), *derived.outputs.items()]:
                assert secret not in data, f"{name}, silence at {place}"


def test_state_stays_small_whatever_is_typed() -> None:
    pty, _ = running()
    for _ in range(2000):
        pty.type(b"x" * 4000 + b"\n")
    machine = Machine()
    for step in pty.recording.steps():
        machine.feed(step) if isinstance(step, bytes) else machine.apply(step)
    assert len(orjson.dumps(machine.snapshot().to_dict())) < 256 * 1024


def test_state_stays_small_whatever_the_shell_says_of_its_directory() -> None:
    pty, _ = running()
    machine = Machine()
    for step in pty.recording.steps():
        machine.feed(step) if isinstance(step, bytes) else machine.apply(step)
    for _ in range(2000):
        machine.feed(pty.mark("CWD", d="2/9:" + "x" * 400))
    assert len(orjson.dumps(machine.snapshot().to_dict())) < 256 * 1024


def test_a_directory_in_pieces() -> None:
    pty = at_prompt()
    pty.output(pty.mark("CWD", d="1/2:/tmp/%C3%A9") + pty.mark("CWD", d="2/2:%20x"))
    stops, events = stops_of(pty.recording, ())
    assert stops[-1].state.current.cwd == "/tmp/é x"
    assert not [event for event in events if event.type == "anomaly"]


@pytest.mark.parametrize("name", OUTPUTS)
def test_state_is_the_same_out_of_json(name: str) -> None:
    recording = whole(name)
    if len(recording.stream) > 2000:
        return
    stops, _ = stops_of(recording, range(len(recording.stream)))
    for stop in stops:
        assert through_json(stop.state) == stop.state


def test_background_output_at_a_prompt_opens_no_block() -> None:
    pty: FakePty = at_prompt()
    pty.output(b"[1]+ Done\r\n" + pty.mark("PROMPT", x=0))
    assert blocks_of(pty.recording) == []


@pytest.mark.parametrize(
    ("said", "who"),
    [
        ({"u": "me", "h": "box"}, {"user": "me", "host": "box"}),
        ({"u": "", "h": ""}, {"user": None, "host": None}),
        # Of an older version: its prompts stay what they were.
        ({}, None),
    ],
)
def test_a_prompt_says_who_is_at_it_where_the_shell_has_said_so(
    said: dict[str, str], who: dict[str, str | None] | None
) -> None:
    pty = FakePty()
    pty.spawn()
    pty.output(pty.mark("HELLO", v=1, sh="bash", f="ps0,ps1", **said))
    pty.end()
    pty.output(pty.mark("CWD", d="/a%ff"))
    pty.prompt()
    lines = map(orjson.loads, derive(pty.recording, ()).events.splitlines())
    (prompt,) = [line for line in lines if line["type"] == "prompt"]
    extra = {name: value for name, value in prompt.items() if name in ("user", "host", "cwd_b64")}
    assert extra == ({} if who is None else {**who, "cwd_b64": "L2H/"})
    assert prompt["cwd"] == "/a\ufffd"


@pytest.mark.parametrize(("features", "state", "output"), [
    ("ps0,ps1,ps2,pc", "rejected", b""), ("ps1,ps2,pc", "ended", b"out\n"), ("ps1", "ended", b"out\n"),
])  # fmt: skip
def test_hello_says_whether_commands_have_a_begin(features: str, state: str, output: bytes) -> None:
    """PS0 and PS1 readonly (bash): END alone means that it ran, not that it was refused."""
    pty = FakePty()
    pty.spawn()
    pty.output(pty.mark("HELLO", v=1, sh="bash", f=features))
    pty.end()
    pty.silence(icanon=False, foreground="shell")
    for status in (3, 4):
        pty.submit("x")
        pty.output(b"out\r\n")
        pty.end(status)
        pty.silence(icanon=False, foreground="shell")
    for cuts in every_split(pty.recording.stream):
        assert [(block["state"], block["exit_status"]) for block in blocks_of(pty.recording, cuts)] == [
            (state, 3), (state, 4)
        ]  # fmt: skip
        assert set(derive(pty.recording, cuts).outputs.values()) == {output}


def test_an_interrupt_counts_where_no_begin_is_written() -> None:
    pty = FakePty()
    pty.spawn()
    pty.output(pty.mark("HELLO", v=1, sh="bash", f="ps1"))
    pty.prompt()
    pty.submit("x")
    pty.entry("note", note={"type": "interrupt", "signal": "SIGINT"})
    pty.end(130)
    pty.prompt(130)
    (block,) = blocks_of(pty.recording)
    assert (block["state"], block["exit_status"], block["degraded"]) == ("interrupted", 130, "prompt_only")


@pytest.mark.parametrize(("system", "number", "name", "state"), [
    (None, 10, "SIGUSR1", "ended"), (None, 12, "SIGUSR2", "ended"), (None, 19, "SIGSTOP", "stopped"),
    (None, 20, "SIGTSTP", "stopped"), (None, 21, "SIGTTIN", "stopped"), (None, 34, "SIGRTMIN", "ended"),
    (None, 36, "SIGRTMIN+2", "ended"), (None, 64, "SIGRTMAX", "ended"), (None, 2, "SIGINT", "ended"),
    ("darwin", 10, "SIGBUS", "ended"), ("darwin", 18, "SIGTSTP", "stopped"), ("darwin", 19, "SIGCONT", "ended"),
    ("freebsd14", 10, "SIG10", "ended"), ("freebsd14", 9, "SIGKILL", "ended"),
])  # fmt: skip
def test_a_status_names_the_signal_of_its_system(system: str | None, number: int, name: str, state: str) -> None:
    pty = FakePty()
    pty.spawn()
    if system is not None:
        pty.recording.entries[-1].fields["system"] = system  # type: ignore[index]
    pty.prompt()
    pty.run("./program", b"", 128 + number)
    (block,) = blocks_of(pty.recording)
    assert (block["signal"], block["state"]) == (name, state)


def test_an_offer_is_taken_by_the_hello_with_its_nonce_and_by_no_other() -> None:
    terminal = FakePty()
    offered, other = "BBBBBBBBBBBBBBBBBBBBBB", "CCCCCCCCCCCCCCCCCCCCCC"
    source = {"kind": "tmux", "target": "w", "command": "tmux -C attach-session -t w", "author": "agent"}
    terminal.spawn()
    terminal.recording.entries[0].fields.update(hooks=False, source=source)
    for number, reason in ((1, "attached"), (2, "drawn")):
        terminal.output(b"\x1b]7717;__SEAM__;n=%s;i=9;s=%d;c=0;r=%s;w=80;h=24\x07" % (
            FakePty.NONCE.encode(), number, reason.encode(),
        ))  # fmt: skip
    terminal.entry("note", note={"type": "offer", "nonce": offered, "shell": "bash", "pid": 77})
    terminal.output(b"a program prints\r\n")
    terminal.nonce, terminal.pid = other, 66
    terminal.output(terminal.mark("HELLO", v=1, sh="bash", f="ps0"))
    terminal.nonce, terminal.pid = offered, 77
    terminal.output(terminal.mark("PROMPT", x=0))
    terminal.output(terminal.mark("HELLO", v=1, sh="bash", f="ps0"))
    terminal.end()
    terminal.prompt()
    terminal.run("echo one", b"one\r\n", 3)
    # Numbers that were used, and an offer that was taken, open nothing.
    terminal.output(terminal.mark("HELLO", v=1, sh="bash", f="ps0"))
    derived = derive(terminal.recording)
    kinds = [(event.type, event.fields.get("reason")) for event in events_of(terminal.recording)]
    assert [reason for kind, reason in kinds if kind == "spoofed_mark"] == ["nonce", "nonce", "sequence"]
    assert [kind for kind, _ in kinds].count("shell_entered") == 1
    lines = [orjson.loads(line) for line in derived.blocks.splitlines()]
    found = [(block["kind"], block["state"], block["exit_status"], block.get("degraded")) for block in lines]
    assert found == [("session", "ended", None, "shell_entered"), ("command", "ended", 3, None)]
    state = state_of(terminal.recording)
    assert state.offered is None and MachineState.from_dict(state.to_dict()) == state
    for cuts in every_split(terminal.recording.stream):
        assert derive(terminal.recording, cuts) == derived


@pytest.mark.parametrize("paste_off", [b"", b"\x1b[?2004l\r", b"\x1b[?2004l"])
@pytest.mark.parametrize("output", [b"hello\r\n", b"\x1b[?2004h> ", b""])
def test_a_block_begins_behind_its_line_where_no_begin_comes(paste_off: bytes, output: bytes) -> None:
    pty = unmarked()
    begin = len(pty.recording.stream)
    pty.output(paste_off)
    if paste_off.endswith(b"\r"):
        begin = len(pty.recording.stream)
    pty.output(output)
    pty.silence()
    decided = output != b"" or paste_off.endswith(b"\r")
    assert (state_of(pty.recording).shell is ShellState.RUNNING) == decided
    end = len(pty.recording.stream)
    pty.end(3)
    pty.prompt(3)
    derived = derive(pty.recording)
    (block,) = (orjson.loads(one) for one in derived.blocks.splitlines())
    assert block["span"] == [begin, end]
    assert (block["exit_status"], block["degraded"]) == (3, "begin_lost")
    for cuts in every_split(pty.recording.stream):
        assert derive(pty.recording, cuts) == derived


def test_a_submission_that_comes_while_a_block_is_open_leaves_no_block_without_an_end() -> None:
    pty = at_prompt()
    pty.submit("first")
    pty.begin()
    pty.output(b"one\r\n")
    # The marks of its end are lost, and another line is typed all the same; then the shell gets new hooks.
    pty.submit("second")
    pty.output(b"two\r\n")
    pty.enter("BBBBBBBBBBBBBBBBBBBBBB", nested=False, pid=FakePty().pid)
    pty.end()
    pty.prompt()
    pty.run("third", b"three\r\n", 0)
    events = events_of(pty.recording)
    bounds = [(event.type, event.fields["block_id"]) for event in events if event.type.startswith("agent_block_")]
    for kind in ("agent_block_begin", "agent_block_end"):
        assert [block_id for name, block_id in bounds if name == kind] == ["b1", "b2"]
    found = [(block["cmd"], block["state"], block["degraded"]) for block in blocks_of(pty.recording)]
    assert found == [("first", "ended", "shell_entered"), ("third", "ended", None)]
