"""Which marks are believed.

Rules of this file: a mark is believed only with the nonce and the pid of the shell that runs now, and only with the
next number. Numbers that were used are refused for ever, so showing an old transcript of the same conversation
changes nothing.
"""

from __future__ import annotations

from typing import Final

from blockpty.engine.marks import Mark
from blockpty.engine.snapshot import MachineState
from blockpty.engine.states import ShellState, Stimulus

_SEQUENCED: Final = {"__BEGIN__": Stimulus.BEGIN, "__END__": Stimulus.END}
_AT_PROMPT: Final = (ShellState.SUBMITTED, ShellState.IDLE, ShellState.EDITING)


def judge(state: MachineState, mark: Mark) -> Stimulus | str | None:
    """Return what an authentic mark means, None when it moves nothing, or the reason why it is not believed."""
    if not state.nonce or mark.nonce != state.nonce:
        return "nonce"
    introduces = mark.kind == "__HELLO__" and not state.identity
    if mark.instance != state.identity and not introduces:
        return "instance"
    if mark.kind == "__HELLO__":
        return None if state.shell is ShellState.STARTING and mark.seq == 0 and not state.seq else "sequence"
    if mark.kind == "__PROMPT__":
        return _judge_prompt(state, mark)
    if mark.kind in _SEQUENCED:
        begins = 1 if mark.kind == "__BEGIN__" else 0
        if mark.seq == state.seq + 1 and mark.count == state.count + begins:
            if mark.kind == "__END__" and state.shell is ShellState.SUBMITTED and not state.begins:
                return Stimulus.LATE_END
            return _SEQUENCED[mark.kind]
        # `exec 2>/dev/null` swallows BEGIN, which bash writes to fd 2, but not END: exactly one number is missing.
        lost = mark.kind == "__END__" and mark.seq == state.seq + 2 and mark.count == state.count + 1
        return Stimulus.LATE_END if lost and state.shell in _AT_PROMPT else "sequence"
    if mark.kind == "__OUT_END__" and state.prompt_only and mark.prompt != state.prompt + 1:
        # Nothing else grows in this shell, so the number of the prompt to come is what makes this mark new.
        return "sequence"
    return None if mark.seq == state.seq else "sequence"


def level_of(state: MachineState, mark: Mark) -> int | None:
    """Return which of the outer shells a mark speaks for, if it does so believably; None for any other mark."""
    for level in range(len(state.outer) - 1, -1, -1):
        if state.outer[level]["nonce"] == mark.nonce:
            there = state.copy()
            for name, value in state.outer[level].items():
                setattr(there, name, value)
            there.shell = ShellState.RUNNING
            return level if isinstance(judge(there, mark), Stimulus) else None
    return None


def _judge_prompt(state: MachineState, mark: Mark) -> Stimulus | str:
    if mark.prompt is None or mark.prompt < state.prompt:
        return "sequence"
    missing = (mark.seq - state.seq, mark.count - state.count)
    if mark.prompt == state.prompt:
        return Stimulus.REDRAW if state.prompt and missing == (0, 0) else "sequence"
    if missing == (0, 0) and state.shell is ShellState.SUBMITTED and mark.prompt <= state.prompt + state.owed:
        # Taken for granted at a silence, drawn only now: it belongs before the command that was typed since.
        return Stimulus.REDRAW
    # A fresh prompt may follow an END that never reached the terminal (`enable -n printf`), or a whole command of which
    # neither did; its numbers are new all the same.
    lost = missing == (1, 0) or (missing == (2, 1) and state.shell in _AT_PROMPT)
    return Stimulus.PROMPT if missing == (0, 0) or lost else "sequence"
