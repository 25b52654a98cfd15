"""Waits joined to a record: the same evaluation live and on replay."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from blockpty.engine.echo import EchoFilter
from blockpty.engine.machine_state import MachineState
from blockpty.engine.waiter import Outcome, Waiter
from blockpty.model.conditions import Changed, Condition, Screen, condition_to_wire, parse_conditions
from blockpty.redact.stream_redactor import StreamRedactor
from blockpty.runtime.record_reader import Position, RecordReader, Step
from blockpty.spool.layout import Layout
from blockpty.spool.log_start import LogStart
from blockpty.spool.stream import StreamReader

if TYPE_CHECKING:
    from blockpty.runtime.screens import RecordScreenSource, Screens

# A search on the event loop may take this long; after that it goes on in a thread, and after PATIENCE it is refused.
INLINE_BUDGET: Final = 0.01
PATIENCE: Final = 1.0


class WaitRequest(Struct, frozen=True):
    """Request of a wait, as it is recorded.

    Attributes:
        redact: it sees no secrets, as in all output.
        idle_from: time (ms) from which a quiet time counts; None: it may have begun before the wait.
        blanks: a condition on the screen may ask for a blank at the end of a row.
        shown_view: in which view the result shows the text; not recorded, since nothing follows from it.
        context: how many lines around a match the result has; neither is this.
    """

    conditions: tuple[Condition, ...]
    stops: tuple[Condition, ...]
    cursor: int
    view: str = "text"
    max_bytes: int | None = None
    echo: bool = False
    redact: bool = False
    idle_from: int | None = None
    blanks: bool = False
    shown_view: str = "text"
    context: int = 0

    @property
    def looks(self) -> bool:
        """Whether it asks what the terminal shows."""
        kinds = {*map(type, self.conditions), *map(type, self.stops)}
        return Screen in kinds or Changed in kinds

    def waiter(self, stream: StreamReader, source: RecordScreenSource | None = None) -> Waiter:
        """Return a fresh waiter on a stream; raises BadCondition when a pattern does not compile."""

        def before(offset: int, length: int) -> bytes:
            begin = max(stream.begin, offset - length)
            return stream.read(begin, offset - begin) if begin < offset else b""

        return Waiter(
            self.conditions,
            stops=self.stops,
            cursor=self.cursor,
            view=self.view,
            max_bytes=self.max_bytes,
            echo=self.echo,
            screen_source=source,
            redactor=StreamRedactor(before) if self.redact else None,
            idle_from=self.idle_from,
            blanks=self.blanks,
        )

    def to_note(self) -> dict[str, Any]:
        """Return the recorded form."""
        return {
            "match": [condition_to_wire(item) for item in self.conditions],
            "stop": [condition_to_wire(item) for item in self.stops],
            "from_cursor": self.cursor,
            "view": self.view,
            "max_bytes": self.max_bytes,
            "echo": self.echo,
            **({"redact": True} if self.redact else {}),
            **({"idle_from": self.idle_from} if self.idle_from is not None else {}),
            **({"blanks": True} if self.blanks else {}),
        }

    @classmethod
    def from_note(cls, note: Mapping[str, Any]) -> WaitRequest:
        """Rebuild a request from its recorded form."""
        return cls(
            parse_conditions(note["match"]),
            parse_conditions(note["stop"]) if note["stop"] else (),
            int(note["from_cursor"]),
            str(note["view"]),
            note["max_bytes"],
            bool(note["echo"]),
            note.get("redact") is True,
            note.get("idle_from"),
            note.get("blanks") is True,
        )


def outcome_to_note(outcome: Outcome) -> dict[str, Any]:
    """Return the recorded form of an outcome."""
    return {
        "matched": outcome.matched,
        "reason": outcome.reason,
        "at": outcome.at,
        "to_cursor": outcome.cursor,
        "index": outcome.index,
        "span": list(outcome.span) if outcome.span is not None else None,
        "match_text": outcome.match_text,
        "groups": outcome.groups,
    }


class ResumePoint(Struct, frozen=True):
    """A place from which the record can be read again.

    Attributes:
        state, timeline: the machine's state there, and the position in the timeline.
        echo: what is still expected of the inputs in the state; None where that is all of their echo.
    """

    state: MachineState
    timeline: int
    echo: EchoFilter | None = None

    @property
    def position(self) -> Position:
        """Where reading resumes."""
        return Position(self.state.classified, self.timeline)


def first_point(beginning: LogStart | None) -> ResumePoint:
    """Return the place at which a record begins."""
    if beginning is None:
        return ResumePoint(MachineState(), 0)
    return ResumePoint(MachineState.from_dict(beginning.state), beginning.timeline)


class ResumePoints:
    """Places to resume from: all recent ones and sparse older ones, so that a wait on old text re-reads little.

    A pause less than `NEAR` bytes of stream and timeline behind the place before is none: to read on from there takes
    less than a program that prints a little ten times a second would take for all its places. One less than `APART`
    bytes behind the place before it makes way for the next pause, so that the recent places reach far back.
    """

    RECENT: Final = 256
    SPACING: Final = 16 * 1024 * 1024
    NEAR: Final = 4 * 1024
    APART: Final = 16 * 1024

    def __init__(self, first: ResumePoint) -> None:
        self._sparse = [first]
        self._recent: deque[ResumePoint] = deque(maxlen=self.RECENT)
        self._makes_way = False

    def pause(self, state: MachineState, position: Position, echo: EchoFilter | None = None) -> None:
        """Remember the place of a pause, unless there is one near it. `echo`: as for `add`."""
        at = state.classified + position.timeline
        if at - _size(self._last()) < self.NEAR:
            return
        if self._makes_way and _is_certain(state, position, echo):
            self._recent.pop()
        before = _size(self._last())
        self.add(state, position, echo)
        self._makes_way = _size(self._last()) == at and at - before < self.APART

    def add(self, state: MachineState, position: Position, echo: EchoFilter | None = None) -> None:
        """Remember a place; one where bytes are held is of no use.

        Where typed input may still be echoed it is of use with `echo`, and is not kept for good.
        """
        if not _is_certain(state, position, echo):
            return
        self._makes_way = False
        point = ResumePoint(state.copy(), position.timeline, echo if state.inputs else None)
        self._recent.append(point)
        if not state.inputs and state.classified - self._sparse[-1].state.classified >= self.SPACING:
            self._sparse.append(point)

    def _last(self) -> ResumePoint:
        return self._recent[-1] if self._recent else self._sparse[-1]

    def begin_at(self, first: ResumePoint) -> None:
        """Forget the places before one, which is the first from now on."""
        place = first.position
        kept = [one for one in self._recent if one.position >= place]
        self._recent = deque(kept, maxlen=self.RECENT)
        self._makes_way = False
        self._sparse = [first, *(one for one in self._sparse if one.position > place)]

    @property
    def first(self) -> tuple[MachineState, int]:
        """The very first: a state and its place in the timeline."""
        return self._sparse[0].state, self._sparse[0].timeline

    @property
    def sparse(self) -> list[ResumePoint]:
        """The points that are kept for good, but the very first."""
        return self._sparse[1:]

    def before(self, cursor: int, timeline: int | None = None) -> ResumePoint:
        """Return the last place at or before a cursor, and at or before a place in the timeline."""
        for points in (self._recent, self._sparse):
            for point in reversed(points):
                if point.state.classified <= cursor and (timeline is None or point.timeline <= timeline):
                    return point
        return self._sparse[0]


def _size(point: ResumePoint) -> int:
    """Return how much of stream and timeline lies before a place, in bytes."""
    return point.state.classified + point.timeline


def _is_certain(state: MachineState, position: Position, echo: EchoFilter | None) -> bool:
    return (not state.inputs or echo is not None) and state.classified == position.offset


def advance(waiter: Waiter, step: Step) -> Outcome | None:
    """Give a waiter one step of the record; raises PatternTimeout."""
    if waiter.screen_source is not None:
        waiter.screen_source.timeline = step.timeline
    return waiter.advance(step.data, step.signals, step.classified)


def evaluate(
    layout: Layout,
    stream: StreamReader,
    request: WaitRequest,
    start: ResumePoint,
    seen: Position,
    horizon: Position,
    screens: Screens,
) -> Outcome | None:
    """Answer a recorded wait from the record alone: existing data up to `seen`, new data up to `horizon`."""
    source = screens.source(start.position, request.redact) if request.looks else None
    waiter = request.waiter(stream, source)
    waiter.budget = PATIENCE
    reader = RecordReader(layout, stream, start.state, start.timeline)
    try:
        waiter.attach(reader.machine.state, start.echo)
        reader.look(horizon)
        for until in (seen, horizon):
            while (step := reader.step(until)) is not None:
                outcome = advance(waiter, step)
                if outcome is not None:
                    return outcome
            if until is seen:
                outcome = waiter.begin(reader.machine.state)
                if outcome is not None:
                    return outcome
        return None
    finally:
        reader.close()
        if source is not None:
            source.close()
