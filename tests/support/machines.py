"""Recordings to test the engine with, every way of cutting them, and a slow reference for views and waits.

Rules of this file: the reference is written from the definitions in words (one byte, one line end, one silence at a
time, on the whole text), shares no code with the engine, and is allowed to be slow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson
import regex
from hypothesis import HealthCheck, settings

from blockpty.engine.echo import EchoFilter
from blockpty.engine.machine import Machine
from blockpty.engine.machine_state import MachineState
from blockpty.engine.states import ShellState
from blockpty.engine.waiter import Outcome, Waiter
from blockpty.model.conditions import Condition, Eof, Idle, Prompt, Regex, Text, parse_conditions
from blockpty.model.entries import Entry
from blockpty.model.events import Event
from blockpty.runtime.expected_echo import ExpectedEcho
from blockpty.runtime.record_reader import Position, Step
from blockpty.testing import FakePty, Recording, every_split, wait_on
from tests.support.profile import LONG

# No border is a prefix of it: what the shell integration draws at random has one in one case of 64.
NONCE = "Qbcdefghij-lmno_qrstu1"
LINE_LIMIT = WINDOW = 64 * 1024


def property_settings(examples: int) -> settings:
    """Return the profile of all properties: the same examples every time, no clock, and a third of them by default."""
    return settings(
        max_examples=examples if LONG else examples // 3,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )


def waiter_for(match: Any, cursor: int = 0, *, stop: Any = None, **options: Any) -> Waiter:
    """Return a waiter whose patterns have all the time they need."""
    waiter = Waiter(
        parse_conditions(match), stops=parse_conditions(stop) if stop is not None else (), cursor=cursor, **options
    )
    waiter.budget = 30.0
    return waiter


def at_prompt(nonce: str = NONCE) -> FakePty:
    """Return a terminal whose shell shows its first prompt."""
    pty = FakePty()
    pty.spawn(nonce=nonce)
    pty.prompt()
    return pty


def running(command: str = "x", kind: str = "command") -> tuple[FakePty, int]:
    """Return a terminal with a submitted command that has just begun, and where its output begins."""
    pty = at_prompt()
    pty.submit(command, kind)
    pty.begin()
    return pty, len(pty.recording.stream)


def unmarked(command: str = "x") -> FakePty:
    """Return a terminal with a submitted command in a shell that has said that no BEGIN will come for it."""
    pty = at_prompt()
    pty.prompts += 1
    pty.output(b"$ " + pty.mark("PROMPT", x=0, b=""))
    pty.submit(command)
    typed = next(entry for entry in reversed(pty.recording.entries) if entry.kind == "input")
    typed.fields["submit"] |= {"unmarked": True, "line": typed.fields["data"].rstrip("\r")}
    return pty


def finished(output: bytes, status: int = 0) -> tuple[Recording, int]:
    """Return the record of a command with this output, and where the output begins."""
    pty, begin = running()
    pty.output(output)
    pty.end(status)
    pty.prompt(status)
    return pty.recording, begin


def the_same(recording: Recording, make: Callable[[], Waiter], cuts: Iterable[Sequence[int]] | None = None) -> Any:
    """Return the outcome of a wait, after checking that it is the same for every way of cutting the stream."""
    expected = wait_on(recording, make())
    for some in every_split(recording.stream) if cuts is None else cuts:
        outcome = wait_on(recording, make(), some)
        assert outcome == expected, f"cut at {list(some)[:8]}"
    return expected


def blocks_of(recording: Recording, cuts: Iterable[int] = ()) -> list[dict[str, Any]]:
    """Return the blocks that ended."""
    machine = Machine()
    blocks: list[dict[str, Any]] = []
    for step in recording.steps(cuts):
        events, _ = machine.feed(step) if isinstance(step, bytes) else machine.apply(step)
        blocks += [dict(event.fields["block"]) for event in events if event.type == "agent_block_end"]
    return blocks


# Going on from a snapshot


def through_json(state: MachineState) -> MachineState:
    """Return what a checkpoint gives back."""
    return MachineState.from_dict(orjson.loads(orjson.dumps(state.to_dict())))


class Stop(NamedTuple):
    """A place of the record: what was fed, which entries were applied, the machine's state, and what echo is due."""

    fed: int
    applied: int
    state: MachineState
    events: int
    echo: EchoFilter | None = None

    @property
    def is_certain(self) -> bool:
        """The runtime's own rule: a place where bytes are held is of no use, nor one where echo may have passed."""
        return self.fed == self.state.classified and (not self.state.inputs or self.echo is not None)


