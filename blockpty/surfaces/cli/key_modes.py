"""The modes of a terminal that decide what its keys, pastes and mouse send. Pure."""

from __future__ import annotations

from blockpty.screen.protocol import Modes
from blockpty.screen.snapshot import ENCODING_CODES, MOUSE_CODES


def change(before: Modes, after: Modes) -> str:
    """Return what to write to a terminal so that its keys send what they do in another set of modes."""
    old, new = _switched_on(before), _switched_on(after)
    parts = [f"\x1b[?{number}l" for number in old if number not in new]
    parts += [f"\x1b[?{number}h" for number in new if number not in old]
    if before.application_keypad != after.application_keypad:
        parts.append("\x1b=" if after.application_keypad else "\x1b>")
    if before.modify_other_keys != after.modify_other_keys:
        parts.append(f"\x1b[>4;{after.modify_other_keys}m")
    if before.keyboard != after.keyboard:
        parts.append(f"\x1b[={after.keyboard};1u")
    return "".join(parts)


def _switched_on(modes: Modes) -> list[int]:
    """Return the numbers of the DEC private modes that are on."""
    switches = [
        (1, modes.application_cursor),
        (1004, modes.focus_events),
        (2004, modes.bracketed_paste),
        (ENCODING_CODES.get(modes.mouse_encoding, 0), modes.mouse != "off" and modes.mouse_encoding != "x10"),
        (MOUSE_CODES.get(modes.mouse, 0), modes.mouse != "off"),
    ]
    return [number for number, on in switches if on]
