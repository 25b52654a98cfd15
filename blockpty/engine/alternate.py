"""The alternate screen: where programs switch to it and back, found in the bytes without drawing them.

Rules of this file: pure, and the same for any chunks. Recognised are DEC private modes 47, 1047 and 1049, also among
others in one sequence, and RIS; the emulator obeys the same ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from blockpty.engine.scanner import Scanner, Token
from blockpty.engine.snapshot import MachineState

_MODES: Final = frozenset({47, 1047, 1049})
_SWITCH: Final = re.compile(rb"\x1b(?:\[\?([0-9;]{1,64})([hl])|c)")
_UNFINISHED: Final = re.compile(rb"\x1b(?:\[(?:\?[0-9;]{0,64})?)?\Z")
_LONGEST: Final = 68


def may_switch(data: bytes, state: MachineState) -> bool:
    """Whether bytes can hold a switch or its beginning; a quick look that most output passes."""
    # A beginning stands at the end of what the scanner gives out, which may hold the rest back from the next ESC on.
    return (
        bool(state.switching) or state.alternate or b"?" in data or data.endswith((b"\x1b", b"\x1b["))
        or b"\x1b\x1b" in data or b"\x1b[\x1b" in data
    )  # fmt: skip


def parts(state: MachineState, token: Token, scanner: Scanner, emit: Callable[..., None]) -> Iterator[Token]:
    """Yield a token of text in parts, and emit each change of the screen behind the part that ends with it."""
    data, begin = scanner.bytes_of(token, token.end - token.begin), token.begin
    for end, shown in _switches(data, state.switching, state.alternate):
        offset = token.begin + end
        yield token._replace(begin=begin, end=offset)
        state.alternate, begin = shown, offset
        if state.pictures:
            emit("alt_screen", offset, on=shown)
    state.switching = _unfinished(data, state.switching)
    if begin < token.end:
        yield token._replace(begin=begin)


def to_main(state: MachineState, offset: int, emit: Callable[..., None]) -> None:
    """Another shell begins, on the main screen."""
    shown, state.alternate, state.switching = state.alternate, False, b""
    if shown and state.pictures:
        emit("alt_screen", offset, on=False)


def _switches(data: bytes, held: bytes, alternate: bool) -> Iterator[tuple[int, bool]]:
    """Yield (end of the sequence in `data`, whether the alternate screen is shown now) for each change."""
    for found in _SWITCH.finditer(held + data):
        if found[1] is None:
            shown = False
        elif _MODES.isdisjoint(int(number) for number in found[1].split(b";") if len(number.lstrip(b"0")) in (2, 4)):
            continue
        else:
            shown = found[2] == b"h"
        if shown is not alternate:
            alternate = shown
            yield found.end() - len(held), shown


def _unfinished(data: bytes, held: bytes) -> bytes:
    """Return the beginning of a sequence that more bytes may finish, at the end of `data`."""
    found = _UNFINISHED.search((held + data)[-_LONGEST:])
    return found.group() if found is not None else b""