def stops_of(recording: Recording, cuts: Iterable[int]) -> tuple[list[Stop], list[Event]]:
    """Return a snapshot after every step, and all events."""
    machine, events, fed, applied, echo = Machine(), [], 0, 0, ExpectedEcho()
    stops = [Stop(0, 0, machine.snapshot(), 0)]
    for step in recording.steps(cuts):
        if isinstance(step, bytes):
            (found, signals), data, entry = machine.feed(step), step, None
            fed += len(step)
        else:
            (found, signals), data, entry = machine.apply(step), b"", step
            applied += 1
        events += found
        taken = Step(data, entry, found, signals, machine.classified, applied)
        echo.take(taken, machine.state, Position(fed, applied))
        stops.append(Stop(fed, applied, machine.snapshot(), len(events), echo.filter))
    return stops, events


def steps_after(recording: Recording, stop: Stop, cuts: Iterable[int] = ()) -> Iterator[bytes | Entry]:
    """Yield what follows a snapshot: the stream from where it was classified, the entries that were not applied."""
    at = stop.state.classified
    rest = [Entry(entry.offset - at, entry.ts, entry.kind, entry.fields) for entry in recording.entries[stop.applied :]]
    for step in Recording(recording.stream[at:], rest).steps(cut - at for cut in cuts if cut > at):
        yield Entry(step.offset + at, step.ts, step.kind, step.fields) if isinstance(step, Entry) else step


def wait_from(recording: Recording, waiter: Waiter, stop: Stop, seen: Stop, cuts: Iterable[int] = ()) -> Outcome | None:
    """Answer a wait that goes live at `seen`, reading the record from a snapshot on (as the runtime does)."""
    machine = Machine(stop.state)
    waiter.attach(machine.state, stop.echo)
    fed, applied, begun = stop.state.classified, stop.applied, False
    for step in [*steps_after(recording, stop, [*cuts, seen.fed]), None]:
        if not begun and fed >= seen.fed and applied >= seen.applied:
            begun = True
            if (outcome := waiter.begin(machine.state)) is not None:
                return outcome
        if step is None:
            break
        if isinstance(step, Entry):
            (_, signals), data, applied = machine.apply(step), b"", applied + 1
        else:
            (_, signals), data, fed = machine.feed(step), step, fed + len(step)
        if (outcome := waiter.advance(data, signals, machine.classified)) is not None:
            return outcome
    return None


# The reference


class Shown(NamedTuple):
    """One byte of a view and the raw bytes it stands for."""

    byte: int
    begin: int
    end: int


def slow_view(name: str, raw: bytes, base: int = 0) -> list[Shown]:
    """Return the view of raw bytes, one byte at a time."""
    shown: list[Shown] = []
    at = 0
    while at < len(raw):
        code, after = raw[at], at + 1
        if name == "raw":
            shown.append(Shown(code, base + at, base + after))
        elif code == 0x0D:
            while raw[after : after + 1] == b"\r":
                after += 1
            if raw[after : after + 1] == b"\n":
                after += 1
                shown.append(Shown(0x0A, base + at, base + after))
            else:
                shown += [Shown(code, base + place, base + place + 1) for place in range(at, after)]
        elif code == 0x1B and name == "text":
            after = _after_sequence(raw, at)
        elif code == 0x1B and (mark := _our_mark(raw, at)):
            after = mark
        elif name == "ansi" or (code >= 0x20 and code != 0x7F) or code in b"\t\n":
            shown.append(Shown(code, base + at, base + after))
        at = after
    return shown


def _our_mark(raw: bytes, at: int) -> int | None:
    found = regex.compile(rb"\x1b\]7717;[0-9A-Za-z+/=%._:,;*\-]{0,512}(?:\x07|\x1b\\)").match(raw, at)
    return found.end() if found else None


