"""Redaction of all output: nonces always, and secrets unless the reader may see them.

Rules of this file: lengths and offsets stay, so a cursor means the same with and without. The output is a function of
the record: where a read begins or ends does not decide whether a secret is known, because the text around it is
looked at too. What the record holds by the time of the read may: the beginning of a secret at the very end is redacted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from blockpty.engine.marks import INTRODUCER, MAX_MARK, NONCE_LENGTH
from blockpty.model.block import Block
from blockpty.model.events import Event
from blockpty.redact.edited import begin_of_edited, is_edited
from blockpty.redact.redaction import (
    LONGEST,
    completed,
    find_in_plain_lines,
    find_like_edited,
    find_sent,
    line_begin,
    redact_address,
    redact_known,
    redact_output,
    redact_spans,
    redact_title,
    secret_texts,
)
from blockpty.redact.stream_redactor import StreamRedactor
from blockpty.spool.masking import Mask
from blockpty.spool.stream import StreamReader

if TYPE_CHECKING:
    from blockpty.screen.protocol import Frame, Line
    from blockpty.screen.snapshot import Snapshot

# So much of what follows is looked at, to know what a value is.
_AHEAD: Final = 4096
# How much before the end of a stream may still be on the screen, as far as whole secrets go.
_ON_SCREEN: Final = 64 * 1024
# So much of what was drawn is looked at together.
_DRAWN_STEP: Final = 64 * 1024
# So much at the ends of lines that are as printed is looked at together with what was drawn beside them.
_BESIDE: Final = 4096
# No shorter text has a secret and a word that names it.
_SHORTEST: Final = 8
# What a page has beside its text. In the text there is no sign of a tag: it is escaped.
_TAG: Final = re.compile(rb"<[^<>]*>")
_LINK: Final = re.compile(rb'(<a [^<>]*href=")([^"<>]*)">')
# Over a line end; and what shows nothing and is as long.
_IN_ONE_WORD: Final = re.compile(r"[\w/+=.-]\n[\w/+=.-]", re.ASCII)
_NOTHING: Final = "\x01"
# Where a line was given up, and an editor drew that over what stood there; and how much is looked at for what it was.
_INTERRUPTED: Final = re.compile(r"\^C[^\s^]")
_EDITED: Final = 16 * 1024
_OUR_MARK: Final = re.compile(re.escape(INTRODUCER) + rb"[^\x07\x18\x1a\x1b]*\x07\Z")
_KEY_BEGIN: Final = b"-----BEGIN"
_KEY: Final = b"PRIVATE KEY"


def masked(stream: StreamReader, mask: Mask, begin: int, length: int, first: int | None = None) -> bytes:
    """Return bytes of the stream with nonces masked, also those of which only a part lies in the range.

    `first` is where the stream begins, for who has asked already: that takes longer than to read.
    """
    before = min(max(0, begin - (stream.begin if first is None else first)), NONCE_LENGTH)
    data = mask.hide(stream.read(begin - before, before + length + NONCE_LENGTH))
    return data[before : before + length]


class Redactor:
    """Redacts what a conversation's record holds.

    Args:
        mask: its nonces.
        redact: whether secrets are redacted too.
    """

    def __init__(self, mask: Mask, redact: bool = True) -> None:
        self.mask = mask
        self.redact = redact

    def read(self, stream: StreamReader, begin: int, length: int) -> bytes:
        """Return bytes of the stream redacted."""
        return self.read_settled(stream, begin, length)[0]

    def read_settled(self, stream: StreamReader, begin: int, length: int) -> tuple[bytes, int]:
        """Return bytes of the stream redacted, and how many of them will be the same when more has come."""
        if not self.redact:
            data = masked(stream, self.mask, begin, length)
            return data, len(data)
        data, before = self._around(stream, begin, length)
        found = find_sent(data, more=True, columns=stream.columns)
        whole = redact_spans(data, found.spans) if found.spans else data
        left = whole[before : before + length]
        return left, min(max(0, found.settled - before), len(left))

    def read_lines(self, stream: StreamReader, begin: int, length: int) -> tuple[bytes, bytes | None]:
        """Return bytes of the stream redacted, whole lines where there is a line end, and what they show.

        What they show is known only of plain lines: secrets are looked for in that, so that colours are removed once.
        """
        from blockpty.screen.rendered import plain_lines

        if self.redact:
            data, before = self._around(stream, begin, length)
        else:
            data, before = masked(stream, self.mask, begin, length), 0
        end = data.rfind(b"\n", before, before + length) + 1 or min(len(data), before + length)
        lines = data[before:end]
        # A mark of ours ends a text.
        is_fresh = not before or _OUR_MARK.search(data, max(0, before - MAX_MARK), before) is not None
        shown = plain_lines(lines) if is_fresh and lines.endswith(b"\r\n") else None
        if not self.redact:
            return lines, shown
        spans = None if shown is None else find_in_plain_lines(lines, shown)
        if spans is None:
            spans = find_sent(data, more=True, columns=stream.columns).spans
            return redact_spans(data, spans)[before:end] if spans else lines, None
        if spans:
            lines = redact_spans(lines, spans)
            shown = plain_lines(lines)
        return lines, shown

    def spans(self, stream: StreamReader, begin: int, end: int, first: int | None = None) -> list[tuple[int, int]]:
        """Return the secrets in a span of the stream, as spans of it in order; `first` as for `masked`."""
        data, before = self._around(stream, begin, end - begin, first)
        at = begin - before
        found = find_sent(data, more=True, columns=stream.columns).spans
        return [(at + one, at + two) for one, two in found if at + two > begin and at + one < end]

    def _around(self, stream: StreamReader, begin: int, length: int, first: int | None = None) -> tuple[bytes, int]:
        """Return a range with as much before and after it as is needed, and where the range begins in that."""
        # Older segments may not be there any more.
        before = min(max(0, begin - (stream.begin if first is None else first)), LONGEST)
        data = self.mask.hide(stream.read(begin - before, before + length + _AHEAD))
        if is_edited(data, before + length):
            # A line editor may change what is in the range long after it was drawn.
            data = self.mask.hide(stream.read(begin - before, before + length + LONGEST))
        start = _begin(data, before)
        return data[start:], before - start

    def near(self, stream: StreamReader, begin: int, end: int) -> list[bytes]:
        """Return the secrets in a span of the stream and just around it, to find them where their context is lost."""
        return secret_texts(self._around(stream, begin, end - begin)[0]) if self.redact else []

    def hide(self, data: bytes) -> bytes:
        """Redact what a terminal is sent."""
        data = self.mask.hide(data)
        return redact_output(data) if self.redact else data

    def drawn(self, *, tagged: bool = False) -> DrawnRedactor:
        """Return a redactor for a text that was drawn, which comes in pieces; `tagged`: with tags in it, each whole."""
        return DrawnRedactor(self, tagged=tagged)

    def text(self, text: str, known: Sequence[bytes] = (), *, more: bool = False) -> str:
        """Redact a text; `known` are secrets that it may hold pieces of, `more`: it may go on."""
        if len(text) < _SHORTEST and not known:
            return text
        data = self.mask.hide(text.encode("utf-8", "surrogatepass"))
        if self.redact:
            data = redact_output(redact_known(data, known) if known else data, more=more)
        return data.decode("utf-8", "surrogatepass")

    def value(self, value: Any, known: Sequence[bytes] = ()) -> Any:
        """Redact every text in a value that JSON has."""
        if isinstance(value, str):
            return self.text(value, known)
        if isinstance(value, (dict, Mapping)):
            return {key: self.value(item, known) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)([self.value(item, known) for item in value])
        return value

    def block(self, block: Block) -> Block:
        """Redact the command of a block."""
        shown = self.text(block.cmd) if self.redact else block.cmd
        return block if shown == block.cmd else replace(block, cmd=shown)

    def event(self, event: Event, stream: StreamReader) -> Event:
        """Redact the texts of an event, those that a wait found as well."""
        if not self.redact:
            return event
        known: list[bytes] = []
        span = event.fields.get("span")
        if event.type == "wait_end" and span and (event.fields.get("groups") or event.fields.get("match_text")):
            known = self.near(stream, span[0], span[1])
        return replace(event, fields=self.value(event.fields, known))

    def screen(
        self, seen: Snapshot, stream: StreamReader, above: Sequence[Line] = (), lines: int = 0, *, joined: bool = True
    ) -> tuple[Snapshot, list[str]]:
        """Redact what a terminal shows, and return with it the text of the last `lines` of the rows above it.

        With `joined` a row that goes on in the next one is one with it.
        Widths stay. The hashes are those of the redacted rows: with a hash of the secret, a caller who knows the rest
        could try what it may be, at each cursor in turn.
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
            known = secret_texts(tail) if _KEY in tail or b"\0" in tail else []
            shown = self.text(text, known)
            unbroken = _with_full_rows_joined(rows, text, ends, len(before) if frame.alt else 0)
            if unbroken != text:
                shown = _both(unbroken, self.text(unbroken, known), shown)
            if _INTERRUPTED.search(text) is not None:
                shown = _both(text, self._given_up(text, tail[-_EDITED:], stream), shown)
            for at in _at_cursor(frame):
                shown = self._begun(text, shown, ends[len(before)] + at, known)
            seen = self._frame(seen, shown, ends[len(before) :])
        first = max(0, len(before) - lines)
        kept = "".join(
            [
                piece if row.wrapped and joined else piece.rstrip(" \n") + "\n"
                for row, begin, end in zip(before[first:], ends[first:], ends[first + 1 :], strict=False)
                for piece in (shown[begin:end],)
            ]
        )
        return seen, kept.splitlines()

    def _given_up(self, text: str, tail: bytes, stream: StreamReader) -> str:
        """Redact what is left of secrets in lines that were given up, which have a sign drawn over them."""
        data = text.encode("utf-8", "surrogatepass")
        spans = find_like_edited(tail, stream.columns(), data)
        return redact_spans(data, spans).decode("utf-8", "surrogatepass")

    def _frame(self, seen: Snapshot, shown: str, ends: Sequence[int]) -> Snapshot:
        """Put the redacted text in the place of that of the screen, whose rows end at these places of it."""
        frame = seen.frame
        title, cwd = redact_title(self.text(frame.title)), redact_address(self.text(frame.cwd))
        links = {run.pen.link.uri for line in frame.lines for run in line.runs if run.pen.link is not None}
        uris = {uri: redact_address(self.text(uri)) for uri in links}
        lines = []
        for line, at in zip(frame.lines, ends, strict=False):
            runs = []
            for run in line.runs:
                pen = run.pen
                if pen.link is not None:
                    pen = pen._replace(link=pen.link._replace(uri=uris[pen.link.uri]))
                runs.append(run._replace(text=shown[at : at + len(run.text)], pen=pen))
                at += len(run.text)
            lines.append(line._replace(runs=tuple(runs)))
        return replace(seen, frame=frame._replace(lines=tuple(lines), title=title, cwd=cwd))

    def _begun(self, text: str, shown: str, end: int, known: Sequence[bytes]) -> str:
        """Redact what may be the beginning of a secret before the cursor as well, as in what is read up to there."""
        begun = self.text(text[:end], known, more=True)
        if begun == text[:end]:
            return shown
        return _both(text[:end], begun, shown)


