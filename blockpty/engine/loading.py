"""A submitted text that the shell's line editor loads by our private key.

The marks of such a line say so (`l=1`), which tells it from every line that a person or a program typed: no drawing has
to be read. Around the output, fish draws bytes of its own that no hook can precede or follow; they are recognised here.

Rules of this file: pure, total and bounded; what is recognised depends on bytes alone, not on how they were split.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from blockpty.engine.marks import Mark

KEYS: Final = {"bash": b"\x1b[7717~", "zsh": b"\x1b[7717~", "fish": b"\x1e\x1e"}
"""What is typed to submit, by shell; shellrc/ binds it. fish 4 drops a control sequence that it does not know."""

OBEY_KEYS: Final = {"bash": b"\x1b[7720~"}
"""What is typed where the shell may yet have to obey a Ctrl-C, which it does with the next key that runs code.

It does nothing else. In bash our key is a macro, and one that is interrupted is never forgotten: after sixteen of
them, readline runs no macro any more.
"""

# What fish writes between its last hook and the command: paste mode off (fish 3), the title with a reset of the colours
# and a CR, or the reset alone where the title is empty, or nothing where the terminal has no title.
# The reset is what the terminal's description says: padding is written out, and `ansi` has more in it.
_NORMAL: Final = rb"(?:\x1b\[30m)?\x1b(?:\(B\x1b)?\[(?:0;10)?m\x0f?(?:\$<2>)?"
_TITLE: Final = rb"\x1b\][012];(?:[^\x07\x1b]|\x1b(?!\\))*(?:\x07|\x1b\\)"
_PROLOGUE: Final = rb"(?:\x1b\[\?2004l)?(?:" + _TITLE + rb"(?:" + _NORMAL + rb")?\r|" + _NORMAL + rb")?"
# On a dumb terminal fish 4 leaves out the reset and, since 4.1, the title; the CR behind them is always written.
_BARE: Final = rb"(?:" + _TITLE + rb")?\r?"
_UNTITLED: Final = rb"(?:\x1b\[\?2004l)?" + _NORMAL
# A title holds the whole command.
MAX_PROLOGUE: Final = 64 * 1024


def was_loaded(mark: Mark) -> bool:
    """Return whether the line that a BEGIN, END or PS2 speaks of was loaded by our key."""
    return mark.fields.get("l") == "1"


def has_prologue(mark: Mark, shell: str) -> bool:
    """Return whether bytes of the shell itself follow a BEGIN."""
    return shell == "fish" and was_loaded(mark) and mark.fields.get("b") != "1"


def is_bare(mark: Mark) -> bool:
    """Return whether a BEGIN says that its shell takes the terminal for a dumb one."""
    return mark.fields.get("t") == "0"


def is_wrong(mark: Mark) -> bool:
    """Return whether a BEGIN says that the shell cannot parse the text: it only prints what is wrong with it."""
    return was_loaded(mark) and mark.fields.get("r") == "1"


def prologue_end(data: bytes, bare: bool = False) -> int | None:
    """Return how many bytes at the beginning of `data` are the shell's own; None while more bytes decide."""
    # Only fish has a prologue, so this is loaded with the first command of one.
    import regex

    grammar = _BARE if bare else _PROLOGUE
    undecided = not data.endswith(b"\r") and regex.fullmatch(grammar, data, partial=True) is not None
    if undecided and len(data) < MAX_PROLOGUE:
        return None
    found = regex.match(grammar, data)
    return found.end() if found is not None else 0


def owes_more(data: bytes) -> bool:
    """Return whether the shell has yet to write a title, or what follows it; `data` was no whole prologue so far.

    A shell that sets no title and changes no colours has nothing more to write. It looks like one that is slow, so the
    block of such a command begins with its first output, its first child or its end.
    """
    return re.fullmatch(_UNTITLED, data) is None


def is_obey_key(author: object, data: bytes) -> bool:
    """Return whether an input is the key that changes nothing on the command line."""
    return author == "engine" and data in OBEY_KEYS.values()


def is_keyed(submission: Mapping[str, Any] | None) -> bool:
    """Return whether a submission was typed as our key."""
    return submission is not None and submission.get("key") is True


def is_unmarked(submission: Mapping[str, Any] | None) -> bool:
    """Return whether the shell has said of a submission, which is a staged line, that no BEGIN will come for it."""
    return submission is not None and submission.get("unmarked") is True
