"""Finding a text on a screen: which cell, and for the n-th time."""

from __future__ import annotations

from blockpty.screen.finding import find_text
from tests.support.emulators import fed


def test_the_middle_of_the_text_and_the_nth_of_it() -> None:
    find = find_text(fed(b"  <Yes>  <No>\r\n\xe6\xbc\xa2\xe5\xad\x97 <Yes> yes\x1b[1m<Y\x1b[mes>", 30, 4).frame())
    assert find("<Yes>", 1) == ((4, 0), 3)
    assert find("<Yes>", 2) == ((7, 1), 3), "two wide characters stand before it"
    assert find("<Yes>", 3) == ((16, 1), 3), "it may be drawn in several ways"
    assert find("<Yes>", 4) == (None, 3)
    assert find("<Yes>", 0) == (None, 3)
    assert find("\u5b57", 1) == ((2, 1), 1)
    assert find("Maybe", 1) == (None, 0)


def test_texts_do_not_overlap_and_no_text_stands_on_two_rows() -> None:
    find = find_text(fed(b"aaaaa", 3, 4).frame())
    assert find("aa", 1) == ((0, 0), 2) and find("aa", 2) == ((0, 1), 2)
