"""The states of a shell and every transition between them.

Rules of this file: all that decides whether the block of a command or a program opens or ends stands in `TRANSITIONS`;
the machine only looks a pair up and performs the action. A pair that is not listed changes nothing and is reported as
an anomaly. The diagram in the documentation is made from this table.

Background blocks do not change the state of the shell and are not in the table. One opens with the first line of text
that arrives after a silence at the prompt, or after the shell has ended; the next mark, input, resize, silence or other
entry that concerns the shell closes it.

`STARTING` lasts until the first authenticated PROMPT. `IDLE` is the only state in which a command may be submitted.
`EDITING` is a prompt with something typed at it that no fresh PROMPT has answered yet. `RETURNING` lies between END and
PROMPT: the terminal is still cooked there and a command line would be cut at 4,095 bytes, so it is not `IDLE`.

`OTHER_END` ends a line that is not the submitted one. `LOADED` says that the submitted line was read behind the prompt
of another: its second prompt (PS2) comes, or where no BEGIN will, the end of its echo.

`PROGRAM` says that what was started is no shell with hooks: all that it prints is one block.

A shell with nothing but a marked prompt never says BEGIN: there the end of the echoed line is `ECHOED`. So is the first
output behind the line in bash without PS0, which says at its prompt that no BEGIN will come.
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class ShellState(Enum):
    """State of the shell, as far as authenticated marks and the timeline tell."""

    STARTING = "starting"
    IDLE = "idle"
    EDITING = "editing"
    SUBMITTED = "submitted"
    RUNNING = "running"
    RETURNING = "returning"
    EXITED = "exited"

    # Members are keys of the table below; the hash of Enum costs a Python call for each.
    __hash__ = object.__hash__


class Stimulus(Enum):
    """Stimulus of a transition: accepted marks and timeline entries."""

    SPAWN = "spawn"
    SUBMIT = "submit"
    TYPED = "typed"
    BEGIN = "begin"
    END = "end"
    LATE_END = "late_end"
    OTHER_END = "other_end"
    ECHOED = "echoed"
    LOADED = "loaded"
    PROMPT = "prompt"
    REDRAW = "redraw"
    SETTLED = "settled"
    EXIT = "exit"
    ENTER = "enter"
    LEFT = "left"
    ENTRY_ABANDONED = "entry_abandoned"
    PROGRAM = "program"

    __hash__ = object.__hash__


class Action(Enum):
    """Action of the machine on a transition."""

    NOTHING = "nothing"
    START = "start a shell"
    PEND = "remember the submission"
    OPEN = "open the submitted block"
    OPEN_ECHOED = "open the submitted block behind the echo of its line"
    OPEN_FOREIGN = "open a block that a person typed"
    AWAIT_OWN = "another line ended, the submitted one may still come"
    AWAIT_END = "the submitted line came behind the prompt of another"
    ADD_PART = "add a part to the open block"
    REOPEN = "add a part, or open a foreign block"
    END_OUTPUT = "the output ended, keep the status"
    END_UNSEEN = "the output ended, its begin was lost"
    READY = "the shell is ready"
    CLOSE = "close the block, the shell is ready"
    CLOSE_UNSEEN = "close a block of which neither BEGIN nor END was seen"
    CLOSE_DEGRADED = "close the block without a PROMPT"
    CANCEL = "the submission never ran"
    EXIT = "the shell ended, with whatever was open"
    ENTER = "our hooks go into another shell, whatever was open is left to it"
    LEFT = "that shell ended, with whatever was open in it"
    OPEN_PROGRAM = "open the block of what has the terminal from here to its end"


_S, _I, _A = ShellState, Stimulus, Action

TRANSITIONS: Final[dict[tuple[ShellState, Stimulus], tuple[ShellState, Action]]] = {
    **{(state, _I.SPAWN): (_S.STARTING, _A.START) for state in _S},
    **{(state, _I.EXIT): (_S.EXITED, _A.EXIT) for state in _S},
    **{(state, _I.ENTER): (_S.STARTING, _A.ENTER) for state in _S if state is not _S.EXITED},
    **{(state, _I.LEFT): (_S.RUNNING, _A.LEFT) for state in _S if state is not _S.EXITED},
    # The text of a line is an event only where the line was submitted.
    **{(state, _I.ECHOED): (state, _A.NOTHING) for state in _S},
    (_S.STARTING, _I.TYPED): (_S.STARTING, _A.NOTHING),
    (_S.STARTING, _I.BEGIN): (_S.RUNNING, _A.OPEN_FOREIGN),
    (_S.STARTING, _I.END): (_S.RETURNING, _A.NOTHING),
    (_S.STARTING, _I.PROMPT): (_S.IDLE, _A.READY),
    (_S.STARTING, _I.SETTLED): (_S.STARTING, _A.NOTHING),
    # The hooks did not show in a shell that replaced ours: it runs on without them.
    (_S.STARTING, _I.ENTRY_ABANDONED): (_S.RUNNING, _A.NOTHING),
    (_S.STARTING, _I.PROGRAM): (_S.RUNNING, _A.OPEN_PROGRAM),
    (_S.IDLE, _I.SUBMIT): (_S.SUBMITTED, _A.PEND),
    (_S.IDLE, _I.TYPED): (_S.EDITING, _A.NOTHING),
    (_S.IDLE, _I.BEGIN): (_S.RUNNING, _A.OPEN_FOREIGN),
    (_S.IDLE, _I.END): (_S.RETURNING, _A.NOTHING),
    (_S.IDLE, _I.LATE_END): (_S.RETURNING, _A.NOTHING),
    (_S.IDLE, _I.LOADED): (_S.SUBMITTED, _A.AWAIT_END),
    (_S.IDLE, _I.PROMPT): (_S.IDLE, _A.READY),
    (_S.IDLE, _I.REDRAW): (_S.IDLE, _A.NOTHING),
    (_S.IDLE, _I.SETTLED): (_S.IDLE, _A.NOTHING),
    (_S.EDITING, _I.SUBMIT): (_S.SUBMITTED, _A.PEND),
    (_S.EDITING, _I.TYPED): (_S.EDITING, _A.NOTHING),
    (_S.EDITING, _I.BEGIN): (_S.RUNNING, _A.OPEN_FOREIGN),
    (_S.EDITING, _I.END): (_S.RETURNING, _A.NOTHING),
    (_S.EDITING, _I.LATE_END): (_S.RETURNING, _A.NOTHING),
    (_S.EDITING, _I.LOADED): (_S.SUBMITTED, _A.AWAIT_END),
    (_S.EDITING, _I.PROMPT): (_S.IDLE, _A.READY),
    (_S.EDITING, _I.REDRAW): (_S.EDITING, _A.NOTHING),
    (_S.EDITING, _I.SETTLED): (_S.IDLE, _A.READY),
    (_S.SUBMITTED, _I.TYPED): (_S.SUBMITTED, _A.NOTHING),
    (_S.SUBMITTED, _I.BEGIN): (_S.RUNNING, _A.OPEN),
    (_S.SUBMITTED, _I.ECHOED): (_S.RUNNING, _A.OPEN_ECHOED),
    (_S.SUBMITTED, _I.END): (_S.RETURNING, _A.CANCEL),
    (_S.SUBMITTED, _I.OTHER_END): (_S.RETURNING, _A.AWAIT_OWN),
    (_S.SUBMITTED, _I.LATE_END): (_S.RETURNING, _A.END_UNSEEN),
    (_S.SUBMITTED, _I.PROMPT): (_S.IDLE, _A.CLOSE_UNSEEN),
    (_S.SUBMITTED, _I.REDRAW): (_S.SUBMITTED, _A.NOTHING),
    (_S.SUBMITTED, _I.SETTLED): (_S.SUBMITTED, _A.NOTHING),
    (_S.RUNNING, _I.TYPED): (_S.RUNNING, _A.NOTHING),
    (_S.RUNNING, _I.BEGIN): (_S.RUNNING, _A.ADD_PART),
    (_S.RUNNING, _I.END): (_S.RETURNING, _A.END_OUTPUT),
    (_S.RUNNING, _I.PROMPT): (_S.IDLE, _A.CLOSE),
    (_S.RUNNING, _I.REDRAW): (_S.RUNNING, _A.NOTHING),
    (_S.RUNNING, _I.SETTLED): (_S.RUNNING, _A.NOTHING),
    (_S.RETURNING, _I.TYPED): (_S.RETURNING, _A.NOTHING),
    (_S.RETURNING, _I.BEGIN): (_S.RUNNING, _A.REOPEN),
    (_S.RETURNING, _I.END): (_S.RETURNING, _A.END_OUTPUT),
    (_S.RETURNING, _I.PROMPT): (_S.IDLE, _A.CLOSE),
    (_S.RETURNING, _I.SETTLED): (_S.IDLE, _A.CLOSE_DEGRADED),
    (_S.EXITED, _I.TYPED): (_S.EXITED, _A.NOTHING),
}


def diagram() -> str:
    """Return the table as a Mermaid state diagram, for the documentation."""
    rows = [
        f"    {state.value} --> {after.value}: {stimulus.value}"
        for (state, stimulus), (after, _) in TRANSITIONS.items()
        if state is not after and stimulus not in (Stimulus.SPAWN, Stimulus.EXIT, Stimulus.ENTER, Stimulus.LEFT)
    ]
    always = [
        "    [*] --> starting: spawn",
        "    running --> exited: exit, from every state",
        "    exited --> starting: spawn",
        "    running --> starting: enter, from every state but exited",
        "    starting --> running: left, from every state but exited",
    ]
    return "\n".join(["stateDiagram-v2", *always[:1], *rows, *always[1:]])