class DrawnRedactor:
    """Redacts a long text in pieces: what is drawn may hold secrets that were not to be seen in the bytes.

    Lines that show what was printed hold none but those that were redacted in the bytes. Only where such lines begin
    and end they are looked at again, with what was drawn beside them.
    """

    def __init__(self, redactor: Redactor, *, tagged: bool = False) -> None:
        self._mask = redactor.mask
        self._tagged = tagged
        self._stream = StreamRedactor(lambda offset, length: b"", _DRAWN_STEP) if redactor.redact else None
        # What the stream has not seen yet, in pieces; what it has not settled.
        self._pieces: list[bytes] = []
        self._size = 0
        self._held, self._at = b"", 0

    def feed(self, text: bytes, *, as_printed: bool = False) -> bytes:
        """Take the next piece, with `as_printed` whole lines; return the output of it and of those before."""
        if self._stream is None:
            return self._mask.hide(text)
        if as_printed and len(text) > 4 * _BESIDE:
            return self._pass(self._stream, text)
        self._pieces.append(text)
        self._size += len(text)
        return self._look(self._stream) if self._size >= _DRAWN_STEP else b""

    def finish(self) -> bytes:
        """Return what is left."""
        if self._stream is None:
            return b""
        out = self._look(self._stream)
        self._stream.flush()
        return out + self._settled(self._stream)

    def _pass(self, stream: StreamRedactor, text: bytes) -> bytes:
        """Take lines that are as printed, and look at the first and last ones only."""
        begin = text.find(b"\n", _BESIDE) + 1
        end = text.rfind(b"\n", begin, -_BESIDE) + 1
        self._pieces.append(text[:begin])
        out = self._look(stream)
        if self._held or end <= begin:
            # What is open there, as a private key may be, goes on.
            self._pieces.append(text[begin:])
            return out + self._look(stream)
        out += self._mask.hide(text[begin:end])
        self._at += end - begin
        stream.restart(self._at)
        self._pieces.append(text[end:])
        self._size = len(text) - end
        return out

    def _look(self, stream: StreamRedactor) -> bytes:
        text = b"".join(self._pieces)
        self._pieces, self._size = [], 0
        stream.feed(completed(_untagged(text) if self._tagged else text))
        self._held += text
        return self._settled(stream)

    def _settled(self, stream: StreamRedactor) -> bytes:
        count = stream.settled - self._at
        out, self._held = stream.redact(self._at, self._held[:count]), self._held[count:]
        self._at += count
        return self._mask.hide(out)


