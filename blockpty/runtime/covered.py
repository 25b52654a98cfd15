"""What is covered in everything that leaves: nonces always, and secrets unless somebody may see them.

Rules of this file: lengths and offsets stay, so a cursor means the same with and without. What leaves is a function of
the record: where a read begins or ends does not decide whether a secret is known, because the text around it is
looked at too. What the record holds by the time of the read may: the beginning of a secret at the very end is covered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, Final

from blockpty.control.redaction import LONGEST, cover_known, cover_shown, covered, find_shown, secrets
from blockpty.control.veil import Veil
from blockpty.engine.marks import NONCE_LENGTH
from blockpty.model.block import Block
from blockpty.model.events import Event
from blockpty.screen.lazy import Snapshot
from blockpty.screen.protocol import Frame, Line
from blockpty.spool.masking import Mask
from blockpty.spool.stream import StreamReader

# So much of what follows is looked at, to know what a value is.
_AHEAD: Final = 4096
# How much before the end of a stream may still be on the screen, as far as whole secrets go.
_ON_SCREEN: Final = 64 * 1024
# So much of what was drawn is looked at together.
_DRAWN_STEP: Final = 64 * 1024
# No shorter text has a secret and a word that names it.
_SHORTEST: Final = 8
_KEY_BEGIN: Final = b"-----BEGIN"
_KEY: Final = b"PRIVATE KEY"


def masked(stream: StreamReader, mask: Mask, begin: int, length: int, first: int | None = None) -> bytes:
    """Return bytes of the stream with nonces covered, also those of which only a part lies in the range.

    `first` is where the stream begins, for who has asked already: that takes longer than to read.
    """
    before = min(max(0, begin - (stream.begin if first is None else first)), NONCE_LENGTH)
    data = mask.hide(stream.read(begin - before, before + length + NONCE_LENGTH))
    return data[before : before + length]


class Cover:
    """Covers what a conversation's record holds.

    Args:
        mask: its nonces.
        redact: whether secrets are covered too.
    """

    def __init__(self, mask: Mask, redact: bool = True) -> None:
        self.mask = mask
        self.redact = redact

    def read(self, stream: StreamReader, begin: int, length: int) -> bytes:
        """Return bytes of the stream as they may leave."""
        return self.read_settled(stream, begin, length)[0]

    def read_settled(self, stream: StreamReader, begin: int, length: int) -> tuple[bytes, int]:
        """Return bytes of the stream as they may leave, and how many of them will be the same when more has come."""
        if not self.redact:
            data = masked(stream, self.mask, begin, length)
            return data, len(data)
        data, before = self._around(stream, begin, length)
        found = find_shown(data, more=True)
        whole = covered(data, found.spans) if found.spans else data
        left = whole[before : before + length]
        return left, min(max(0, found.settled - before), len(left))

    def spans(self, stream: StreamReader, begin: int, end: int, first: int | None = None) -> list[tuple[int, int]]:
        """Return the secrets in a span of the stream, as spans of it in order; `first` as for `masked`."""
        data, before = self._around(stream, begin, end - begin, first)
        at = begin - before
        found = find_shown(data, more=True).spans
        return [(at + one, at + two) for one, two in found if at + two > begin and at + one < end]

    def _around(self, stream: StreamReader, begin: int, length: int, first: int | None = None) -> tuple[bytes, int]:
        """Return a range with as much before and after it as is needed, and where the range begins in that."""
        # Older segments may not be there any more.
        before = min(max(0, begin - (stream.begin if first is None else first)), LONGEST)
        data = self.mask.hide(stream.read(begin - before, before + length + _AHEAD))
        start = _begin(data, before)
        return data[start:], before - start

    def near(self, stream: StreamReader, begin: int, end: int) -> list[bytes]:
        """Return the secrets in a span of the stream and just around it, to find them where their context is lost."""
        return secrets(self._around(stream, begin, end - begin)[0]) if self.redact else []

    def hide(self, data: bytes) -> bytes:
        """Cover what a terminal is sent."""
        data = self.mask.hide(data)
        return cover_shown(data) if self.redact else data

    def drawn(self) -> Drawn:
        """Return what covers a text that was drawn, which comes in pieces."""
        return Drawn(self)

    def text(self, text: str, known: Sequence[bytes] = (), *, more: bool = False) -> str:
        """Cover a text; `known` are secrets that it may hold pieces of, `more`: it may go on."""
        if len(text) < _SHORTEST and not known:
            return text
        data = self.mask.hide(text.encode("utf-8", "surrogatepass"))
        if self.redact:
            data = cover_shown(cover_known(data, known) if known else data, more=more)
        return data.decode("utf-8", "surrogatepass")

    def value(self, value: Any, known: Sequence[bytes] = ()) -> Any:
        """Cover every text in a value that JSON has."""
        if isinstance(value, str):
            return self.text(value, known)
        if isinstance(value, Mapping):
            return {key: self.value(item, known) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)([self.value(item, known) for item in value])
        return value

    def block(self, block: Block) -> Block:
        """Cover the command of a block."""
        shown = self.text(block.cmd) if self.redact else block.cmd
        return block if shown == block.cmd else replace(block, cmd=shown)

    def event(self, event: Event, stream: StreamReader) -> Event:
        """Cover the texts of an event, those that a wait found as well."""
        if not self.redact:
            return event
        known: list[bytes] = []
        span = event.fields.get("span")
        if event.type == "wait_end" and span and (event.fields.get("groups") or event.fields.get("match_text")):
            known = self.near(stream, span[0], span[1])
        return replace(event, fields=self.value(event.fields, known))

    def screen(
        self, seen: Snapshot, stream: StreamReader, above: Sequence[Line] = (), lines: int = 0
    ) -> tuple[Snapshot, list[str]]:
        """Cover what a terminal shows, and return with it the text of the last `lines` of the rows above it.

        Widths stay. The hashes are those of what is left: a hash of what is covered would tell it, since with the rest
        known one can try what it may be, at each cursor in turn.
        """
        frame = seen.frame
        before = above or seen.above
        rows = [*before, *frame.lines]
        parts = [_whole(row) for row in rows]
        if before and frame.alt:
            parts[len(before) - 1] = parts[len(before) - 1].rstrip("\n") + "\n"
        ends = list(accumulate(map(len, parts), initial=0))
        text = shown = "".join(parts)
        if self.redact:
            begin = min(seen.offset, max(stream.begin, seen.offset - _ON_SCREEN))
            tail = self.mask.hide(stream.read(begin, seen.offset - begin))
            # What shows nothing may stand before one.
            known = secrets(tail) if _KEY in tail or b"\0" in tail else []
            shown = self.text(text, known)
            for at in _at_cursor(frame):
                shown = self._begun(text, shown, ends[len(before)] + at, known)
            seen = self._frame(seen, shown, ends[len(before) :])
        first = max(0, len(before) - lines)
        kept = "".join(
            [
                piece if row.wrapped else piece.rstrip(" \n") + "\n"
                for row, begin, end in zip(before[first:], ends[first:], ends[first + 1 :], strict=False)
                for piece in (shown[begin:end],)
            ]
        )
        return seen, kept.splitlines()

    def _frame(self, seen: Snapshot, shown: str, ends: Sequence[int]) -> Snapshot:
        """Put the text that may leave in the place of that of the screen, whose rows end at these places of it."""
        frame = seen.frame
        title = self.text(frame.title)
        links = {run.pen.link.uri for line in frame.lines for run in line.runs if run.pen.link is not None}
        uris = {uri: self.text(uri) for uri in links}
        lines = []
        for line, at in zip(frame.lines, ends, strict=False):
            runs = []
            for run in line.runs:
                pen = run.pen
                if pen.link is not None:
                    pen = pen._replace(link=pen.link._replace(uri=uris[pen.link.uri]))
                runs.append(run._replace(text=shown[at : at + len(run.text)], pen=pen))
                at += len(run.text)
            lines.append(Line(tuple(runs), line.wrapped))
        return replace(seen, frame=frame._replace(lines=tuple(lines), title=title))

    def _begun(self, text: str, shown: str, end: int, known: Sequence[bytes]) -> str:
        """Cover what may be the beginning of a secret before the cursor as well, as in what is read up to there."""
        begun = self.text(text[:end], known, more=True)
        if begun == text[:end]:
            return shown
        pairs = zip(text, begun, shown, strict=False)
        return "".join([one if one != plain else other for plain, one, other in pairs]) + shown[end:]


class Drawn:
    """Covers a long text in pieces: what is drawn may hold secrets that were not to be seen in the bytes."""

    def __init__(self, cover: Cover) -> None:
        self._mask = cover.mask
        self._veil = Veil(lambda offset, length: b"", _DRAWN_STEP) if cover.redact else None
        # What the veil has not seen yet, in pieces; what it has not settled.
        self._pieces: list[bytes] = []
        self._size = 0
        self._held, self._at = b"", 0

    def feed(self, text: bytes) -> bytes:
        """Take the next piece; return what leaves of it and of those before."""
        if self._veil is None:
            return self._mask.hide(text)
        self._pieces.append(text)
        self._size += len(text)
        return self._look(self._veil) if self._size >= _DRAWN_STEP else b""

    def finish(self) -> bytes:
        """Return what is left."""
        if self._veil is None:
            return b""
        out = self._look(self._veil)
        self._veil.flush()
        return out + self._settled(self._veil)

    def _look(self, veil: Veil) -> bytes:
        text = b"".join(self._pieces)
        self._pieces, self._size = [], 0
        veil.feed(text)
        self._held += text
        return self._settled(veil)

    def _settled(self, veil: Veil) -> bytes:
        count = veil.settled - self._at
        out, self._held = veil.cover(self._at, self._held[:count]), self._held[count:]
        self._at += count
        return self._mask.hide(out)


def _at_cursor(frame: Frame) -> set[int]:
    """Return the place of the cursor in the text of a screen, and where the word that stands there ends."""
    rows = [_whole(line) for line in frame.lines[: frame.cursor.y + 1]]
    row = rows.pop() if rows else ""
    # A column is a character here; where some are wider, the end of the word is behind the cursor as well.
    at = end = min(frame.cursor.x + frame.cursor.pending, len(row.rstrip("\n")))
    while end < len(row) and not row[end].isspace():
        end += 1
    above = len("".join(rows))
    return {above + at, above + end}


def _whole(line: Line) -> str:
    text = "".join([run.text for run in line.runs])
    return text if line.wrapped else f"{text}\n"


def _begin(data: bytes, before: int) -> int:
    """Return where a text must begin for the secrets from a place on to be known: its line, or a key that is open."""
    line = data.rfind(b"\n", 0, before) + 1
    key = data.rfind(_KEY_BEGIN, 0, before)
    if key < 0 and b"\x1b" in data[:before]:
        key = data.find(b"-----", 0, before)  # its words may be coloured
    return min(line, data.rfind(b"\n", 0, key) + 1) if key >= 0 else line
