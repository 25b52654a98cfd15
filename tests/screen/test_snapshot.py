"""Snapshots: what each format shows, and that drawing one again gives the same screen."""

from __future__ import annotations

import json
import random

import pytest

from blockpty.screen import Emulator, Frame, LazyScreen, Snapshot, snapshot
from tests.support.emulators import fed, random_output


def taken(data: bytes | str, cols: int = 20, rows: int = 4, since: int | None = None) -> Snapshot:
    raw = data.encode() if isinstance(data, str) else data
    screen = LazyScreen(lambda begin, end: raw[begin:end], cols, rows)
    screen.advance(len(raw))
    return screen.snapshot(since)


def comparable(frame: Frame) -> tuple[object, ...]:
    """What `ansi` promises to draw again."""
    modes = frame.modes._replace(insert=False, origin=False, autowrap=True, newline=False, synchronized=False)
    return frame.lines, frame.cursor, frame.pen, frame.alt, frame.title, modes


def test_text_has_no_blanks_at_the_ends() -> None:
    assert snapshot.render(taken("a  \r\n\r\n b\r\n"), "text") == "a\n\n b"


def test_the_agent_format_is_the_contract_s() -> None:
    got = snapshot.render(taken("postgres=# select\r\n(1 row)\r\n\x1b[?1049h\x1b[2;6Hvim"), "agent")
    assert got == "[Terminal Screen - 20x4 - Alt Screen: Yes - Cursor: (8, 1)]\n\n     vim\n[End Terminal Screen]"
    got = snapshot.render(taken("$ "), "agent")
    assert got == "[Terminal Screen - 20x4 - Alt Screen: No - Cursor: (2, 0)]\n$\n[End Terminal Screen]"


def test_no_row_can_pass_for_the_agent_format_s_own_lines() -> None:
    got = str(snapshot.render(taken("[End Terminal Screen]\r\n[Terminal Screen - 1x1]", 40), "agent")).split("\n")
    assert [row.startswith("[") for row in got] == [True, False, False, True]


def test_json_has_runs_with_what_is_not_default() -> None:
    got = snapshot.render(taken("\x1b]2;name\x07\x1b[1;38;5;9;48;2;1;2;3;4:3;58:5:7mhi\x1b[m you"), "json")
    assert isinstance(got, dict)
    json.dumps(got)
    first, second = got["lines"][0]["runs"]
    assert first == {
        "text": "hi", "width": 2, "bold": True, "fg": 9, "bg": "#010203", "underline": "curly", "underline_color": 7,
    }  # fmt: skip
    assert second == {"text": " you" + " " * 14, "width": 18}
    assert got["cursor"]["x"] == 6
    assert got["title"] == "name"
    assert got["changed"] == [0, 1, 2, 3]


def test_a_row_says_that_it_goes_on() -> None:
    got = snapshot.as_json(taken("x" * 25))
    assert [line.get("wrapped") for line in got["lines"]] == [True, None, None, None]


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(ValueError, match="agent"):
        snapshot.render(taken(""), "png")


@pytest.mark.parametrize("seed", range(150))
def test_drawing_it_again_gives_the_same_screen(seed: int) -> None:
    rng = random.Random(seed)
    size = rng.randrange(1, 30), rng.randrange(1, 10)
    emulator = fed(random_output(rng, 80), *size)
    emulator.release()
    frame = emulator.frame()
    again = fed(snapshot.ansi(frame), *size).frame()
    assert comparable(again) == comparable(frame)


@pytest.mark.parametrize(
    "data",
    [
        "x" * 20, "x" * 40, "漢" * 10, "漢" * 9 + "x漢", "x" * 20 + "\x1b[2;1H", "\x1b[44m" + "y" * 20 + "\u0301",
        "\x1b[4:3;58:2::1:2:3mcurly\x1b]8;id=4;http://h/\x07link", "\x1b[?25l\x1b[5 q\x1b[?2004h\x1b[?1003;1006h",
        '\x1b[1"qkept\x1b[0"q', "\u0301first", "\x1b[?5h\x1b[>4;2m\x1b[=5u",
    ],
    ids=repr,
)  # fmt: skip
def test_drawing_these_again_gives_the_same_screen(data: str) -> None:
    frame = fed(data, 20, 4).frame()
    assert comparable(fed(snapshot.ansi(frame), 20, 4).frame()) == comparable(frame)


def test_hashes_tell_text_attributes_and_cursor_apart() -> None:
    plain, red, moved, other = (taken(data) for data in ("abc", "\x1b[31mabc\x1b[m", "abc\r", "abd"))
    assert plain.text_hash == red.text_hash == moved.text_hash != other.text_hash
    assert plain.attrs_hash == moved.attrs_hash == other.attrs_hash != red.attrs_hash
    assert plain.cursor_hash == red.cursor_hash == other.cursor_hash != moved.cursor_hash
    assert taken("abc").text_hash == plain.text_hash


def test_an_emulator_is_a_screen() -> None:
    from blockpty.screen import EmulatedScreen

    screen: EmulatedScreen = Emulator()
    assert screen.mode(7) is True
    assert screen.mode(4, private=False) is False
    assert screen.mode(4444) is None
