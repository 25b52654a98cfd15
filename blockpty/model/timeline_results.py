"""Result of `timeline`: what a recording looks like over its whole time. Times are ms after its beginning."""

from __future__ import annotations

from blockpty.model.result import REVIVED, Result


class TimelineBlock(Result, frozen=True):
    """A block on the timeline.

    Attributes:
        block_id, seq, kind, author, state, exit_status, signal: as in the block's record.
        cmd: the beginning of its command.
        begin_ms, end_ms: when it began and ended; `end_ms` is None while it runs.
        cursor, end_cursor: where its output begins and ends.
    """

    block_id: str
    seq: int
    kind: str
    author: str
    cmd: str
    state: str
    exit_status: int | None
    signal: str | None
    begin_ms: int
    end_ms: int | None
    cursor: int
    end_cursor: int | None


class Silence(Result, frozen=True):
    """More than a second in which nothing was printed; `cursor`: where the output goes on."""

    begin_ms: int
    end_ms: int
    cursor: int


class TimelineResize(Result, frozen=True):
    """A size of the terminal; `fresh`: that of another shell, on a terminal of its own."""

    at_ms: int
    cursor: int
    cols: int
    rows: int
    fresh: bool


class ControlChange(Result, frozen=True):
    """Change of control: who may type from here on; `state`, `who` and `halted` as in the event `control`."""

    at_ms: int
    cursor: int
    state: str
    who: str | None
    halted: str | None


class TimelineQuestion(Result, frozen=True):
    """A question to a person, or the answer to it.

    Attributes:
        type: `approval_requested`, `approval_decided`, `user_input_requested` or `user_input_done`.
        id: which question, the same for both.
        outcome: the verdict or the outcome of an answer, as in the event.
    """

    at_ms: int
    cursor: int
    type: str
    id: str
    outcome: str | None


class TimelineResult(Result, frozen=True):
    """A recording over its whole time, for a bar that one can seek in.

    Attributes:
        begin_ts: when it begins, in ms since 1970; duration_ms: until the last that happened.
        begin: first cursor; cursor: where it ends by now.
        buckets: bytes that were printed in each of so many equal parts of the duration.
        blocks, silences, resizes, control, approvals: what happened, in order; of each kind the last 10,000.
        left_out: how many older ones of a kind there are, by the name of the field.
    """

    begin_ts: int
    duration_ms: int
    begin: int
    cursor: int
    buckets: list[int]
    blocks: list[TimelineBlock]
    silences: list[Silence]
    resizes: list[TimelineResize]
    control: list[ControlChange]
    approvals: list[TimelineQuestion]
    left_out: dict[str, int]


REVIVED.update(
    {
        "list[TimelineBlock]": lambda value: [TimelineBlock.from_dict(one) for one in value],
        "list[Silence]": lambda value: [Silence.from_dict(one) for one in value],
        "list[TimelineResize]": lambda value: [TimelineResize.from_dict(one) for one in value],
        "list[ControlChange]": lambda value: [ControlChange.from_dict(one) for one in value],
        "list[TimelineQuestion]": lambda value: [TimelineQuestion.from_dict(one) for one in value],
    }
)
