"""Modes that are changed on a terminal leave it with exactly those of the other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from blockpty.screen.emulator import Emulator
from blockpty.screen.protocol import Modes
from blockpty.surfaces.cli.key_modes import change

NORMAL = Emulator(1, 1).frame().modes
MODES = st.builds(
    NORMAL._replace,
    application_cursor=st.booleans(),
    application_keypad=st.booleans(),
    bracketed_paste=st.booleans(),
    focus_events=st.booleans(),
    mouse=st.sampled_from(["off", "press", "click", "drag", "motion"]),
    mouse_encoding=st.sampled_from(["utf8", "sgr", "urxvt", "sgr-pixels"]),
    keyboard=st.integers(0, 31),
    modify_other_keys=st.integers(0, 2),
)


@given(st.lists(MODES, min_size=1))
def test_a_terminal_follows_from_one_to_the_next_and_back(several: list[Modes]) -> None:
    screen, before = Emulator(10, 2), NORMAL
    for after in [*several, NORMAL]:
        screen.feed(change(before, after).encode())
        found = screen.frame().modes
        # Without a mouse its encoding says nothing, and is not set.
        expected = after if after.mouse != "off" else after._replace(mouse_encoding="x10")
        assert found == expected
        before = after
    assert screen.frame().modes == NORMAL


def test_nothing_is_written_for_what_stays() -> None:
    assert change(Modes(bracketed_paste=True), Modes(bracketed_paste=True, insert=True)) == ""
