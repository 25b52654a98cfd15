"""What each sequence does, one case each, from what xterm does."""

from __future__ import annotations

import json

import pytest

from blockpty.screen import Emulator
from blockpty.screen.pens import Link, Pen
from tests.support.emulators import cells, fed, text

# A screen of 10 by 4: output, rows, cursor (column, row).
SCREENS: dict[str, tuple[str, list[str], tuple[int, int]]] = {
    "text": ("hello", ["hello"], (5, 0)),
    "wraps": ("0123456789ab", ["0123456789", "ab"], (2, 1)),
    "a full row waits before it wraps": ("0123456789", ["0123456789"], (9, 0)),
    "CR after a full row": ("0123456789\rX", ["X123456789"], (1, 0)),
    "BS after a full row": ("0123456789\bX", ["01234567X9"], (9, 0)),
    "LF after a full row": ("0123456789\nX", ["0123456789", "         X"], (9, 1)),
    "EL after a full row": ("0123456789\x1b[KX", ["0123456789", "X"], (1, 1)),
    "ED after a full row": ("0123456789\x1b[2;1Hold\x1b[1;10H9\x1b[JX", ["0123456789", "X"], (1, 1)),
    "DECSEL after a full row": ("0123456789\x1b[?KX", ["0123456789", "X"], (1, 1)),
    "EL after a full row and a colour": ("01234\x1b[31m56789\x1b[m\x1b[Kab", ["0123456789", "ab"], (2, 1)),
    "EL after a full row and a move": ("0123456789\x1b[10G\x1b[KX", ["012345678X"], (9, 0)),
    "EL 1 after a full row": ("0123456789\x1b[1KX", ["", "X"], (1, 1)),
    "EL 2 after a full row": ("0123456789\x1b[2KX", ["", "X"], (1, 1)),
    "ED 2 after a full row": ("0123456789\x1b[2JX", ["         X"], (9, 0)),
    "TAB keeps the wrap pending": ("0123456789\tX", ["0123456789", "X"], (1, 1)),
    "no DECAWM, a wide character that does not fit": ("\x1b[?7l012345678漢x", ["012345678x"], (9, 0)),
    "no DECAWM, wide characters": ("\x1b[?7l" + "漢" * 9, ["漢" * 5], (9, 0)),
    "scrolls": ("1\r\n2\r\n3\r\n4\r\n5", ["2", "3", "4", "5"], (1, 3)),
    "wraps at the bottom": ("\x1b[4;10Hab", ["", "", "         a", "b"], (1, 3)),
    "no DECAWM": ("\x1b[?7l0123456789ab\x1b[?7h", ["012345678b"], (9, 0)),
    "VT and FF": ("a\x0bb\x0cc", ["a", " b", "  c"], (3, 2)),
    "NEL does a CR": ("ab\x1bEc", ["ab", "c"], (1, 1)),
    "NEL beside a left margin": ("\x1b[?69h\x1b[3;6s\x1b[1;3r\x1b[3;8HX\x1bEY", ["", "", "  Y    X"], (3, 2)),
    "C1 in UTF-8 means nothing": ("ab\x85c\x9b3Dd\x84\x8d\x90e\x9c", ["abc3Dde"], (7, 0)),
    "C1 inside a sequence and a string": ("ab\x1b[1\x9bDc\x1b]0;t\x9ct\x07d", ["acd"], (3, 0)),
    "IND and RI": ("a\x1bDb\x1bMc", ["a c", " b"], (3, 0)),
    "RI scrolls": ("a\r\nb\x1b[H\x1bM0", ["0", "a", "b"], (1, 0)),
    "LNM": ("\x1b[20hab\nc\x1b[20l", ["ab", "c"], (1, 1)),
    "BEL, NUL and DEL": ("a\x07\0\x7fb", ["ab"], (2, 0)),
    "CUP": ("\x1b[2;3HX\x1b[99;99HY\x1b[HZ", ["Z", "  X", "", "         Y"], (1, 0)),
    "HVP": ("\x1b[3fX", ["", "", "X"], (1, 2)),
    "CUU CUD CUF CUB": ("\x1b[3;5HX\x1b[AY\x1b[3BZ\x1b[9DW\x1b[2CV", ["", "     Y", "    X", "W  V  Z"], (4, 3)),
    "surplus parameters": ("\x1b[2;5HX\x1b[1;2AY\x1b[1;2@", ["     Y", "    X"], (6, 0)),
    "CNL CPL": ("\x1b[2;5HX\x1b[EY\x1b[2FZ", ["Z", "    X", "Y"], (1, 0)),
    "CHA HPA VPA": ("\x1b[4GX\x1b[2`Y\x1b[3dZ", [" Y X", "", "  Z"], (3, 2)),
    "HPR VPR": ("\x1b[3aX\x1b[2eY", ["   X", "", "    Y"], (5, 2)),
    "a huge parameter": ("\x1b[99999999999999999999CX", ["         X"], (9, 0)),
    "a digit that is none of ASCII": ("a\x1b[\u00b2Cb", ["a\u00b2Cb"], (4, 0)),
    "tabs": ("\tX\tY", ["        XY"], (9, 0)),
    "HTS TBC": ("\x1b[3g\x1b[4G\x1bH\r\tX\x1b[4G\x1b[g\r\tY", ["   X     Y"], (9, 0)),
    "CHT CBT": ("\x1b[IX\x1b[2ZY", ["Y       X"], (1, 0)),
    "ED 0": ("aaa\r\nbbb\r\nccc\x1b[2;2H\x1b[J", ["aaa", "b"], (1, 1)),
    "ED 1": ("aaa\r\nbbb\r\nccc\x1b[2;2H\x1b[1J", ["", "  b", "ccc"], (1, 1)),
    "ED 2": ("aaa\r\nbbb\x1b[2JX", ["", "   X"], (4, 1)),
    "ED 3 leaves the screen": ("aaa\x1b[3JX", ["aaaX"], (4, 0)),
    "ED and EL of what does not exist": ("aaa\x1b[5J\x1b[3K", ["aaa"], (3, 0)),
    "EL": ("abcdef\x1b[3D\x1b[K\r\nabcdef\x1b[3D\x1b[1K\r\nabc\x1b[2K", ["abc", "    ef"], (3, 2)),
    "ECH": ("abcdef\x1b[1;3H\x1b[2X", ["ab  ef"], (2, 0)),
    "ICH": ("abcdefghij\x1b[1;3H\x1b[2@", ["ab  cdefgh"], (2, 0)),
    "DCH": ("abcdefghij\x1b[1;3H\x1b[2P", ["abefghij"], (2, 0)),
    "IL": ("1\r\n2\r\n3\r\n4\x1b[2;3H\x1b[2L", ["1", "", "", "2"], (0, 1)),
    "DL": ("1\r\n2\r\n3\r\n4\x1b[2;3H\x1b[2M", ["1", "4"], (0, 1)),
    "DL of rows never written": ("a\r\nb\x1b[H\x1b[2M", [], (0, 0)),
    "SU SD": ("1\r\n2\r\n3\x1b[2S\x1b[T", ["", "3"], (1, 2)),
    "SL": ("abc\r\ndef\x1b[1 @", ["bc", "ef"], (3, 1)),
    "SR": ("abc\r\ndef\x1b[2 A", ["  abc", "  def"], (3, 1)),
    "DECIC DECDC": ("abc\r\ndef\x1b[1;2H\x1b[2'}\x1b[2;1H\x1b['~", ["  bc", "  ef"], (0, 1)),
    "REP": ("ab\x1b[3b", ["abbbb"], (5, 0)),
    "REP after a move, SGR, LF, itself": (
        "a\x1b[3;1H\x1b[2bb\x1b[m\x1b[2bc\x1b[b\x1b[bd\n\x1b[2be", ["a", "", "bccd", "    e"], (5, 3),
    ),
    "REP after a mark": ("ab\x1b[HZ\x1b[D\u0301\x1b[bX", ["Xb"], (1, 0)),
    "REP wraps": ("ab\x1b[9b", ["abbbbbbbbb", "b"], (1, 1)),
    "IRM": ("abc\x1b[4h\rXY\x1b[4l", ["XYabc"], (2, 0)),
    "leading zeros": ("\x1b[00000000004;000000001HX\x1b[0000000002GY", ["", "", "", "XY"], (2, 3)),
    "HPA and VPA in origin mode": (
        "\x1b[?69h\x1b[3;6s\x1b[2;3r\x1b[?6h\x1b[1dX\x1b[1`\x1b[4dY", ["  X", "", "", "Y"], (1, 3),
    ),
    "CHA in origin mode": ("\x1b[?69h\x1b[3;6s\x1b[?6h\x1b[2GX", ["   X"], (4, 0)),
    "DECBI": ("abc\x1b[2G\x1b6X", ["Xbc"], (1, 0)),
    "DECBI scrolls": ("abc\r\ndef\x1b[1;1H\x1b6X", ["Xabc", " def"], (1, 0)),
    "DECBI in margins": (
        "abcdef\r\nghijkl\r\nmnopqr\x1b[?69h\x1b[2;4s\x1b[1;2r\x1b[1;2H\x1b6",
        ["a bcef", "g hikl", "mnopqr"], (1, 0),
    ),
    "DECBI left of the margin": ("abc\x1b[?69h\x1b[3;5s\x1b[1;2H\x1b6\x1b6X", ["Xbc"], (1, 0)),
    "DECFI": ("abc\x1b[1;2H\x1b9X", ["abX"], (3, 0)),
    "DECFI scrolls": ("abc\r\ndef\x1b[1;10H\x1b9X", ["bc       X", "ef"], (9, 0)),
    "DECFI in margins": (
        "abcdef\r\nghijkl\r\nmnopqr\x1b[?69h\x1b[2;4s\x1b[1;2r\x1b[2;4H\x1b9",
        ["acd ef", "gij kl", "mnopqr"], (3, 1),
    ),
    "DECFI right of the margin": ("abc\x1b[?69h\x1b[3;5s\x1b[1;9H\x1b9\x1b9X", ["abc      X"], (9, 0)),
    "SPA protects from EL, ED and ECH": ("a\x1bVb\x1bWc\x1b[2K\x1b[2J\x1b[1;2H\x1b[X", [" b"], (1, 0)),
    "after DECSCA, SPA protects from nothing": ("a\x1bVb\x1bWc\x1b[1\"qd\x1b[0\"q\x1b[2K", [], (4, 0)),
    "palette of the Linux console": ("a\x1b]P0aBcDeFb\x1b]Rc\x1b]P1\x1b[md", ["abcd"], (4, 0)),
    "a palette sequence that is none": ("a\x1b]P0zebra\x07b", ["ab"], (2, 0)),
    "spacing marks": ("\u0928\u092e\u0938\u094d\u0924\u0947x", ["\u0928\u092e\u0938\u094d\u0924\u0947x"], (5, 0)),
    "a spacing mark has a column": ("\u0915\u093fx\bY", ["\u0915\u093fY"], (3, 0)),
    "a flag": ("\U0001f1e9\U0001f1ea|", ["\U0001f1e9\U0001f1ea|"], (3, 0)),
    "clusters: a flag": ("\x1b[?2027h\U0001f1e9\U0001f1ea\U0001f1e9|", ["\U0001f1e9\U0001f1ea\U0001f1e9|"], (4, 0)),
    "clusters: ZWJ": ("\x1b[?2027h👨\u200d👩\u200d👧x", ["👨\u200d👩\u200d👧x"], (3, 0)),
    "clusters: VS16": ("\x1b[?2027h❤\ufe0f|", ["❤\ufe0f|"], (3, 0)),
    "clusters: skin": ("\x1b[?2027h👍🏽|", ["👍🏽|"], (3, 0)),
    "clusters: keycap": ("\x1b[?2027h1\ufe0f\u20e3|", ["1\ufe0f\u20e3|"], (3, 0)),
    "clusters: spacing marks": ("\x1b[?2027h\u0915\u093fx", ["\u0915\u093fx"], (2, 0)),
    "clusters: a move comes between": ("\x1b[?2027h👨\u200d\x1b[m👩", ["👨\u200d👩"], (4, 0)),
    "clusters: to the last column": ("\x1b[?2027h\x1b[9G❤\ufe0fx", ["        ❤\ufe0f", "x"], (1, 1)),
    "clusters: no room to grow": ("\x1b[?2027h\x1b[10G❤\ufe0fx", ["         ❤\ufe0f", "x"], (1, 1)),
    "clusters off": ("\x1b[?2027h\x1b[?2027l👨\u200d👩", ["👨\u200d👩"], (4, 0)),
    "DECSTBM": ("1\r\n2\r\n3\r\n4\x1b[2;3r\x1b[3;1H\nX", ["1", "3", "X", "4"], (1, 2)),
    "DECSTBM of one row is none": ("\x1b[3;3HX\x1b[2;2r", ["", "", "  X"], (3, 2)),
    "LF below the region": ("\x1b[1;2r\x1b[4;1Ha\nb", ["", "", "", "ab"], (2, 3)),
    "DECOM": ("\x1b[2;3r\x1b[?6hX\x1b[9;1HY\x1b[?6lZ", ["Z", "X", "Y"], (1, 0)),
    "DECALN": ("\x1b#8", ["E" * 10] * 4, (0, 0)),
    "DECSTR": ("\x1b[4h\x1b[?6h\x1b[2;3r\x1b[!pX\x1b[HY", ["Y", "X"], (1, 0)),
    "RIS": ("abc\x1b[31m\x1bcX", ["X"], (1, 0)),
    "DECSC DECRC": ("ab\x1b7\x1b[3;3H\x1b8c", ["abc"], (3, 0)),
    "one slot, and home without": ("ab\x1b7c\x1b7\x1b8\x1b8X", ["abcX"], (4, 0)),
    "DECRC without DECSC": ("abc\x1b8X", ["Xbc"], (1, 0)),
    "SCOSC SCORC": ("ab\x1b[s\x1b[3;3H\x1b[uc", ["abc"], (3, 0)),
    "line drawing": ("\x1b(0lqk\x1b(Blqk", ["┌─┐lqk"], (6, 0)),
    "SO and SI": ("\x1b)0a\x0eq\x0fq", ["a─q"], (3, 0)),
    "single shift": ("\x1b*0\x1bNqq", ["─q"], (2, 0)),
    "pounds": ("\x1b(A#", ["£"], (1, 0)),
    "reverse wrap": ("\x1b[?45h0123456789a\b\bX", ["012345678X", "a"], (9, 0)),
    "wide": ("漢字", ["漢字"], (4, 0)),
    "wide in the last column": ("012345678漢", ["012345678", "漢"], (2, 1)),
    "left half overwritten": ("漢字\rx", ["x 字"], (1, 0)),
    "right half overwritten": ("漢字\x1b[2Gx", [" x字"], (2, 0)),
    "half erased": ("漢字\x1b[3G\x1b[1K", [], (2, 0)),
    "half deleted": ("漢字\x1b[2G\x1b[P", [" 字"], (1, 0)),
    "wide pushed out": ("01234567漢\x1b[G\x1b[@", [" 01234567"], (0, 0)),
    "combining": ("e\u0301x", ["e\u0301x"], (2, 0)),
    "combining at the last column": ("012345678e\u0301x", ["012345678e\u0301", "x"], (1, 1)),
    "VS16 and what follows": ("❤\ufe0f after", ["❤\ufe0f after"], (7, 0)),
    "ZWJ": ("👨\u200d👩x", ["👨\u200d👩x"], (5, 0)),
    "a mark at the beginning": ("\u0301x", ["x"], (1, 0)),
    "plane 16": ("\U00100000x", ["\U00100000x"], (2, 0)),
    "DCS": ("a\x1bP+q544e\x1b\\b", ["ab"], (2, 0)),
    "DCS with BEL inside": ("a\x1bPq#0\x07x\x1b\\b", ["ab"], (2, 0)),
    "APC, PM and SOS": ("a\x1b_Gi=1;x\x1b\\b\x1b^x\x1b\\c\x1bXx\x1b\\d", ["abcd"], (4, 0)),
    "OSC": ("a\x1b]0;t\x07b\x1b]11;?\x1b\\c\x1b]52;c;eA==\x07d", ["abcd"], (4, 0)),
    "CAN ends a string": ("a\x1b]0;t\x18b", ["ab"], (2, 0)),
    "colons": ("\x1b[38:2::1:2:3ma\x1b[4:3mb", ["ab"], (2, 0)),
    "prefixes and intermediates": (
        "\x1b[?4ma\x1b[>4;2mb\x1b[<uc\x1b[=0;1ud\x1b[>ce\x1b Ff\x1b*0g", ["abcdefg"], (7, 0),
    ),
    "a control inside a sequence": ("abc\x1b[2\bDX", ["Xbc"], (1, 0)),
    "ESC inside a sequence": ("abc\x1b[2\x1b[DX", ["abX"], (3, 0)),
    "bytes that are no UTF-8": ("a\udcff\udce6\udcbcb", ["a\ufffd\ufffdb"], (4, 0)),
    "left and right margins": ("\x1b[?69h\x1b[3;6s\x1b[1;3Habcdef\rX", ["  abcd", "  Xf"], (3, 1)),
    "index inside left and right margins": (
        "1111111111\x1b[2;1H2222222222\x1b[?69h\x1b[3;5s\x1b[1;2r\x1b[2;3H\n",
        ["1122211111", "22   22222"],
        (2, 1),
    ),
    "XTSAVE XTRESTORE": ("\x1b[?7s\x1b[?7l\x1b[?7r0123456789ab", ["0123456789", "ab"], (2, 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", SCREENS)
def test_screen(name: str) -> None:
    output, rows, cursor = SCREENS[name]
    emulator = fed(output.encode("utf-8", "surrogateescape"), 10, 4)
    assert text(emulator) == rows
    assert (emulator.x, emulator.y) == cursor


RED = Pen(bg=1)


@pytest.mark.parametrize(
    ("output", "red"),
    [
        ("\x1b[1;4;41m\x1b[K", {(x, 0) for x in range(10)}),
        ("\x1b[2;4H\x1b[1;41m\x1b[J", {(x, 1) for x in range(3, 10)} | {(x, y) for x in range(10) for y in (2, 3)}),
        ("abcdef\r\x1b[41m\x1b[2@", {(0, 0), (1, 0)}),
        ("abcdef\r\x1b[41m\x1b[2P", {(8, 0), (9, 0)}),
        ("abcdef\r\x1b[41m\x1b[2X", {(0, 0), (1, 0)}),
        ("\x1b[41m\x1b[2L", {(x, y) for x in range(10) for y in (0, 1)}),
        ("\x1b[41m\x1b[2M", {(x, y) for x in range(10) for y in (2, 3)}),
        ("\x1b[4H\x1b[7;41m\n", {(x, 3) for x in range(10)}),
        ("\x1b[41m\x1bM", {(x, 0) for x in range(10)}),
    ],
    ids=repr,
)
def test_what_is_erased_keeps_the_background_and_nothing_else(output: str, red: set[tuple[int, int]]) -> None:
    emulator = fed(output, 10, 4)
    found = {(x, y): pen for y in range(4) for x, pen in enumerate(cells(emulator, y)) if pen != Pen()}
    assert found == dict.fromkeys(red, RED)


@pytest.mark.parametrize("mode", [47, 1047, 1049])
def test_the_alternate_screen_leaves_the_main_one_alone(mode: int) -> None:
    emulator = fed(f"main\x1b[?{mode}h", 10, 4)
    assert emulator.frame().alt
    assert text(emulator) == []
    emulator.feed(b"\x1b[Halt\x1b[4;1H\n\n")
    assert text(emulator) == []
    assert not emulator.history
    emulator.feed(f"\x1b[Hx\x1b[?{mode}l".encode())
    assert not emulator.frame().alt
    assert text(emulator) == ["main"]
    assert (emulator.x, emulator.y) == ((4, 0) if mode == 1049 else (1, 0))


def test_each_screen_has_its_saved_cursor() -> None:
    emulator = fed("ab\x1b7\x1b[?1047h\x1b[3;3H\x1b7\x1b[H\x1b8x\x1b[?1047l\x1b8c", 10, 4)
    assert text(emulator) == ["abc"]


def test_a_wrap_that_was_pending_is_pending_after_the_alternate_screen() -> None:
    assert text(fed("0123456789\x1b[?1049h\x1b[Hx\x1b[?1049lab", 10, 4)) == ["0123456789", "ab"]


def test_a_pending_wrap_goes_along_to_the_alternate_screen_where_it_is_not_cleared() -> None:
    assert text(fed("0123456789\x1b[?1047hab", 10, 4)) == ["", "ab"]
    assert text(fed("0123456789\x1b[?1049hab", 10, 4)) == ["         a", "b"]


def test_1047_clears_when_it_is_left_and_47_does_not() -> None:
    assert text(fed("\x1b[?47hold\x1b[?47l\x1b[?47h", 10, 4)) == ["old"]
    assert text(fed("\x1b[?1047hold\x1b[?1047l\x1b[?47h", 10, 4)) == []


def test_what_was_asked_for_is_known() -> None:
    frame = fed(
        "\x1b[?1h\x1b=\x1b[?2004h\x1b[?1004h\x1b[?1002h\x1b[?1006h\x1b[>1u\x1b[>5u\x1b[>4;2m\x1b[4 q\x1b[?25l"
    ).frame()
    modes = frame.modes
    assert modes.application_cursor and modes.application_keypad and modes.bracketed_paste and modes.focus_events
    assert (modes.mouse, modes.mouse_encoding, modes.keyboard, modes.modify_other_keys) == ("drag", "sgr", 5, 2)
    assert (frame.cursor.shape, frame.cursor.blink, frame.cursor.visible) == ("underline", False, False)


@pytest.mark.parametrize(
    ("output", "flags"),
    [("\x1b[>1u", 1), ("\x1b[>1u\x1b[>3u\x1b[<u", 1), ("\x1b[>1u\x1b[<9u", 0), ("\x1b[=5u", 5),
     ("\x1b[=5u\x1b[=2;2u", 7),
     ("\x1b[=5u\x1b[=4;3u", 1), ("\x1b[>7u\x1b[?1049h", 0), ("\x1b[>7u\x1b[?1049h\x1b[>1u\x1b[?1049l", 7),
     ("\x1b[>9999u", 15), ("\x1b[>1u" * 100 + "\x1b[<99u", 0)],
    ids=repr,
)  # fmt: skip
def test_kitty_keyboard_flags_are_a_stack_of_each_screen(output: str, flags: int) -> None:
    assert fed(output).frame().modes.keyboard == flags


def test_mouse_modes_replace_each_other() -> None:
    assert fed("\x1b[?1000h\x1b[?1003h").frame().modes.mouse == "motion"
    assert fed("\x1b[?1003h\x1b[?1003l").frame().modes.mouse == "off"


def test_titles_and_notes() -> None:
    emulator = fed("\x1b]0;both\x07\x1b]1;icon\x07\x1b]2;ti\ttle\x1b\\\x1b]7;file://h/tmp\x07\x1b]133;C\x07")
    frame = emulator.frame()
    assert (frame.title, emulator.icon_title, frame.cwd, frame.zone) == ("title", "icon", "file://h/tmp", "C")
    emulator.feed(b"\x1b[22t\x1b]2;other\x07\x1b[23t\x1b]22;pointer\x07\x1b]133;Z\x07\x1b]11;?\x07")
    assert (emulator.title, emulator.icon_title, emulator.zone) == ("title", "icon", "C")
    emulator.feed(b"\x1b]2;" + b"x" * 5000 + b"\x07")
    assert len(emulator.title) == 1024


def test_hyperlinks_are_of_cells_and_outlive_sgr() -> None:
    pens = cells(fed("\x1b]8;id=1;http://h/\x07a\x1b[mb\x1b[2;3H\x1b]8;;\x07c", 10, 4), 0)
    assert [pen.link for pen in pens[:3]] == [Link("http://h/", "1"), Link("http://h/", "1"), None]


def test_protected_cells_are_erased_only_by_plain_erasing() -> None:
    assert text(fed('a\x1b[1"qb\x1b[0"qc\x1b[?2K', 10, 4)) == [" b"]
    assert text(fed('a\x1b[1"qb\x1b[0"qc\x1b[2K', 10, 4)) == []
    assert text(fed('a\x1b[1"qb\x1b[mc\x1b[?2J', 10, 4)) == [" bc"]


def test_what_scrolls_off_the_main_screen_is_history_and_no_more_than_its_limit() -> None:
    emulator = fed("".join(f"{number}\r\n" for number in range(50)), 10, 4, history_rows=5)
    assert [row.text.strip() for row in emulator.history] == ["42", "43", "44", "45", "46"]
    emulator.feed(b"\x1b[3J")
    assert not emulator.history


@pytest.mark.parametrize("output", ["\x1b[2;4r\x1b[4;1H\n\n", "\x1b[H\x1b[3M", "\x1b[?1049h\x1b[4;1H\n\n", "\x1b[2T"])
def test_what_is_no_history(output: str) -> None:
    assert not fed("1\r\n2\r\n3\r\n4" + output, 10, 4).history


def test_a_screen_of_one_cell() -> None:
    emulator = fed("a漢\r\n\x1b[5;5Hb\x1b[@\x1b[P\x1b[L\x1b[M\tc", 1, 1)
    assert text(emulator) == ["c"]


@pytest.mark.parametrize(
    ("data", "unhandled"),
    [
        (b"\x1b[?2031h\x1b[?2031h\x1b[?9999;25l", {"CSI ?2031 h": 2, "CSI ?9999 l": 1}),
        (b"\x1b[99h", {"CSI 99 h": 1}),
        (b"\x1b[3;4x\x1b[=c", {"CSI x": 1, "CSI =c": 1}),
        (b"\x1b]52;c;aGk=\x07\x1b]10;#fff\x1b\\\x1b]nonsense\x07", {"OSC 52": 1, "OSC 10": 1, "OSC": 1}),
        (b"\x1bP0;1q#0!9~\x1b\\\x1b_Ga=T;AAAA\x1b\\\x1bP+q544e\x1b\\", {"DCS q": 1, "APC G": 1, "DCS +q": 1}),
        (b"\x1b%G\xc2\x9b", {"ESC %G": 1, "C1 9B": 1}),
        # Obeyed, answered, of shell integrations, or an end of what has ended.
        (b"\x1b[c\x1b[6n\x1b[?1$p\x1bP$qm\x1b\\\x1b]11;?\x07\x1b]7717;x\x07\x1b]633;A\x07\x1b]133;A\x07", {}),
        (b"\x1b\\\x00\x05\x1b[?1049h\x1b[31m\x1b]2;t\x07\x1b]8;;\x07", {}),
    ],
)
def test_what_is_not_obeyed_is_counted_by_its_kind(data: bytes, unhandled: dict[str, int]) -> None:
    whole, cut = Emulator(20, 4), Emulator(20, 4)
    whole.feed(data)
    for at in range(len(data)):
        cut.feed(data[at : at + 1])
    assert whole.unhandled == cut.unhandled == unhandled


def test_the_bell_is_counted_wherever_it_rings_and_a_reset_forgets_nothing() -> None:
    screen = Emulator(20, 4)
    screen.feed(b"\x07a\x07\x1b[1\x07;2H\x1b]2;title\x07\x1b[?7777h\x1bc\x07")
    assert (screen.bells, screen.unhandled) == (4, {"CSI ?7777 h": 1})
    again = Emulator.restore(json.loads(json.dumps(screen.dump())))
    assert (again.bells, again.unhandled) == (4, {"CSI ?7777 h": 1})
    older = {name: value for name, value in screen.dump().items() if name not in ("bells", "unhandled")}
    assert (Emulator.restore(older).bells, Emulator.restore(older).unhandled) == (0, {})


def test_kinds_that_are_not_obeyed_do_not_grow_without_end() -> None:
    screen = Emulator(20, 4)
    screen.feed(b"".join(b"\x1b[?%dh" % number for number in range(5000, 5100)))
    assert len(screen.unhandled) == 33 and sum(screen.unhandled.values()) == 100
    assert screen.unhandled["others"] == 68
