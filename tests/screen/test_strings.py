"""Titles, directories, prompt zones and hyperlinks that a program sets: bounded, and free of control characters."""

from __future__ import annotations

import pytest

from blockpty.screen import Emulator
from blockpty.screen.protocol import Frame


def frame_after(data: str) -> Frame:
    emulator = Emulator(10, 2)
    emulator.feed(data.encode())
    return emulator.frame()


@pytest.mark.parametrize(
    ("data", "title"),
    [
        ("\x1b]0;one\x07", "one"), ("\x1b]2;two\x1b\\", "two"), ("\x1b]1;icon\x07", ""), ("\x1b]2;a;b\x07", "a;b"),
        ("\x1b]2;tab\there\x07", "tabhere"), ("\x1b]2;\u0085x\x07", "x"), ("\x1b]2;" + "x" * 5000 + "\x07", "x" * 1024),
    ],
)  # fmt: skip
def test_titles(data: str, title: str) -> None:
    assert frame_after(data).title == title


def test_the_stack_of_titles_is_bounded() -> None:
    pushed = "".join(f"\x1b]2;t{number}\x07\x1b[22;0t" for number in range(50))
    assert frame_after(pushed + "\x1b]2;last\x07" + "\x1b[23;0t").title == "t49"
    assert frame_after(pushed + "\x1b[23;0t" * 10).title == "t40"
    assert frame_after(pushed + "\x1b[23;0t" * 99).title == "t40", "those before the last ten are forgotten"


def test_directory_and_prompt_zone() -> None:
    assert frame_after("\x1b]7;file://host/tmp\x07").cwd == "file://host/tmp"
    assert frame_after("\x1b]133;C\x07").zone == "C"
    assert frame_after("\x1b]133;C\x07\x1b]133;D;0\x07").zone == "D"
    assert frame_after("\x1b]133;Z\x07").zone == ""


def test_hyperlinks() -> None:
    runs = frame_after("\x1b]8;id=a;https://x.test\x07link\x1b]8;;\x07end").lines[0].runs
    link = runs[0].pen.link
    assert link is not None and (link.uri, link.id) == ("https://x.test", "a") and runs[0].text == "link"
    assert runs[1].pen.link is None
    too_long = "\x1b]8;;https://" + "x" * 2100 + "\x07link"
    assert frame_after(too_long).lines[0].runs[0].pen.link is None
