"""Recordings and scripted terminals, and the events and blocks derived from them.

Nothing here starts a process or reads a clock. A `Recording` is what a conversation leaves on disk (stream and
timeline); `FakePty` writes one by hand, `derive` makes events, blocks and `.out` bytes of one, in any chunks.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from blockpty.engine.machine import Machine
from blockpty.engine.machine_state import MachineState
from blockpty.engine.waiter import Outcome, Waiter
from blockpty.files.lines import sealed
from blockpty.files.segments import segment_name
from blockpty.model.entries import Entry
from blockpty.model.events import Event
from blockpty.spool.journal import Journal
from blockpty.spool.masking import Mask
from blockpty.spool.stream import StreamReader
from blockpty.spool.timeline import TimelineReader


class ManualClock:
    """A clock in milliseconds that is moved by hand."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self.now_ms = now_ms

    def advance(self, ms: int) -> int:
        """Let time pass and return the new time."""
        self.now_ms += ms
        return self.now_ms


@dataclass
class Recording:
    """A conversation's truth: the stream's bytes and the timeline's entries."""

    stream: bytes = b""
    entries: list[Entry] = field(default_factory=list)

    @classmethod
    def load(cls, directory: Path) -> Recording:
        """Read a conversation directory, or one that `save` has written."""
        reader = StreamReader(directory / "stream")
        try:
            stream = reader.read(0, reader.size())
        finally:
            reader.close()
        timeline = TimelineReader(directory / "timeline.jsonl")
        try:
            return cls(stream, [entry for entry, _ in timeline.read_new()])
        finally:
            timeline.close()

    def save(self, directory: Path) -> None:
        """Write the two files."""
        (directory / "stream").mkdir(parents=True, exist_ok=True)
        (directory / "stream" / segment_name(0)).write_bytes(self.stream)
        lines = [sealed(orjson.dumps(entry.to_dict())) for entry in self.entries]
        (directory / "timeline.jsonl").write_bytes(b"".join(lines))

    def steps(self, cuts: Iterable[int] = ()) -> Iterator[bytes | Entry]:
        """Yield bytes and entries in the order of the record; the bytes are cut at the given offsets as well."""
        borders = sorted({*cuts, *(entry.offset for entry in self.entries), len(self.stream)})
        at, index = 0, 0
        for border in [0, *borders]:
            end = min(border, len(self.stream))
            if end > at:
                yield self.stream[at:end]
                at = end
            while index < len(self.entries) and self.entries[index].offset <= at:
                yield self.entries[index]
                index += 1


class FakePty:
    """A terminal with a hooked shell that does what the test says, recorded as a real one would be.

    Methods append to `recording`; numbers of marks are kept as the shell integration keeps them.
    """

    NONCE = "AAAAAAAAAAAAAAAAAAAAAA"

    def __init__(self, clock: ManualClock | None = None, *, pid: int = 4242) -> None:
        self.clock = clock or ManualClock()
        self.recording = Recording()
        self.pid = pid
        self.seq = self.count = self.prompts = 0
        self._instance = 0
        self._blocks = 0
        self._outer: list[tuple[str, int, int, int, int]] = []

    def entry(self, kind: str, **fields: Any) -> Entry:
        """Add a timeline entry at the end of the stream."""
        made = Entry(len(self.recording.stream), self.clock.now_ms, kind, fields)
        self.recording.entries.append(made)
        return made

    def spawn(self, *, nonce: str = NONCE, shell: str = "bash") -> None:
        """Start a shell."""
        self._instance += 1
        self.nonce = nonce
        self.seq = self.count = self.prompts = 0
        self.entry("spawn", instance=self._instance, nonce=nonce, pid=self.pid, shell=shell, cols=80, rows=24)

    def enter(self, nonce: str, *, nested: bool = True, pid: int = 77, hello: bool = True) -> None:
        """The engine gives the hooks to another shell, which says hello."""
        self.entry("note", note={"type": "enter", "nonce": nonce, "shell": "zsh", "nested": nested, "how": "file"})
        if nested:
            self._outer.append((self.nonce, self.pid, self.seq, self.count, self.prompts))
        self.nonce, self.pid = nonce, pid
        self.seq = self.count = self.prompts = 0
        if hello:
            self.output(self.mark("HELLO", v=1, sh="zsh", f="preexec,nofs"))

    def leave(self) -> None:
        """The shell that was entered is gone: the one outside writes the next mark."""
        self.nonce, self.pid, self.seq, self.count, self.prompts = self._outer.pop()

    def output(self, data: bytes) -> None:
        """The terminal shows something."""
        self.recording.stream += data

    def mark(self, kind: str, **fields: object) -> bytes:
        """Return a mark with the shell's current numbers."""
        numbers = {"n": self.nonce, "i": self.pid, "s": self.seq, "c": self.count, "p": self.prompts, **fields}
        return (
            b"\x1b]7717;__%s__;" % kind.encode()
            + ";".join(f"{key}={value}" for key, value in numbers.items()).encode()
            + b"\x07"
        )

    def begin(self, **fields: object) -> None:
        """The shell begins a command."""
        self.seq, self.count = self.seq + 1, self.count + 1
        self.output(self.mark("BEGIN", **fields))

    def end(self, status: int = 0, **fields: object) -> None:
        """The shell ends a command, or repeats its prompt."""
        self.seq += 1
        self.output(self.mark("END", x=status, **fields))

    def prompt(self, status: int = 0) -> None:
        """The shell shows a fresh prompt."""
        self.prompts += 1
        self.output(b"$ " + self.mark("PROMPT", x=status))

    def submit_key(self, command: str, kind: str = "command") -> None:
        """The engine types the key by which the line editor loads a command; the echo comes with `output`."""
        self._blocks += 1
        name = f"1.{self._blocks}"
        self.entry(
            "input", author="agent", req=name, bytes=7, data="\x1b[7717~", echo=False, icanon=False,
            submit={"kind": kind, "cmd": command, "request": name, "key": True},
        )  # fmt: skip

    def submit(self, command: str, kind: str = "command") -> None:
        """The engine types a staged command."""
        self._blocks += 1
        line = f" . /c/{self._blocks}\r"
        submit = {"kind": kind, "cmd": command, "request": f"1.{self._blocks}"}
        self.entry(
            "input",
            author="agent",
            req=f"1.{self._blocks}",
            bytes=len(line),
            data=line,
            echo=False,
            icanon=False,
            submit=submit,
        )
        self.output(line.replace("\r", "\r\n").encode())

    def silence(
        self, ms: int = 25, *, icanon: bool = True, echo: bool = True, foreground: str = "child", **more: Any
    ) -> None:
        """Nothing happens for a while."""
        self.clock.advance(ms)
        self.entry("silence", ms=ms, icanon=icanon, echo=echo, foreground=foreground, replaced=False, **more)

    def type(self, data: bytes, *, echo: bool = True, icanon: bool = True, author: str = "agent") -> None:
        """Add what a user or the agent types."""
        text = data.decode("utf-8")
        self.entry("input", author=author, req=None, bytes=len(data), data=text, echo=echo, icanon=icanon)

    def run(self, command: str, output: bytes, status: int = 0) -> None:
        """A whole command, from submission to prompt."""
        self.submit(command)
        self.begin()
        self.output(output)
        self.end(status)
        self.prompt(status)
        self.silence(icanon=False, echo=False, foreground="shell")


