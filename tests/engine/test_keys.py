"""Keys and pastes: each line of a table is what xterm sends for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blockpty.engine.keys import KEY_NAMES, PASTE_BEGIN, PASTE_END, KeyModes, bracket, encode_keys, names_text
from blockpty.errors import BadRequest

SENT = [
    ("", b""),
    ("ls -la", b"ls -la"),
    ("ls\n", b"ls\r"),
    ("a\r\nb\rc\n", b"a\rb\rc\r"),
    ("grüße ☃ 😀", "grüße ☃ 😀".encode()),
    ("tab\tstays", b"tab\tstays"),
    # control characters
    ("^C", b"\x03"),
    ("^c", b"\x03"),
    ("^@^A^Z^[^\\^]^_^?", b"\x00\x01\x1a\x1b\x1c\x1d\x1f\x7f"),
    ("echo hi^J", b"echo hi\n"),
    # literals
    ("^^", b"^"),
    ("^^C", b"^C"),
    ("^^^C", b"^\x03"),
    ("[[", b"["),
    ("[[UP]", b"[UP]"),
    ("[[[UP]", b"[\x1b[A"),
    ("a[[0]", b"a[0]"),
    ("]", b"]"),
    ("[[[[ -f x ]]", b"[[ -f x ]]"),
    ("^[[[A", b"\x1b[A"),
    # cursor keys
    ("[UP][DOWN][RIGHT][LEFT]", b"\x1b[A\x1b[B\x1b[C\x1b[D"),
    ("[HOME][END]", b"\x1b[H\x1b[F"),
    ("[up][Home]", b"\x1b[A\x1b[H"),
    ("[S-UP]", b"\x1b[1;2A"),
    ("[M-UP]", b"\x1b[1;3A"),
    ("[C-UP]", b"\x1b[1;5A"),
    ("[C-S-LEFT]", b"\x1b[1;6D"),
    ("[S-C-LEFT]", b"\x1b[1;6D"),
    ("[C-M-S-END]", b"\x1b[1;8F"),
    ("[c-Left]", b"\x1b[1;5D"),
    # editing keypad
    ("[INS][DEL][PGUP][PGDN]", b"\x1b[2~\x1b[3~\x1b[5~\x1b[6~"),
    ("[C-DEL]", b"\x1b[3;5~"),
    ("[S-PGUP]", b"\x1b[5;2~"),
    # function keys
    ("[F1][F2][F3][F4]", b"\x1bOP\x1bOQ\x1bOR\x1bOS"),
    ("[F5][F6][F7][F8]", b"\x1b[15~\x1b[17~\x1b[18~\x1b[19~"),
    ("[F9][F10][F11][F12]", b"\x1b[20~\x1b[21~\x1b[23~\x1b[24~"),
    ("[S-F1]", b"\x1b[1;2P"),
    ("[C-F4]", b"\x1b[1;5S"),
    ("[M-F12]", b"\x1b[24;3~"),
    # keys of one character
    ("[ESC][TAB][ENTER][BS][SPACE]", b"\x1b\t\r\x7f "),
    ("[S-TAB]", b"\x1b[Z"),
    ("[M-TAB]", b"\x1b\t"),
    ("[M-S-TAB]", b"\x1b\x1b[Z"),
    ("[M-ENTER]", b"\x1b\r"),
    ("[M-BS]", b"\x1b\x7f"),
    ("[C-BS]", b"\x08"),
    ("[C-SPACE]", b"\x00"),
    ("[M-ESC]", b"\x1b\x1b"),
    # characters with modifiers
    ("[C-c]", b"\x03"),
    ("[C-C]", b"\x03"),
    ("[M-x]", b"\x1bx"),
    ("[M-X]", b"\x1bX"),
    ("[C-M-x]", b"\x1b\x18"),
    ("[S-a]", b"A"),
    ("[M-S-a]", b"\x1bA"),
    ("[M-ö]", "\x1bö".encode()),
    ("[M-[]", b"\x1b["),
    ("[M-]]", b"\x1b]"),
    ("[C-]]", b"\x1d"),
    ("[C-^]", b"\x1e"),
    ("[C-/]", b"\x1f"),
    ("[M--]", b"\x1b-"),
    ("[M-.]", b"\x1b."),
    # names that are written out
    ("[CTRL-C][ctrl-d][Alt-x][META-X]", b"\x03\x04\x1bx\x1bX"),
    ("[CTRL-SHIFT-LEFT][SHIFT-TAB]", b"\x1b[1;6D\x1b[Z"),
    ("[BACKSPACE][Delete][ESCAPE][INSERT][PAGEUP][PageDown][RETURN]", b"\x7f\x1b[3~\x1b\x1b[2~\x1b[5~\x1b[6~\r"),
    # all of it together
    (":w[ENTER]^C[UP]x", b":w\r\x03\x1b[Ax"),
]

SENT_WITH_APPLICATION_CURSOR = [
    ("[UP][DOWN][RIGHT][LEFT][HOME][END]", b"\x1bOA\x1bOB\x1bOC\x1bOD\x1bOH\x1bOF"),
    ("[C-UP]", b"\x1b[1;5A"),
    ("[DEL][F1][F5]", b"\x1b[3~\x1bOP\x1b[15~"),
    ("plain^C", b"plain\x03"),
]

REFUSED = [
    ("[NOPE]", "[NOPE]"),
    ("abc[F13]", "[F13]"),
    ("[F0]", "[F0]"),
    ("[x]", "[x]"),
    ("[]", "[]"),
    ("[", "["),
    ("[UP", "[UP"),
    ("[ -f x ]", "[ -f x ]"),
    ("[X-UP]", "[X-UP]"),
    ("[C-]", "[C-]"),
    ("[C-ab]", "[C-ab]"),
    ("[CTRL-]", "[CTRL-]"),
    ("[CONTROL-C]", "[CONTROL-C]"),
    ("[-]", "[-]"),
    ("^[[A", "[A"),
    ("^", "^"),
    ("^1", "^1"),
    ("^é", "^é"),
    ("^ ", "^ "),
    # real keys, but nothing that the program could tell from the key without the modifier
    ("[C-TAB]", "[C-TAB]"),
    ("[S-ENTER]", "[S-ENTER]"),
    ("[S-1]", "[S-1]"),
    ("[C-S-c]", "[C-S-c]"),
    ("[C-1]", "[C-1]"),
    ("\ud800", "surrogate"),
]


@pytest.mark.parametrize(("keys", "sent"), SENT)
def test_what_a_terminal_sends(keys: str, sent: bytes) -> None:
    assert encode_keys(keys) == sent


@pytest.mark.parametrize(("keys", "sent"), SENT_WITH_APPLICATION_CURSOR)
def test_what_it_sends_with_application_cursor_keys(keys: str, sent: bytes) -> None:
    assert encode_keys(keys, KeyModes(application_cursor=True)) == sent


@pytest.mark.parametrize(("keys", "named"), REFUSED)
def test_what_is_no_key_is_refused_by_name(keys: str, named: str) -> None:
    with pytest.raises(BadRequest) as caught:
        encode_keys(keys)
    assert named in caught.value.message
    assert caught.value.hint


def test_every_name_of_the_contract_is_a_key() -> None:
    names = ["UP", "DOWN", "LEFT", "RIGHT", "HOME", "END", "PGUP", "PGDN", "INS", "DEL", "ESC", "TAB", "ENTER", "BS"]
    names += [f"F{number}" for number in range(1, 13)]
    assert set(names) <= set(KEY_NAMES)
    keypad = KeyModes(application_keypad=True)
    assert len({encode_keys(f"[{name}]", keypad) for name in KEY_NAMES}) == len(KEY_NAMES)


@given(st.text())
def test_any_text_is_sent_as_it_is_when_its_brackets_and_carets_are_doubled(text: str) -> None:
    escaped = text.replace("[", "[[").replace("^", "^^")
    assert encode_keys(escaped) == text.replace("\r\n", "\r").replace("\n", "\r").encode()


@given(st.text(alphabet="[]^CMS-xUP\n \x1b"), st.booleans())
def test_any_text_is_encoded_or_refused(keys: str, application_cursor: bool) -> None:
    try:
        sent: object = encode_keys(keys, KeyModes(application_cursor=application_cursor))
    except BadRequest as error:
        sent = error.hint.encode()
    assert isinstance(sent, bytes)
    assert bool(sent) == bool(keys)


PASTED = [
    ("", b""),
    ("one line", b"one line"),
    ("tab\tand ümlaut", "tab\tand ümlaut".encode()),
    ("end \x1b[201~ rm -rf x", "end ␛[201~ rm -rf x".encode()),
    ("\x1b[20\x1b[201~1~", "␛[20␛[201~1~".encode()),
    ("\x1b[201\x1b[201~~", "␛[201␛[201~~".encode()),
    ("\x9b201~", "\ufffd201~".encode()),
    ("\x1b[200~", "␛[200~".encode()),
    ("ends in \x1b", "ends in ␛".encode()),
    ("\x03\x04\x1a\x1c\x15\x7f\x00", "␃␄␚␜␕␡␀".encode()),
    ("[UP] ^C", b"[UP] ^C"),
]


@pytest.mark.parametrize("bracketed", [False, True])
@pytest.mark.parametrize(("text", "sent"), PASTED)
def test_what_a_paste_sends(text: str, sent: bytes, bracketed: bool) -> None:
    assert bracket(text, bracketed=bracketed) == (PASTE_BEGIN + sent + PASTE_END if bracketed else sent)


def test_line_ends_are_enter_keys_unless_bracketed() -> None:
    assert bracket("a\nb\r\nc\rd\n", bracketed=False) == b"a\rb\rc\rd\r"
    assert bracket("a\nb\r\nc\rd\n", bracketed=True) == PASTE_BEGIN + b"a\nb\r\nc\rd\n" + PASTE_END


@given(st.text(alphabet="\x1b\x9b[201~\nx\x03"))
def test_no_text_ends_its_own_bracket(text: str) -> None:
    sent = bracket(text, bracketed=True)
    assert sent.count(PASTE_END) == 1 and sent.endswith(PASTE_END)
    assert sent.count(b"\x1b") == 2
    assert b"\x03" not in sent


def test_a_paste_that_is_not_unicode_is_refused() -> None:
    with pytest.raises(BadRequest, match="surrogate"):
        bracket("\udc80", bracketed=True)


KEYPAD = [
    ("[KP0][KP9][KPENTER]", b"09\r", b"\x1bOp\x1bOy\x1bOM"),
    ("[KP+][kp-][KP*][KP/][KP.]", b"+-*/.", b"\x1bOk\x1bOm\x1bOj\x1bOo\x1bOn"),
]


@pytest.mark.parametrize(("keys", "numeric", "application"), KEYPAD)
def test_the_keypad(keys: str, numeric: bytes, application: bytes) -> None:
    assert encode_keys(keys) == numeric
    assert encode_keys(keys, KeyModes(application_keypad=True)) == application


MOUSE = [
    ("[CLICK 9,4]", "click", "sgr", b"\x1b[<0;10;5M\x1b[<0;10;5m"),
    ("[RCLICK 0,0]", "motion", "sgr", b"\x1b[<2;1;1M\x1b[<2;1;1m"),
    ("[C-S-click 9,4]", "drag", "sgr", b"\x1b[<20;10;5M\x1b[<20;10;5m"),
    ("[SCROLLUP 1,2][SCROLLDOWN 1,2]", "click", "sgr", b"\x1b[<64;2;3M\x1b[<65;2;3M"),
    ("[CLICK 9,4]", "click", "x10", b"\x1b[M *%\x1b[M#*%"),
    ("[CLICK 9,4]", "press", "x10", b"\x1b[M *%"),
    ("[C-CLICK 9,4]", "press", "x10", b"\x1b[M *%"),
    ("[MCLICK 9,4]", "click", "urxvt", b"\x1b[33;10;5M\x1b[35;10;5M"),
    ("[CLICK 300,4]", "click", "utf8", b"\x1b[M \xc5\x8d%\x1b[M#\xc5\x8d%"),
    ("[CLICK 9,4]", "click", "sgr-pixels", b"\x1b[<0;76;76M\x1b[<0;76;76m"),
]


@pytest.mark.parametrize(("keys", "mouse", "encoding", "sent"), MOUSE)
def test_the_mouse(keys: str, mouse: str, encoding: str, sent: bytes) -> None:
    assert encode_keys(f"a{keys}b", KeyModes(mouse=mouse, mouse_encoding=encoding)) == b"a" + sent + b"b"


@pytest.mark.parametrize(("keys", "modes"), [
    ("[CLICK 1,1]", KeyModes()), ("[CLICK 300,1]", KeyModes(mouse="click")),
    ("[CLICK 3000,1]", KeyModes(mouse="click", mouse_encoding="utf8")), ("[CLICK]", KeyModes(mouse="click")),
    ("[CLICK 1]", KeyModes(mouse="click")), ("[CLICK -1,1]", KeyModes(mouse="click")), ("[C-KP1]", KeyModes()),
])  # fmt: skip
def test_what_no_mouse_or_keypad_sends_is_refused(keys: str, modes: KeyModes) -> None:
    with pytest.raises(BadRequest):
        encode_keys(keys, modes)


KITTY = [
    ("[ESC]", b"\x1b[27u"), ("[TAB][ENTER][BS]", b"\t\r\x7f"), ("[C-ENTER]", b"\x1b[13;5u"), ("[S-TAB]", b"\x1b[9;2u"),
    ("[M-x]", b"\x1b[120;3u"), ("[C-S-x]", b"\x1b[120;6u"), ("[C-i]", b"\x1b[105;5u"), ("[C-SPACE]", b"\x1b[32;5u"),
    ("[UP][C-UP][DEL]", b"\x1b[A\x1b[1;5A\x1b[3~"), ("text", b"text"), ("[S-x]", b"X"), ("[F5]", b"\x1b[15~"),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "sent"), KITTY)
def test_the_kitty_keyboard(keys: str, sent: bytes) -> None:
    assert encode_keys(keys, KeyModes(keyboard=1)) == sent
    assert encode_keys("[ENTER][TAB]", KeyModes(keyboard=9)) == b"\x1b[13u\x1b[9u"


SGR_MOUSE = KeyModes(mouse="click", mouse_encoding="sgr")


def test_a_text_can_be_clicked_where_it_stands() -> None:
    asked: list[tuple[str, int]] = []

    def find(text: str, number: int) -> tuple[tuple[int, int] | None, int]:
        asked.append((text, number))
        return ((9, 4) if number < 3 else None), 2 if text != "none" else 0

    assert encode_keys('x[CLICK "Save as"]', SGR_MOUSE, find) == b"x\x1b[<0;10;5M\x1b[<0;10;5m"
    assert encode_keys(r'[C-RCLICK "a \"b\" [c] \\" 2]', SGR_MOUSE, find) == b"\x1b[<18;10;5M\x1b[<18;10;5m"
    assert asked == [("Save as", 1), ('a "b" [c] \\', 2)]
    with pytest.raises(BadRequest, match="stands on the screen 2 times"):
        encode_keys('[CLICK "Save as" 3]', SGR_MOUSE, find)
    with pytest.raises(BadRequest, match="does not listen to the mouse") as off:
        encode_keys('[CLICK "Save as"]', KeyModes(), find)
    assert "[TAB]" in off.value.hint
    with pytest.raises(BadRequest, match="no screen is known here"):
        encode_keys('[CLICK "Save as"]', SGR_MOUSE)
    with pytest.raises(BadRequest, match="no key is named"):
        encode_keys('[CLICK ""]', SGR_MOUSE, find)


def test_whether_the_screen_is_needed() -> None:
    assert names_text('a[CLICK "b"]') and not names_text('a[CLICK 1,2] "b"')


def test_a_text_that_is_not_there_is_an_error_with_advice() -> None:
    with pytest.raises(BadRequest, match="not on the screen now") as missing:
        encode_keys('[CLICK "Save"]', SGR_MOUSE, lambda text, number: (None, 0))
    assert missing.value.details == {"text": "Save", "count": 0} and "look at the screen" in missing.value.hint