def _after_sequence(raw: bytes, at: int) -> int:
    kind = raw[at + 1 : at + 2]
    place = at + 2
    if kind == b"[":
        while place < len(raw) and place - at - 2 < 256 and 0x30 <= raw[place] <= 0x3F:
            place += 1
        first = place
        while place < len(raw) and place - first < 8 and 0x20 <= raw[place] <= 0x2F:
            place += 1
        return place + 1 if place < len(raw) and 0x40 <= raw[place] <= 0x7E else at + 2
    if kind == b"]" and raw[place : place + 1] == b"R":
        return place + 1
    if kind == b"]" and regex.compile(rb"P[0-9A-Fa-f]{7}").match(raw, place):
        return place + 8
    if kind and kind in b"]PX^_":
        while place < len(raw) and place - at - 2 < 8192 and raw[place] not in b"\x07\x1b\x18\x1a\n":
            place += 1
        if place == len(raw) or raw[place] in b"\x18\x1a":
            return place
        if raw[place] == 0x07:
            return place + 1
        if raw[place] == 0x1B:
            return place + 2 if raw[place + 1 : place + 2] == b"\\" else place
        return at + 2
    place = at + 1
    while place < len(raw) and place - at - 1 < 8 and 0x20 <= raw[place] <= 0x2F:
        place += 1
    return place + 1 if place < len(raw) and 0x30 <= raw[place] <= 0x7E else at + 1


@dataclass(frozen=True)
class Answer:
    """What of an outcome the reference knows."""

    matched: bool
    reason: str
    index: int | None = None
    span: tuple[int, int] | None = None
    text: str | None = None

    @classmethod
    def of(cls, outcome: Outcome | None) -> Answer | None:
        """Return the same of a real outcome; where no text matched there is no span to compare."""
        if outcome is None:
            return None
        span = outcome.span if outcome.match_text is not None else None
        return cls(outcome.matched, outcome.reason, outcome.index, span, outcome.match_text)


class _Hit(NamedTuple):
    at: int
    phase: int
    index: int
    answer: Answer


def slow_wait(
    recording: Recording,
    cursor: int,
    end: int,
    prompt: int | None,
    conditions: Sequence[Condition],
    stops: Sequence[Condition] = (),
    *,
    view: str = "text",
    max_bytes: int | None = None,
) -> Answer | None:
    """Answer a live wait on one command's output: `cursor` to `end`, then a prompt that is ready at `prompt`.

    A line that ends at a CR is known to have ended when the next byte of the view is there; until then a text does not
    have the CR, nor those right before it, which a LF would make one with itself. Silences must not lie inside a
    control sequence or behind a CR.
    """
    shown = slow_view(view, recording.stream[cursor:end], cursor)
    if view != "raw" and prompt is None:
        output = recording.stream[cursor:end]
        shown = shown[: len(shown) - len(output) + len(output.rstrip(b"\r"))]
    silences = [entry for entry in recording.entries if entry.kind == "silence" and cursor < entry.offset <= end]
    hits: list[_Hit] = []
    for index, condition in enumerate([*conditions, *stops]):
        stopped = index >= len(conditions)
        number = index - len(conditions) if stopped else index
        reason = "stopped" if stopped else "matched"

        def answer(
            span: tuple[int, int] | None = None,
            text: str | None = None,
            *,
            stopped: bool = stopped,
            number: int = number,
            reason: str = reason,
        ) -> Answer:
            return Answer(not stopped, reason, number, span, text)

        if isinstance(condition, Text):
            hits += _text_hits(shown, condition, index, answer)
        elif isinstance(condition, Regex):
            closed = [(entry.offset, False) for entry in silences] + ([(end, True)] if prompt is not None else [])
            hits += _pattern_hits(shown, condition, closed, index, answer)
        elif isinstance(condition, Idle):
            hits += [
                _Hit(entry.offset, 2, index, answer()) for entry in silences if entry.fields["ms"] >= condition.ms
            ][:1]
        elif isinstance(condition, Prompt) and prompt is not None:
            hits.append(_Hit(prompt, 1, index, Answer(not stopped, "stopped" if stopped else "prompt", number)))
        else:
            assert isinstance(condition, (Prompt, Eof))
    if max_bytes is not None and len(shown) >= max_bytes:
        # What becomes true at the last byte still counts.
        hits.append(_Hit(shown[max_bytes - 1].end, 0, len(conditions) + len(stops), Answer(False, "max_bytes")))
    if prompt is not None:
        hits.append(_Hit(prompt, 2, 0, Answer(False, "prompt")))
    return min(hits, key=lambda hit: hit[:3]).answer if hits else None


def _text_hits(shown: list[Shown], condition: Text, index: int, answer: Callable[..., Answer]) -> list[_Hit]:
    needle = condition.text.encode("utf-8", "surrogateescape")
    for begin in range(len(shown) - len(needle) + 1):
        if bytes(item.byte for item in shown[begin : begin + len(needle)]) == needle:
            span = (shown[begin].begin, shown[begin + len(needle) - 1].end)
            return [_Hit(span[1], 0, index, answer(span, condition.text))]
    return []


