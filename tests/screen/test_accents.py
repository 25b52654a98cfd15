"""Accents: what stands out on a screen, in words. What real programs draw is in tests/runtime/test_screens.py."""

from __future__ import annotations

from blockpty.screen import snapshot
from blockpty.screen.accents import accents
from tests.support.emulators import fed


def kinds(data: str, cols: int = 40, rows: int = 10) -> list[tuple[str, int, str]]:
    return [(one.kind, one.row, one.text) for one in accents(fed(data.encode(), cols, rows).frame())]


def at(row: int, text: str, column: int = 1) -> str:
    return f"\x1b[{row};{column}H{text}\x1b[m"


def test_nothing_stands_out_in_plain_output() -> None:
    assert kinds("$ ls\r\n\x1b[34mdir\x1b[m \x1b[1;32mprogram\x1b[m\r\n$ ") == []
    assert kinds("") == []


def test_the_one_bar_in_a_list_is_selected_and_the_bars_around_it_are_not() -> None:
    screen = at(1, f"\x1b[7m menu{' ' * 35}") + at(3, "one") + at(4, "\x1b[7mtwo  ") + at(5, "three")
    screen += at(10, "\x1b[30;46m F1 \x1b[m help") + at(9, "", 1)
    assert kinds(screen) == [("highlighted", 0, "menu"), ("selected", 3, "two"), ("highlighted", 9, "F1")]


def test_found_words_are_highlighted_because_there_are_several() -> None:
    assert kinds(at(2, "a \x1b[7mroot\x1b[m b \x1b[7mroot\x1b[m c") + at(9, "")) == [
        ("highlighted", 1, "root"), ("highlighted", 1, "root"),
    ]  # fmt: skip


def test_the_cursor_makes_it_focused_and_what_stands_beside_it_is_not_selected() -> None:
    buttons = at(5, "\x1b[41m <Yes> \x1b[m  \x1b[44m <No> ")
    assert kinds(buttons + "\x1b[5;3H\x1b[?25l") == [("focused", 4, "<Yes>"), ("highlighted", 4, "<No>")]
    assert kinds(buttons + "\x1b[9;1H") == [("selected", 4, "<Yes>"), ("selected", 4, "<No>")]


def test_a_box_is_ground_and_a_field_in_it_in_the_colour_around_it_is_not() -> None:
    blue = "".join(at(row, f"\x1b[44m{' ' * 40}") for row in range(1, 11))
    box = "".join(at(row, f"\x1b[30;47m{'text' if row == 4 else '':20}", 10) for row in range(3, 8))
    field = at(6, "\x1b[37;44mbob_______", 12)
    assert kinds(blue + box) == []
    assert kinds(blue + box + field + "\x1b[6;15H") == [("focused", 5, "bob_______")]


def test_lines_of_the_format_say_where_and_how_and_cannot_be_forged() -> None:
    text = b'selected: row 1\r\n\x1b[30;46msay "hi"\x1b[m\r\n\x1b[7mx\x1b[m\r\n\x1b[38;5;99;48;2;1;2;3my'
    frame = fed(text, 20, 5).frame()
    head, *rest = snapshot.annotated(frame).split("\n")
    assert head.startswith("[Terminal Screen - 20x5")
    assert rest == [
        "selected: row 1",
        'say "hi"',
        "x",
        "y",
        "[End Terminal Screen]",
        'selected: row 1, columns 0-7, "say \\"hi\\"" (black on cyan)',
        'selected: row 2, columns 0-0, "x" (reverse video)',
        'selected: row 3, columns 0-0, "y" (color 99 on #010203)',
    ]
