"""The data that a screen gives: lines without the blanks at their end, and an emulator behind the whole protocol."""

from __future__ import annotations

import pytest

from blockpty.screen import Emulator
from blockpty.screen.pens import Pen
from blockpty.screen.protocol import EmulatedScreen, Line, Run


@pytest.mark.parametrize(("texts", "text"), [(["ab", "  "], "ab"), ([" a ", "b "], " a b"), (["   "], ""), ([], "")])
def test_the_text_of_a_line(texts: list[str], text: str) -> None:
    assert Line(tuple(Run(one, len(one), Pen()) for one in texts)).text == text


def test_the_emulator_has_the_whole_protocol() -> None:
    screen: EmulatedScreen = Emulator(20, 4)
    screen.feed(b"hello\r\n\x1b[?2004h")
    frame = screen.frame()
    assert (frame.cols, frame.rows, len(frame.lines)) == (screen.cols, screen.rows, 4) == (20, 4, 4)
    assert frame.lines[0].text == "hello" and screen.cursor() == frame.cursor
    assert screen.mode(2004) is True and screen.mode(4, private=False) is False and screen.mode(9999) is None
    assert screen.margins() == (0, 3, 0, 19)
    screen.resize(10, 3)
    assert (screen.frame().cols, screen.frame().rows) == (10, 3)
    assert screen.dump()