# Written once more, not imported: what can match a line end is looked at over several lines.
_SPANS = regex.compile(r"\\[nrsWDRXvxuNpP0]|\[\^|\(\?[a-zA-Z]*s|\n|\r|\\[0-7]{2}|\[\[:")


def _pattern_hits(
    shown: list[Shown], condition: Regex, closed: list[tuple[int, bool]], index: int, answer: Callable[..., Answer]
) -> list[_Hit]:
    spans_lines = bool(_SPANS.search(condition.regex))
    compiled = regex.compile(condition.regex, regex.MULTILINE | regex.VERSION0)
    text = bytes(item.byte for item in shown)
    # (position, offset at which it is known, phase, position at which the line's own text ends)
    ends: list[tuple[int, int, int, int]] = []
    line = 0
    for place, code in enumerate(text):
        if place + 1 - line > LINE_LIMIT:
            ends.append((line + LINE_LIMIT, shown[line + LINE_LIMIT - 1].end, 0, line + LINE_LIMIT))
            line += LINE_LIMIT
        if code == 0x0A:
            ends.append((place + 1, shown[place].end, 0, place))
            line = place + 1
        elif code == 0x0D and place + 1 < len(text) and text[place + 1] != 0x0A:
            ends.append((place + 1, shown[place + 1].end, 0, place))
            line = place + 1
    for offset, last in closed:
        position = sum(1 for item in shown if item.end <= offset)
        content = position - 1 if last and text[position - 1 : position] == b"\r" else position
        ends.append((position, offset, 1, content))
    ends.sort(key=lambda item: (item[1], item[2]))
    line = 0
    for position, offset, phase, content in ends:
        if phase and position <= line:
            continue
        begin = max(0, position - WINDOW) if spans_lines else line
        stop = position if spans_lines else content
        context = text[begin - 1 : begin].decode("utf-8", "surrogateescape") if spans_lines and begin else ""
        inside = text[begin:stop].decode("utf-8", "surrogateescape")
        found = compiled.search(context + inside, pos=len(context))
        if found is not None:
            first = begin + len((context + inside)[len(context) : found.start()].encode("utf-8", "surrogateescape"))
            size = len(found.group().encode("utf-8", "surrogateescape"))
            if size:
                span = (shown[first].begin, shown[first + size - 1].end)
            elif first < position or first == begin:
                span = (shown[first].begin,) * 2
            else:
                span = (shown[first - 1].end,) * 2
            shown_text = found.group().encode("utf-8", "surrogateescape").decode("utf-8", "replace")
            return [_Hit(offset, phase, index, answer(span, shown_text))]
        if not phase:
            line = position
    return []


# What FakePty shows of its first submission.
ECHO = b" . /c/1\r\n"


def in_state(state: ShellState, *, inside: bool = False, prompt_only: bool = False, key: bool = False) -> FakePty:
    """Return a terminal whose shell is in this state; `inside`, one that was entered from another."""
    pty = FakePty()
    pty.spawn(nonce=NONCE)
    if prompt_only:
        pty.output(pty.mark("HELLO", f="ps1"))
    if inside:
        pty.prompt()
        pty.submit("inner")
        pty.begin()
        pty.enter("E" * 22)
    if state is ShellState.STARTING:
        return pty
    pty.prompt()
    if state in (ShellState.IDLE, ShellState.EDITING) and key:
        # Ours is still to come: another line was read before it.
        pty.submit_key("x")
        pty.end()
        pty.prompt()
    if state is ShellState.EDITING:
        pty.type(b"\x03", echo=False, icanon=False)
    if state in (ShellState.SUBMITTED, ShellState.RUNNING, ShellState.RETURNING):
        (pty.submit_key if key else pty.submit)("x")
        if prompt_only:
            pty.recording.stream = pty.recording.stream[: -len(ECHO)]
    if state in (ShellState.RUNNING, ShellState.RETURNING):
        pty.begin()
    if state is ShellState.RETURNING:
        pty.end()
    if state is ShellState.EXITED:
        pty.entry("exit", status=0, signal=None)
    return pty


def play(pty: FakePty) -> tuple[Machine, list[Event]]:
    """Return the machine after a recording, and its events."""
    machine, events = Machine(), []
    for step in pty.recording.steps():
        events += (machine.feed(step) if isinstance(step, bytes) else machine.apply(step))[0]
    return machine, events
