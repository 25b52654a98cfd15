"""The table of sequences: what each means, and how its parameters are read.

Rules of this file: a sequence that is not in the table changes nothing. A CSI is looked up by its private prefix,
intermediates and final character without the numbers; what it means with its numbers is kept in `KNOWN`, so that a
sequence that comes again costs one look-up. Strings (OSC) are in strings.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from blockpty.screen import controls, editing, motions, strings
from blockpty.screen.state import ScreenState

Parameters = tuple[int, ...]
Handler = Callable[[ScreenState, Parameters], None]

# Most parameters that any sequence here takes is 2; the mode ones take more.
_PARAMETERS: Final = 32
_LARGEST: Final = 65535
_MOST_KNOWN: Final = 8192
_LONGEST_KNOWN: Final = 24


def _charset(slot: int, designator: str) -> Handler:
    def designate(s: ScreenState, p: Parameters) -> None:
        s.charsets[slot] = designator
        s.settle()

    return designate


def _shift(slot: int) -> Handler:
    def shift(s: ScreenState, p: Parameters) -> None:
        s.shift = slot
        s.settle()

    return shift


def _single_shift(slot: int) -> Handler:
    def shift(s: ScreenState, p: Parameters) -> None:
        s.single_shift = slot
        s.settle()

    return shift


def ignore(s: ScreenState, p: Parameters) -> None:
    """Do nothing."""


def _bell(s: ScreenState, p: Parameters) -> None:
    s.bells += 1


def _passed_over(kind: str) -> Handler:
    return lambda s, p: s.pass_over(kind)


_NONE: Final[Parameters] = ()

# C0 controls and escapes, whole.
_FIXED: Final[dict[str, Handler]] = {
    "\a": _bell,
    "\b": motions.backspace,
    "\t": lambda s, p: motions.tab(s),
    "\n": motions.line_feed,
    "\v": motions.line_feed,
    "\f": motions.line_feed,
    "\r": motions.carriage_return,
    "\r\n": motions.new_line,
    "\x0e": _shift(1),
    "\x0f": _shift(0),
    "\x1bD": motions.index,
    "\x1bE": motions.next_line,
    "\x1bH": motions.set_tab,
    "\x1bM": motions.reverse_index,
    "\x1bN": _single_shift(2),
    "\x1bO": _single_shift(3),
    "\x1bc": controls.full_reset,
    "\x1bn": _shift(2),
    "\x1bo": _shift(3),
    "\x1b6": editing.back_index,
    "\x1b9": editing.forward_index,
    "\x1b7": controls.save_cursor,
    "\x1b8": controls.restore_cursor,
    "\x1b=": controls.application_keypad,
    "\x1b>": controls.numeric_keypad,
    "\x1b#8": editing.alignment_display,
    "\x1bV": controls.guard,
    "\x1bW": controls.end_guard,
    **{
        f"\x1b{intermediate}{designator}": _charset(slot, designator)
        for slot, intermediate in enumerate("()*+")
        for designator in "B0A124567CEHKQRYZ=<>"
    },
}

# Private prefix, intermediates and final character of a CSI. SGR is missing: it has a path of its own.
_CSI: Final[dict[str, Handler]] = {
    "@": editing.insert_characters,
    " @": editing.scroll_left,
    "A": motions.cursor_up,
    " A": editing.scroll_right,
    "B": motions.cursor_down,
    "C": motions.cursor_forward,
    "D": motions.cursor_back,
    "E": motions.cursor_next_line,
    "F": motions.cursor_previous_line,
    "G": motions.cursor_column,
    "H": motions.cursor_position,
    "I": motions.tab,
    "J": editing.erase_in_display,
    "?J": editing.erase_in_display_selectively,
    "K": editing.erase_in_line,
    "?K": editing.erase_in_line_selectively,
    "L": editing.insert_lines,
    "M": editing.delete_lines,
    "P": editing.delete_characters,
    "S": editing.scroll_up,
    "T": editing.scroll_down,
    "^": editing.scroll_down,
    "?W": motions.default_tabs,
    "X": editing.erase_characters,
    "Z": motions.back_tab,
    "`": motions.cursor_column_absolute,
    "a": motions.column_relative,
    "b": editing.repeat,
    "d": motions.cursor_row_absolute,
    "e": motions.row_relative,
    "f": motions.cursor_position,
    "g": motions.clear_tab,
    "h": controls.set_modes,
    "?h": controls.set_private_modes,
    "l": controls.reset_modes,
    "?l": controls.reset_private_modes,
    ">m": controls.modify_keys,
    ">n": lambda s, p: controls.modify_keys(s, (p[0], 0)),
    "!p": controls.soft_reset,
    " q": controls.cursor_style,
    '"q': controls.protect,
    "r": motions.set_margins,
    "?r": controls.restore_private_modes,
    "s": motions.set_columns_or_save,
    "?s": controls.save_private_modes,
    "t": strings.window,
    "u": controls.restore_cursor,
    "<u": controls.pop_keyboard,
    "=u": controls.set_keyboard,
    ">u": controls.push_keyboard,
    "'}": editing.insert_columns,
    "'~": editing.delete_columns,
}

# Questions, which queries.py knows: they change nothing on a screen.
_CSI.update(dict.fromkeys(("c", ">c", "n", "?n", "$p", "?$p", ">q", "?u"), ignore))
_STRINGS: Final = {"P": "DCS", "X": "SOS", "^": "PM", "_": "APC"}
_STRING_KIND: Final = re.compile(r"[0-?]*([ -/]{0,2}[@-~])")
_SHOWN: Final = 4

KNOWN: Final[dict[str, tuple[Handler, Parameters]]] = {text: (handler, _NONE) for text, handler in _FIXED.items()}
_CSI_PARTS: Final = re.compile(r"\x1b\[([<-?]?)([0-9;:]*)([ -/]*[@-~])")


def _forget() -> None:
    """Drop what was remembered; never the fixed ones, since another emulator may be looking them up just now."""
    for sequence in list(KNOWN):
        if sequence not in _FIXED:
            KNOWN.pop(sequence, None)


def obey(s: ScreenState, sequence: str) -> None:
    """Do what a sequence that `KNOWN` does not have means, and remember it where that is of use."""
    if sequence.startswith("\x1b]"):
        strings.obey(s, sequence[2:].removesuffix("\x07").removesuffix("\x1b\\"))
        return
    handler, parameters = KNOWN.get(sequence) or _look_up(sequence)
    if len(sequence) <= _LONGEST_KNOWN:
        if len(KNOWN) >= _MOST_KNOWN:
            _forget()
        KNOWN[sequence] = handler, parameters
    handler(s, parameters)


def _look_up(sequence: str) -> tuple[Handler, Parameters]:
    parts = _CSI_PARTS.fullmatch(sequence)
    if parts is None:
        return _uncontrolled(sequence), _NONE
    prefix, numbers, final = parts.groups()
    return _CSI.get(prefix + final) or _passed_over(f"CSI {prefix}{final}"), _read(numbers)


def _uncontrolled(sequence: str) -> Handler:
    """Return what to do about an escape or a control character that is not in the table."""
    if sequence[0] == "\x1b":
        # ST ends what has ended already.
        return ignore if sequence == "\x1b\\" else _passed_over(f"ESC {sequence[1:][:_SHOWN]}")
    return _passed_over(f"C1 {ord(sequence):02X}") if sequence >= "\x80" else ignore


def swallowed(s: ScreenState, beginning: str) -> None:
    """Count a control string (DCS, SOS, PM, APC) that was passed over; a question that is answered is none."""
    kind = _STRINGS[beginning[0]]
    found = _STRING_KIND.match(beginning, 1)
    if kind == "DCS" and found is not None and found[1] == "$q":
        return
    s.pass_over(f"{kind} {found[1]}" if found is not None else kind)


def _read(numbers: str) -> Parameters:
    """Return the parameters, at least one; what is absent is 0. Of colon groups the first counts."""
    read = []
    for group in numbers.split(";", _PARAMETERS)[:_PARAMETERS]:
        number = group.partition(":")[0].lstrip("0")
        read.append(0 if not number else min(int(number), _LARGEST) if len(number) <= 9 else _LARGEST)
    return tuple(read)
