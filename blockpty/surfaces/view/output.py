"""The output of one block as lines: read from the server, and drawn one by one when they are looked at.

What moves the cursor only inside its line is drawn from the view `ansi`; for the rest the view `rendered` says what was
seen in the end. Drawing is pure.
"""

from __future__ import annotations

import re
from typing import Any, Final

from msgspec import Struct

from blockpty.model.block import Block
from blockpty.screen.emulator import Emulator
from blockpty.screen.pens import DEFAULT, Pen, styled
from blockpty.screen.protocol import Run
from blockpty.screen.snapshot import sgr
from blockpty.surfaces.view.words import Sign

# Up to this size an output is read whole; of a longer one its end, until all is asked for.
WHOLE: Final = 64 * 1024
TAIL: Final = 16 * 1024
PIECE: Final = 1024 * 1024
MOST: Final = 16 * 1024 * 1024
LONGEST: Final = 2000
SHORT: Final = 12

_CURSOR: Final = re.compile(r"\x1b\[[0-9;]*[ABEFHJLMSTfdsu]|\x1b\[\?(?:47|1047|1049)[hl]|\x1b[78DEMc]")
_WHOLE_SCREEN: Final = re.compile(r"\x1b\[\?(?:47|1047|1049)h")
_SGR: Final = re.compile(r"\x1b\[([0-9;:]{0,64})m")
_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f]")
# They would move a screen of one row on.
_LINE_FEEDS: Final = str.maketrans({"\n": None, "\x0b": None, "\x0c": None, "\x84": None, "\x85": None})


class BlockOutput(Struct, frozen=True):
    """Known part of a block's output.

    Attributes:
        raw: its lines, as the view gave them; pens: what each begins with.
        partial: there is more before these lines.
        left: how many bytes come after these lines and were not read, because the output is longer than `MOST`.
        whole_screen: a program drew on the alternate screen, so that lines say nothing.
    """

    raw: list[str]
    pens: list[Pen]
    partial: bool = False
    left: int = 0
    whole_screen: bool = False

    def line(self, number: int) -> tuple[Run, ...]:
        """Return a line as it is shown."""
        return draw(self.raw[number], self.pens[number])

    def plain(self) -> str:
        """Return the lines without colours, for the clipboard."""
        return "\n".join("".join(run.text for run in self.line(number)) for number in range(len(self.raw)))


def split(text: str, *, partial: bool = False, left: int = 0) -> BlockOutput:
    """Divide an output into lines; a line end at its end begins no further line."""
    raw = text.split("\n")
    if raw[-1] == "":
        raw.pop()
    pens, pen = [], DEFAULT
    for line in raw:
        pens.append(pen)
        if "\x1b[" in line:
            for found in _SGR.finditer(line):
                pen = styled(pen, found[1])
    return BlockOutput(raw, pens, partial, left)


def draw(raw: str, pen: Pen = DEFAULT) -> tuple[Run, ...]:
    """Return one line as it is shown: colours, and what moves the cursor inside it, are applied."""
    raw = raw.removesuffix("\r")
    if len(raw) > 16 * LONGEST:
        raw = raw[: 16 * LONGEST]
    if "\t" in raw and "\x1b" not in raw:
        raw = raw.expandtabs(8)
    if not _CONTROL.search(raw):
        return (Run(_cut(raw), len(raw), pen),)
    parts = _SGR.split(raw)
    if not any(_CONTROL.search(part) for part in parts[::2]):
        runs = []
        for at in range(0, len(parts), 2):
            if at:
                pen = styled(pen, parts[at - 1])
            if parts[at]:
                runs.append(Run(_cut(parts[at]), len(parts[at]), pen))
        return tuple(runs)
    # A screen of one long row, without wrapping, obeys what is left; of it nothing but cells comes back.
    screen = Emulator(LONGEST, 1, 0)
    screen.feed(f"\x1b[?7l\x1b[{sgr(pen)}m".encode())
    screen.feed(raw.translate(_LINE_FEEDS).encode("utf-8", "replace"))
    runs = list(screen.frame().lines[0].runs)
    while runs and not runs[-1].text.strip(" ") and runs[-1].pen.bg is None:
        runs.pop()
    return tuple([*runs[:-1], runs[-1]._replace(text=runs[-1].text.rstrip(" "))] if runs else ())


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… {len(text) - LONGEST} more characters"


def shown(count: int, state: Sign) -> int:
    """Return how many lines a block shows that is not opened: all of a short one, else the end of it."""
    return count if count <= SHORT else {"ok": 1, "run": 16}.get(state, 12)


async def read_output(conversation: Any, block: Block, *, whole: bool) -> BlockOutput:
    """Read the output of a block from the server; raises BlockptyError.

    `whole`: all of it, up to `MOST` bytes, and not only the end of a long one.
    """
    begin, ended = block.span
    end = begin + block.out_bytes if ended is None else ended
    limit = MOST if whole else WHOLE
    partial = end - begin > limit
    first = begin if whole or not partial else end - TAIL
    text, read = await _bytes(conversation, block.block_id, first, end, limit)
    if _WHOLE_SCREEN.search(text):
        return BlockOutput([], [], whole_screen=True)
    if _CURSOR.search(text):
        text = await _drawn(conversation, block.block_id, first, read)
    partial = partial and not whole
    # What begins inside a line is left out.
    return split(text.partition("\n")[2] if partial else text, partial=partial, left=max(0, end - read))


async def _bytes(conversation: Any, block_id: str, cursor: int, end: int, limit: int) -> tuple[str, int]:
    """Return up to so much of an output in the view `ansi`, and the cursor after it."""
    parts: list[str] = []
    length = 0
    while cursor < end and length < limit:
        piece = await conversation.read(
            from_cursor=cursor, block_id=block_id, view="ansi", max_bytes=min(PIECE, limit)
        )  # fmt: skip
        if piece.cursor <= cursor:
            break
        parts.append(piece.data)
        length += len(piece.data)
        cursor = piece.cursor
    return "".join(parts), cursor


async def _drawn(conversation: Any, block_id: str, begin: int, end: int) -> str:
    """Return the lines that were seen in the end of a span."""
    parts: list[str] = []
    line: int | None = 0
    # It is drawn from its beginning for each piece, so that pieces grow: all of it is then drawn about twice.
    size = PIECE
    while line is not None:
        piece = await conversation.read(
            from_cursor=begin, to_cursor=end, block_id=block_id, view="rendered", style="sgr", from_line=line,
            max_bytes=size,
        )  # fmt: skip
        parts.append(piece.data)
        line, size = piece.next_line, min(2 * size, 4 * MOST)
    return "".join(parts)
