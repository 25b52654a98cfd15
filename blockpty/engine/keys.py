"""Keys and pastes as the bytes that a terminal sends for them.

Rules of this file: text in, bytes out; it does not know what runs in the terminal. The notation of `encode_keys`:

    text          itself, in UTF-8; a newline is the Enter key
    ^C            a control character: ^@, ^A to ^Z, ^[, ^\\, ^], ^_, ^?
    [UP]          a named key: UP DOWN LEFT RIGHT HOME END PGUP PGDN INS DEL ESC TAB ENTER BS SPACE F1 to F12
    [C-S-LEFT]    the same with modifiers: C- or CTRL-, M- or ALT- or META-, S- or SHIFT-, in any order; also [CTRL+C]
    [M-x] [C-/]   a character with modifiers
    [KP5] [KP+]   a key of the keypad: KP0 to KP9, KP+ KP- KP* KP/ KP. KPENTER
    [CLICK 9,4]   the mouse at a column and row, from 0: CLICK MCLICK RCLICK SCROLLUP SCROLLDOWN, also with modifiers
    [CLICK "Ok"]  the same where a text stands on the screen when the keys are typed; [CLICK "Ok" 2] where it stands
                  for the second time, from top to bottom; a quotation mark in it is written \\"
    [[  ^^        a literal [ and a literal ^; a lone ] is itself

Columns and rows of the mouse count from 0, as the screen's do; a program that has not asked for the mouse gets none.
The notation is read from left to right, so `^[[[A` is ESC, a literal `[`, and `A`. Names are not case-sensitive;
BACKSPACE, DELETE, ESCAPE, INSERT, PAGEDOWN, PAGEUP and RETURN are known as well. The encodings are those of xterm in
its default configuration (ctlseqs, "PC-Style Function Keys" and "VT220-Style Function Keys"), or those of the kitty
keyboard protocol where the program has asked for it ("disambiguate escape codes"). A combination for which the terminal
sends the same as without the modifier is refused: the program could not see it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from blockpty.errors import BadRequest

PASTE_BEGIN: Final = b"\x1b[200~"
PASTE_END: Final = b"\x1b[201~"

_ESC: Final = b"\x1b"
_MODIFIERS: Final = {"S": 1, "SHIFT": 1, "M": 2, "ALT": 2, "META": 2, "C": 4, "CTRL": 4}
_SHIFT, _META, _CTRL = 1, 2, 4

# Keys that end in a letter: CSI letter, in application cursor mode SS3 letter, with modifiers CSI 1;m letter.
_CURSOR_KEYS: Final = {"UP": "A", "DOWN": "B", "RIGHT": "C", "LEFT": "D", "HOME": "H", "END": "F"}
# F1 to F4 are SS3 letter in both modes (they are the PF keys of a VT100), with modifiers CSI 1;m letter.
_PF_KEYS: Final = {"F1": "P", "F2": "Q", "F3": "R", "F4": "S"}
# Keys that end in a tilde: CSI number ~, with modifiers CSI number;m ~. 16 and 22 are gaps in the VT220's numbering.
_TILDE_KEYS: Final = {
    "INS": 2, "DEL": 3, "PGUP": 5, "PGDN": 6,
    "F5": 15, "F6": 17, "F7": 18, "F8": 19, "F9": 20, "F10": 21, "F11": 23, "F12": 24,
}  # fmt: skip
# Keys that are one character; with Shift or Ctrl only where xterm sends something else for it.
_PLAIN_KEYS: Final[dict[str, dict[int, bytes]]] = {
    "ESC": {0: b"\x1b"},
    "TAB": {0: b"\t", _SHIFT: b"\x1b[Z"},
    "ENTER": {0: b"\r"},
    "BS": {0: b"\x7f", _CTRL: b"\x08"},
    "SPACE": {0: b" ", _CTRL: b"\0"},
}
# The keypad: what it sends in application mode behind SS3; otherwise what is printed on the key.
_KEYPAD: Final = {
    **{f"KP{digit}": (chr(ord("p") + digit), str(digit)) for digit in range(10)},
    "KP*": ("j", "*"), "KP+": ("k", "+"), "KP-": ("m", "-"), "KP.": ("n", "."), "KP/": ("o", "/"),
    "KPENTER": ("M", "\r"),
}  # fmt: skip
_OTHER_NAMES: Final = {
    "BACKSPACE": "BS", "DELETE": "DEL", "ESCAPE": "ESC", "INSERT": "INS", "PAGEDOWN": "PGDN", "PAGEUP": "PGUP",
    "RETURN": "ENTER",
}  # fmt: skip
KEY_NAMES: Final = (*_CURSOR_KEYS, *_TILDE_KEYS, *_PF_KEYS, *_PLAIN_KEYS, *_KEYPAD)

# The kitty keyboard protocol: numbers of the keys that are one character, and its flags for them.
_KITTY_CODES: Final = {"ESC": 27, "TAB": 9, "ENTER": 13, "BS": 127, "SPACE": 32}
_DISAMBIGUATE, _ALL_KEYS = 1, 8

# These two are compiled when keys are pressed, since most programs press none.
_NAMED: Final = r"(?i)\[((?:(?:C|M|S|CTRL|ALT|META|SHIFT)[-+])*)([^\[\]\s]+|[\[\]])\]"
_TOKEN: Final = re.compile(r"\^\^|\[\[|\^|\[|\r\n|\n|[^\^\[\r\n]+|\r")

# The mouse, in the encodings of xterm (ctlseqs, "Mouse Tracking"): the numbers of its buttons. Those of the wheel are
# pressed and never released.
_BUTTONS: Final = {"CLICK": 0, "MCLICK": 1, "RCLICK": 2, "SCROLLUP": 64, "SCROLLDOWN": 65}
_WHEEL: Final = 64
MOUSE_NAMES: Final = tuple(_BUTTONS)
_MOUSE: Final = (
    rf"(?i)\[((?:[CMS]-)*)({'|'.join(_BUTTONS)}) (?:([0-9]{{1,4}}),([0-9]{{1,4}})"
    r'|"((?:[^"\\]|\\.)+)"(?: ([0-9]{1,4}))?)\]'
)
_ESCAPED: Final = re.compile(r"\\(.)")
_BITS: Final = {"S": 4, "M": 8, "C": 16}
# One byte holds up to 223, two bytes of UTF-8 up to 2015.
_LIMITS: Final = {"x10": 222, "utf8": 2014}



class KeyModes(NamedTuple):
    """Modes of keyboard and mouse that the program has asked for.

    Attributes:
        application_cursor: DECCKM, `ESC [ ? 1 h`.
        application_keypad: DECKPAM, `ESC =`.
        mouse: which events it wants: `off`, `press`, `click`, `drag` or `motion`.
        mouse_encoding: `x10`, `utf8`, `sgr`, `urxvt` or `sgr-pixels`.
        keyboard: flags of the kitty keyboard protocol.
    """

    application_cursor: bool = False
    application_keypad: bool = False
    mouse: str = "off"
    mouse_encoding: str = "x10"
    keyboard: int = 0


_DEFAULT: Final = KeyModes()

# Returns where on the screen a text stands for the n-th time, as columns and rows from 0, and how often it does.
Find = Callable[[str, int], tuple[tuple[int, int] | None, int]]

# A paste is text. What else a control character could do (end the bracket, interrupt, suspend, erase) is taken from it.
_PICTURES: Final = {
    **{code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n\r"},
    0x7F: 0x2421,
    **dict.fromkeys(range(0x80, 0xA0), 0xFFFD),
}


def names_text(keys: str) -> bool:
    """Return whether the mouse is used at a text, so that `encode_keys` needs the screen."""
    return any(found[5] is not None for found in re.finditer(_MOUSE, keys))


def encode_keys(keys: str, modes: KeyModes = _DEFAULT, find: Find | None = None) -> bytes:
    """Return the bytes that a terminal sends for `keys`, in the notation above.

    Args:
        keys: text with named keys.
        modes: what the program has asked of the terminal.
        find: finds a text on the screen; without it no text can be clicked.

    Raises:
        BadRequest: a name, a modifier or a control character that does not exist, text that is not valid Unicode, or
            the mouse where the program does not listen to it.
    """
    _utf8(keys, "keys")  # so that an error gives the place in the whole text
    out = bytearray()
    position = 0
    while position < len(keys):
        token = _TOKEN.match(keys, position)
        assert token is not None  # every character begins a token
        text = token.group()
        if text == "^":
            out += _caret(keys, position)
            position += 2
            continue
        if text == "[":
            mouse = re.compile(_MOUSE).match(keys, position)
            if mouse is not None:
                out += encode_mouse(mouse, modes.mouse, modes.mouse_encoding, find)
                position = mouse.end()
                continue
            named = re.compile(_NAMED).match(keys, position)
            if named is None:
                raise _unknown(keys, position)
            out += _named(named, modes)
            position = named.end()
            continue
        out += {"^^": b"^", "[[": b"[", "\n": b"\r", "\r\n": b"\r"}.get(text) or text.encode()
        position = token.end()
    return bytes(out)


def bracket(text: str, *, bracketed: bool) -> bytes:
    """Return the bytes of a paste.

    Args:
        text: what is pasted. Of the control characters only tab, LF and CR go through; any other is replaced by its
            picture (ESC by U+241B, as xterm.js does; xterm puts a space), so that no text can end the bracket, however
            it is nested, or interrupt the program. Raw bytes go through `send`.
        bracketed: the program asked for bracketed pastes (`ESC [ ? 2004 h`). Then the line ends stay as they are, as in
            kitty, foot and alacritty; otherwise each is CR, which is what the Enter key sends.

    Raises:
        BadRequest: the text is not valid Unicode.
    """
    neutral = text.translate(_PICTURES)
    if bracketed:
        return PASTE_BEGIN + _utf8(neutral, "text") + PASTE_END
    return _utf8(neutral.replace("\r\n", "\r").replace("\n", "\r"), "text")


def _caret(keys: str, position: int) -> bytes:
    following = keys[position + 1 : position + 2]
    control = _control(following)
    if control is None or following in "/ ":
        raise BadRequest(
            f"keys: ^{following} at character {position} is not a control character",
            hint="write ^^ for a literal ^; control characters are ^@, ^A to ^Z, ^[, ^\\, ^], ^_ and ^?",
            details={"position": position},
        )
    return control


def _control(character: str) -> bytes | None:
    """Return what Ctrl with a character sends, or None if it sends nothing of its own."""
    if len(character) != 1 or not character.isascii():
        return None
    if character.isalpha() or character in "@[\\]^_":
        return bytes((ord(character.upper()) & 0x1F,))
    return {"?": b"\x7f", " ": b"\0", "/": b"\x1f"}.get(character)


def _named(named: re.Match[str], modes: KeyModes) -> bytes:
    modifiers, name = 0, named[2]
    for modifier in named[1].upper().replace("+", "-").split("-")[:-1]:
        modifiers |= _MODIFIERS[modifier]
    if len(name) > 1:
        name = _OTHER_NAMES.get(name.upper(), name.upper())
    encoded = _kitty(name, modifiers, modes.keyboard) if modes.keyboard & (_DISAMBIGUATE | _ALL_KEYS) else None
    if encoded is None:
        encoded = _character(name, modifiers) if len(name) == 1 else _key(name, modifiers, modes)
    if encoded is None:
        known = len(name) == 1 or name in KEY_NAMES
        raise _unknown(named.string, named.start()) if not known or not modifiers else _no_such_combination(named)
    return encoded


def _kitty(name: str, modifiers: int, flags: int) -> bytes | None:
    """Return what the kitty keyboard protocol has for a key, or None where it is the same as without it."""
    code = _KITTY_CODES.get(name.upper()) if len(name) > 1 else ord(name.lower())
    if code is None or (len(name) == 1 and not modifiers):
        return None
    if len(name) > 1 and not modifiers and name.upper() != "ESC" and not flags & _ALL_KEYS:
        return None  # Enter, Tab and Backspace stay usable where a program has died without leaving the mode
    if len(name) == 1 and modifiers == _SHIFT:
        return None
    return f"\x1b[{code}{f';{modifiers + 1}' if modifiers else ''}u".encode()


def _key(name: str, modifiers: int, modes: KeyModes) -> bytes | None:
    if name in _KEYPAD:
        if modifiers:
            return None
        return b"\x1bO" + _KEYPAD[name][0].encode() if modes.application_keypad else _KEYPAD[name][1].encode()
    if name in _PLAIN_KEYS:
        # Meta sends ESC before whatever the key is without it.
        plain = _PLAIN_KEYS[name].get(modifiers & ~_META)
        return plain if plain is None or not modifiers & _META else _ESC + plain
    if name in _TILDE_KEYS:
        return f"\x1b[{_TILDE_KEYS[name]}{f';{modifiers + 1}' if modifiers else ''}~".encode()
    final = _CURSOR_KEYS.get(name) or _PF_KEYS.get(name)
    if final is None:
        return None
    if modifiers:
        return f"\x1b[1;{modifiers + 1}{final}".encode()
    return f"\x1b{'O' if modes.application_cursor or name in _PF_KEYS else '['}{final}".encode()


def _character(character: str, modifiers: int) -> bytes | None:
    if not modifiers:
        return None
    encoded: bytes | None
    if modifiers & _CTRL:
        encoded = None if modifiers & _SHIFT else _control(character)
    elif modifiers & _SHIFT:
        encoded = character.upper().encode() if character.isascii() and character.isalpha() else None
    else:
        encoded = character.encode()
    return encoded if encoded is None or not modifiers & _META else _ESC + encoded


def _utf8(text: str, parameter: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise BadRequest(
            f"{parameter}: character {error.start} is half of a surrogate pair, which no terminal can send",
            hint="exact bytes go through `send` with data_b64",
        ) from None


def _unknown(keys: str, position: int) -> BadRequest:
    end = keys.find("]", position)
    name = keys[position : end + 1 if end >= 0 else position + 20]
    return BadRequest(
        f"keys: no key is named {name!r} (at character {position})",
        hint=f"write [[ for a literal [; keys are {' '.join(KEY_NAMES)}, with C- M- S- before them, and [C-x], [M-x]",
        details={"name": name, "position": position},
    )


def _no_such_combination(named: re.Match[str]) -> BadRequest:
    return BadRequest(
        f"keys: a terminal has nothing of its own to send for {named.group()!r} (at character {named.start()})",
        hint="leave out the modifier, or send the sequence that this program expects with `send`",
        details={"name": named.group(), "position": named.start()},
    )


def _place(found: re.Match[str], find: Find | None) -> tuple[int, int]:
    """Return the column and row that a token of the mouse names."""
    if found[5] is None:
        return int(found[3]), int(found[4])
    text, wanted = _ESCAPED.sub(r"\1", found[5]), int(found[6] or 1)
    if find is None:
        raise BadRequest(f"keys: {found.group()}: no screen is known here", hint="name a column and row: [CLICK 9,4]")
    place, count = find(text, wanted)
    if place is None and count:
        times = "once" if count == 1 else f"{count} times"
        raise BadRequest(
            f"keys: {found.group()}: this text stands on the screen {times}",
            hint=f"the number counts from 1 to {count}, from top to bottom",
            details={"text": text, "count": count},
        )
    if place is None:
        raise BadRequest(
            f"keys: {found.group()}: this text is not on the screen now",
            hint="look at the screen: it may have scrolled, be spelt otherwise, or stand on two rows; "
            '{"screen": "..."} waits for it',
            details={"text": text, "count": 0},
        )
    return place


def encode_mouse(found: re.Match[str], tracking: str, encoding: str, find: Find | None = None) -> bytes:
    """Return what a terminal sends for a token that `MOUSE` matches; raises BadRequest where it sends nothing."""
    if tracking == "off":
        raise BadRequest(
            f"keys: {found.group()}: the program does not listen to the mouse",
            hint="use its keys, such as [TAB], the arrows and [ENTER]; some programs have an option or a command that "
            "turns the mouse on",
        )
    name, (x, y) = found[2].upper(), _place(found, find)
    limit = _LIMITS.get(encoding, 9999)
    if max(x, y) > limit:
        raise BadRequest(f"keys: {found.group()}: this program's mouse reaches to {limit}", hint="count from 0")
    button = _BUTTONS[name]
    for letter in found[1].upper().split("-")[:-1]:
        # A program that asked for no more (mode 9) gets presses only, without modifiers.
        button |= _BITS[letter] if tracking != "press" else 0
    pressed = _report(encoding, button, x, y, down=True)
    if button & _WHEEL or tracking == "press":
        return pressed
    return pressed + _report(encoding, button, x, y, down=False)


def _report(encoding: str, button: int, x: int, y: int, *, down: bool) -> bytes:
    column, row = x + 1, y + 1
    if encoding in ("sgr", "sgr-pixels"):
        if encoding == "sgr-pixels":
            column, row = x * 8 + 4, y * 17 + 8
        return f"\x1b[<{button};{column};{row}{'M' if down else 'm'}".encode()
    # The others do not say which button was released.
    code = (button if down else button & ~3 | 3) + 32
    if encoding == "urxvt":
        return f"\x1b[{code};{column};{row}M".encode()
    if encoding == "utf8":
        return b"\x1b[M" + "".join(map(chr, (code, column + 32, row + 32))).encode()
    return b"\x1b[M" + bytes((code, column + 32, row + 32))
