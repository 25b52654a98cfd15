"""The table of modes: its keys, and what a terminal begins with."""

from __future__ import annotations

import pytest

from blockpty.screen import Emulator, modes


@pytest.mark.parametrize(
    ("number", "private", "known"),
    [(4, False, modes.IRM), (20, False, modes.LNM), (6, True, modes.DECOM), (7, True, modes.DECAWM),
     (25, True, modes.DECTCEM), (1, True, modes.DECCKM), (2004, True, modes.BRACKETED_PASTE)],
)  # fmt: skip
def test_private_modes_have_keys_of_their_own(number: int, private: bool, known: int) -> None:
    assert modes.key(number, private) == known
    assert modes.key(number, True) != modes.key(number, False)


def test_only_wrapping_and_the_cursor_are_on_at_first() -> None:
    assert {mode for mode, on in modes.INITIAL.items() if on} == {modes.DECAWM, modes.DECTCEM}
    emulator = Emulator(10, 3)
    assert emulator.mode(7) is True and emulator.mode(25) is True and emulator.mode(1049) is False


def test_every_mode_that_excludes_others_is_in_the_table() -> None:
    assert {*modes.MOUSE, *modes.MOUSE_ENCODINGS, *modes.ALT, modes.SAVE_CURSOR} <= modes.INITIAL.keys()
