"""The grid of cells: text that wraps, wide and combining characters, scrolling, and tables that stay small."""

from __future__ import annotations

import pytest

from blockpty.screen.state import ScreenState, checked_size


def fresh(cols: int = 4, rows: int = 3) -> ScreenState:
    return ScreenState(cols, rows, history_rows=5)


def texts(state: ScreenState) -> list[str]:
    return [state.clusters.text(row.text).rstrip() for row in state.lines]


@pytest.mark.parametrize("size", [(0, 1), (1, 0), (-1, 5), (1001, 1000)])
def test_a_screen_has_cells_and_not_too_many(size: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="a screen of"):
        checked_size(*size)


def test_text_wraps_only_with_the_next_character() -> None:
    state = fresh()
    state.draw("abcd")
    assert (state.x, state.y, state.pending) == (3, 0, True)
    state.draw("e")
    assert texts(state) == ["abcd", "e", ""] and state.lines[0].wrapped and (state.x, state.y) == (1, 1)


def test_rows_that_leave_the_top_are_remembered_up_to_a_bound() -> None:
    state, left = fresh(), []
    state.scrolled_off = lambda row: left.append(row.text.rstrip())
    for number in range(9):
        state.draw(str(number))
        state.x = 0
        state.index()
    assert left == ["0", "1", "2", "3", "4", "5", "6"]
    assert [row.text.rstrip() for row in state.history] == ["2", "3", "4", "5", "6"]
    assert texts(state) == ["7", "8", ""]


def test_the_alternate_screen_remembers_nothing() -> None:
    state = fresh()
    state.alt = True
    state.scroll_up(0, 2)
    assert not state.history


def test_a_region_scrolls_and_the_rest_stays() -> None:
    state = fresh(4, 4)
    for row, text in zip(state.lines, "abcd", strict=True):
        row.text = text * 4
    state.top, state.bottom = 1, 2
    state.scroll_up(1, 1)
    assert texts(state) == ["aaaa", "cccc", "", "dddd"]
    state.scroll_down(1, 9)
    assert texts(state) == ["aaaa", "", "", "dddd"] and not state.history


def test_a_wide_character_does_not_fit_into_the_last_column() -> None:
    state = fresh()
    state.draw("abc\u4e2d")
    assert texts(state)[:2] == ["abc", "\u4e2d\0"] or texts(state)[1].startswith("\u4e2d")
    assert (state.x, state.y) == (2, 1)


def test_marks_join_the_cell_before_them() -> None:
    state = fresh()
    state.draw("e\u0301x")
    assert state.clusters.text(state.lines[0].text).rstrip() == "e\u0301x" and state.x == 2
    # Also behind the last column, where the cursor waits.
    state.draw("yz\u0301")
    assert state.clusters.text(state.lines[0].text) == "e\u0301xyz\u0301" and state.pending


def test_compacting_changes_nothing_that_is_shown() -> None:
    state = fresh()
    state.draw("e\u0301\u4e2d")
    state.brush = state.brushes.of(state.brush.pen._replace(fg=3))
    state.draw("x")
    before = texts(state), [state.brushes.pen(mark) for mark in state.lines[0].attrs], state.brush.pen
    for number in range(200):
        state.brushes.of(state.brush.pen._replace(fg=number % 256, bg=number))
    assert len(state.brushes) > 100
    state.compact()
    assert len(state.brushes) < 10
    assert (texts(state), [state.brushes.pen(mark) for mark in state.lines[0].attrs], state.brush.pen) == before