class _MemoryStream(StreamReader):
    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self, offset: int, length: int) -> bytes:
        return self._data[offset : offset + length]


class _MemorySink:
    def __init__(self) -> None:
        self.files: dict[str, bytearray] = {}
        self.event_lines: list[bytes] = []
        self.block_lines: list[bytes] = []

    def out(self, name: str, position: int, data: bytes) -> None:
        kept = self.files.setdefault(name, bytearray())
        kept[position : position + len(data)] = data

    def out_end(self, name: str, size: int) -> None:
        del self.files.setdefault(name, bytearray())[size:]

    def lines(self, events: list[tuple[int, bytes]], blocks: list[tuple[int, bytes]]) -> None:
        self.event_lines += [line for _, line in events]
        self.block_lines += [line for _, line in blocks]


@dataclass(frozen=True)
class Derived:
    """Everything that follows from a recording, as it stands in the files."""

    events: bytes
    blocks: bytes
    outputs: dict[str, bytes]


def derive(recording: Recording, cuts: Iterable[int] = (), *, conversation_id: str = "c") -> Derived:
    """Derive events, blocks and `.out` bytes, feeding the stream cut at the given offsets."""
    machine, sink, mask = Machine(), _MemorySink(), Mask()
    journal = Journal(conversation_id, _MemoryStream(recording.stream), sink, mask)
    for step in recording.steps(cuts):
        if isinstance(step, bytes):
            events, _ = machine.feed(step)
        else:
            events, _ = machine.apply(step)
            if step.kind == "spawn":
                mask.add(machine.state.current.nonce)
        journal.append(events)
    outputs = {name: bytes(data) for name, data in sink.files.items()}
    return Derived(b"".join(sink.event_lines), b"".join(sink.block_lines), outputs)


def events_of(recording: Recording, cuts: Iterable[int] = ()) -> list[Event]:
    """Return the events of a recording."""
    machine = Machine()
    events: list[Event] = []
    for step in recording.steps(cuts):
        events += machine.feed(step)[0] if isinstance(step, bytes) else machine.apply(step)[0]
    return events


def state_of(recording: Recording) -> MachineState:
    """Return the machine's state at the end of a recording."""
    machine = Machine()
    for step in recording.steps():
        if isinstance(step, bytes):
            machine.feed(step)
        else:
            machine.apply(step)
    return machine.snapshot()


def wait_on(recording: Recording, waiter: Waiter, cuts: Iterable[int] = (), *, seen: int = 0) -> Outcome | None:
    """Answer a wait from a recording; the first `seen` steps of the uncut record are existing data."""
    machine = Machine()
    waiter.attach(machine.state)
    begun = False
    passed = 0
    for step in recording.steps(cuts):
        if isinstance(step, Entry):
            passed += 1
        data, (_, signals) = (step, machine.feed(step)) if isinstance(step, bytes) else (b"", machine.apply(step))
        outcome = waiter.advance(data, signals, machine.classified)
        if outcome is not None:
            return outcome
        if not begun and passed >= seen:
            begun = True
            if (outcome := waiter.begin(machine.state)) is not None:
                return outcome
    return None if begun else waiter.begin(machine.state)


def every_split(data: bytes, *, pairs: int = 0, seed: int = 0) -> Iterator[Sequence[int]]:
    """Yield cuts: none, every byte, every single place, and `pairs` random pairs of places."""
    yield ()
    yield range(len(data) + 1)
    for place in range(1, len(data)):
        yield (place,)
    chosen = random.Random(seed)
    for _ in range(pairs if len(data) > 2 else 0):
        yield sorted(chosen.sample(range(1, len(data)), 2))