def _untagged(text: bytes) -> bytes:
    """Return a text in which control sequences of the same length stand for its tags: they are no part of a secret."""
    if b"<a " in text:
        text = _LINK.sub(lambda tag: b"\x1b]" + b";" * (len(tag[1]) - 2) + tag[2] + b"\x07\x01", text)
    return _TAG.sub(lambda tag: b"\x1b[%sm" % (b"0" * (len(tag[0]) - 3)), text)


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


def _both(text: str, redacted: str, other: str) -> str:
    """Return what is redacted in either of two texts, of which the first may be shorter; `text`: before it was."""
    pairs = zip(text, redacted, other, strict=False)
    return "".join([one if one != plain else two for plain, one, two in pairs]) + other[len(text) :]


def _with_full_rows_joined(rows: Sequence[Line], text: str, ends: Sequence[int], apart: int) -> str:
    """Return a text of rows in which those that are full go on in the next one, if that begins at its left edge.

    A line editor may have moved the cursor there, and one that erases the next row ends the line before it. Above the
    row with the number `apart` there is another screen.
    """
    parts = []
    for number, (row, begin, end) in enumerate(zip(rows, ends, ends[1:], strict=False), 1):
        part = text[begin:end]
        goes_on = not row.wrapped and number != apart and _IN_ONE_WORD.match(text, end - 2) is not None
        parts.append(f"{part[:-1]}{_NOTHING}" if goes_on else part)
    return "".join(parts)


def _whole(line: Line) -> str:
    text = "".join([run.text for run in line.runs])
    return text if line.wrapped else f"{text}\n"


def _begin(data: bytes, before: int) -> int:
    """Return where a text must begin for the secrets from a place on to be known: its line, or a key that is open."""
    line = min(line_begin(data, before), begin_of_edited(data, before))
    key = data.rfind(_KEY_BEGIN, 0, before)
    if key < 0 and b"\x1b" in data[:before]:
        key = data.find(b"-----", 0, before)  # its words may be coloured
    return min(line, data.rfind(b"\n", 0, key) + 1) if key >= 0 else line
