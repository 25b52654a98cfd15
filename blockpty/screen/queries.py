r"""Terminal queries (DA, DSR, DECRQM and others) and their answers: a fixed list, with constants and numbers in them.

Rules of this file: an answer never holds a text that came from the stream; the numbers in it are the screen's own, or
were read from the question and stand in a table here. Whether and when to answer is not decided here. An answer is that
of the moment of its question, so the screen must be brought to `TerminalQuery.end` before `answer` is asked.

    DA1   CSI c             ESC [ ? 62 ; 22 c      a VT220 with colours
    DA2   CSI > c           ESC [ > 1 ; 10 ; 0 c
    DSR   CSI 5 n           ESC [ 0 n
    CPR   CSI 6 n, ? 6 n    ESC [ row ; column R, with `?` and a page for the second; in origin mode from the margins
    DECRQM  CSI n $ p, ? n $ p   ESC [ n ; state $ y; state 0 for a mode that is not there
    DECRQSS  DCS $ q name ST   ESC P 1 $ r value name ST for SGR, cursor style, margins, DECSCA, DECSCL; else 0 $ r
    XTVERSION  CSI > q      ESC P > | blockpty ESC \
    XTWINOPS  CSI 14 t, 16 t, 18 t   the size in pixels, of a cell, in cells
    kitty keyboard  CSI ? u  ESC [ ? flags u
    colours  OSC 4 ; n ; ?, OSC 10, 11, 12 ; ?   those in which html and svg draw
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from ahocorasick_rs import BytesAhoCorasick

if TYPE_CHECKING:
    from blockpty.screen.protocol import EmulatedScreen

# Pixels of a cell, for programs that ask; what html and svg draw comes near it.
CELL_WIDTH: Final = 8
CELL_HEIGHT: Final = 17
_LONGEST: Final = 32
_QUESTION: Final = re.compile(
    rb"\x1b\[(?P<csi>0?c|>0?c|5n|6n|\?6n|\??\d{1,5}\$p|>0?q|1[468]t|\?u)"
    rb"|\x1bP\$q(?P<setting>[ -~]{0,8})\x1b\\"
    rb"|\x1b\](?P<osc>4;\d{1,3};\?|1[012];\?)(?P<end>\x07|\x1b\\)"
)
# Each question has one of these. Looking for them first takes a seventh of the time where colours are printed.
_SIGNS: Final = BytesAhoCorasick(
    [
        *(b"\x1b[" + asked for asked in (b"c", b"0c", b">c", b">0c", b"5n", b"6n", b"?6n", b">q", b">0q", b"?u")),
        *(b"\x1b[1%dt" % number for number in (4, 6, 8)), *(b"%d$p" % digit for digit in range(10)),
        b"\x1bP$q",
        *(b"\x1b]" + asked for asked in (b"4;", b"10;?", b"11;?", b"12;?")),
    ]
)  # fmt: skip
_MAY_BEGIN: Final = re.compile(
    rb"\x1b(?:\[[>?]?\d{0,5}\$?|P(?:\$(?:q[ -~]{0,8}\x1b?)?)?"
    rb"|\](?:\d{0,2}(?:;[\d;]{0,5}\??\x1b?)?)?)?\Z"
)


class TerminalQuery(NamedTuple):
    """A question, and the stream offset right after it."""

    asked: bytes
    end: int


class Questions:
    """Finds the questions in a stream that comes in any pieces, from `offset` on."""

    def __init__(self, offset: int = 0) -> None:
        self._held = b""
        self._next = offset

    def feed(self, data: bytes) -> list[TerminalQuery]:
        """Take the next bytes; return the questions that end in them."""
        begin = self._next - len(self._held)
        self._next += len(data)
        if not self._held and b"\x1b" not in data:
            return []
        data = self._held + data
        found: list[TerminalQuery] = []
        if _SIGNS.find_matches_as_indexes(data):
            found = [TerminalQuery(match.group(), begin + match.end()) for match in _QUESTION.finditer(data)]
        done = found[-1].end - begin if found else 0
        unfinished = _MAY_BEGIN.search(data, max(done, len(data) - _LONGEST))
        self._held = unfinished.group() if unfinished else b""
        return found


def ends_with_question(data: bytes) -> bool:
    """Whether the last that a program has printed is a question to its terminal."""
    return b"\x1b" in data and any(found.end() == len(data) for found in _QUESTION.finditer(data))


def answer(asked: bytes, look: Callable[[], EmulatedScreen]) -> bytes | None:
    """Return the answer to a question; None where there is none. `look` gives the screen at that point, if needed."""
    match = _QUESTION.fullmatch(asked)
    if match is None:
        return None
    if match["osc"]:
        return _color(match["osc"].decode("ascii"), match["end"])
    if match["setting"] is not None:
        return _setting(match["setting"], look).encode("ascii")
    question = match["csi"].decode("ascii")
    if question.endswith("$p"):
        return _mode(question[:-2], look())
    made = _ANSWERS[question.replace("0", "") if question[-1] in "cq" else question]
    return made if isinstance(made, bytes) else made(look()).encode("ascii")


def _position(screen: EmulatedScreen, private: str) -> str:
    cursor, page = screen.cursor(), ";1" if private else ""
    top, _, left, _ = screen.margins() if screen.mode(6) else (0, 0, 0, 0)
    # HPA and VPA go to the other side of the origin; no answer has a negative number.
    y, x = cursor.y - (top if cursor.y >= top else 0), cursor.x - (left if cursor.x >= left else 0)
    return f"\x1b[{private}{y + 1};{x + 1}{page}R"


def _setting(name: bytes, look: Callable[[], EmulatedScreen]) -> str:
    made = _SETTINGS.get(name)
    value = None if made is None else made(look())
    return "\x1bP0$r\x1b\\" if value is None else f"\x1bP1$r{value}{name.decode('ascii')}\x1b\\"


# Every conversation looks for questions, so what draws is loaded when an answer needs it.


def _colours(screen: EmulatedScreen) -> str:
    from blockpty.screen.snapshot import sgr

    return sgr(screen.frame().pen)


def _shape(screen: EmulatedScreen) -> str:
    from blockpty.screen.snapshot import SHAPE_CODES

    cursor = screen.cursor()
    return str(SHAPE_CODES[cursor.shape, cursor.blink])


def _protected(screen: EmulatedScreen) -> str:
    from blockpty.screen.pens import PROTECTED

    return str(int(bool(screen.frame().pen.flags & PROTECTED)))


def _region(screen: EmulatedScreen) -> str:
    top, bottom, _, _ = screen.margins()
    return f"{top + 1};{bottom + 1}"


def _columns(screen: EmulatedScreen) -> str | None:
    _, _, left, right = screen.margins()
    return f"{left + 1};{right + 1}" if screen.mode(69) else None


_SETTINGS: Final[dict[bytes, Callable[[EmulatedScreen], str | None]]] = {
    b"m": _colours,
    b" q": _shape,
    b"r": _region,
    b"s": _columns,
    b'"q': _protected,
    # A VT220 that takes 7-bit controls, as DA1 says.
    b'"p': lambda screen: "62;1",
}


_ANSWERS: Final[dict[str, bytes | Callable[[EmulatedScreen], str]]] = {
    "c": b"\x1b[?62;22c",
    ">c": b"\x1b[>1;10;0c",
    "5n": b"\x1b[0n",
    "6n": lambda screen: _position(screen, ""),
    "?6n": lambda screen: _position(screen, "?"),
    ">q": b"\x1bP>|blockpty\x1b\\",
    "14t": lambda screen: f"\x1b[4;{screen.rows * CELL_HEIGHT};{screen.cols * CELL_WIDTH}t",
    "16t": lambda screen: f"\x1b[6;{CELL_HEIGHT};{CELL_WIDTH}t",
    "18t": lambda screen: f"\x1b[8;{screen.rows};{screen.cols}t",
    "?u": lambda screen: f"\x1b[?{screen.frame().modes.keyboard}u",
}


def _mode(asked: str, screen: EmulatedScreen) -> bytes:
    private = asked.startswith("?")
    number = int(asked.removeprefix("?"))
    known = screen.mode(number, private=private)
    state = 0 if known is None else 1 if known else 2
    return f"\x1b[{'?' if private else ''}{number};{state}$y".encode("ascii")


def _color(asked: str, end: bytes) -> bytes | None:
    from blockpty.screen.markup import BACKGROUND, FOREGROUND, palette

    code, _, rest = asked.partition(";")
    if code == "4":
        number = int(rest.partition(";")[0])
        if number > 255:
            return None
        code, color = f"4;{number}", palette(number)
    else:
        color = BACKGROUND if code == "11" else FOREGROUND
    channels = "/".join(color[at : at + 2] * 2 for at in (1, 3, 5))
    return f"\x1b]{code};rgb:{channels}".encode("ascii") + end
