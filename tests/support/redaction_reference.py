"""Search for secrets in the simplest way, to compare with: a text is a list of bytes that know where they stood.

Nothing is looked at before it is checked, no line is left out, and what was taken out of a text is never put back: a
secret is the set of the places of its bytes. Only the shapes of secrets are those of the product.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from blockpty.redact.shapes import (
    ASSIGNED,
    CHECKED_BYTES,
    CROWD,
    CROWDED,
    FOLLOWING,
    NAMED,
    PASSWORD_LINE,
    PRIVATE_KEY_PIECE,
    RUN_CHARS,
    RUN_LEAST,
    TOKEN_IS_WIDE,
    TOKEN_REST,
    WIDE_RUN_CHARS,
    any_token,
    begun_of,
    cut_token,
    glued_token,
    is_password_line,
    open_token,
    private_key,
)

_ESC: Final = 0x1B
_STRINGS: Final = b"]PX^_"
_MARKS: Final = (b"7717;", b"133;", b"633;", b"3008;")
_SILENT: Final = [*range(9), 11, 12, *range(14, 27), *range(28, 32), 127]
_JUMP: Final = re.compile(rb"\x1b\[[0-9]*C")
_BEGUN_JUMP: Final = re.compile(rb"(\x1b(\[[0-9]*)?)?\Z")
_COLOUR: Final = re.compile(rb"\x1b\[[0-9;:]{0,20}m|\x1b\(B")
_UP: Final = b"\x1b[A"
_PRINTABLE: Final = bytes(range(33, 127))
_NO_WIDTH: Final = {
    chr(one).encode()
    for first, last in (
        (0xAD, 0xAD), (0x300, 0x36F), (0x61C, 0x61C), (0x180B, 0x180F), (0x1AB0, 0x1AFF), (0x1DC0, 0x1DFF),
        (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x20D0, 0x20FF), (0xFE00, 0xFE0F), (0xFE20, 0xFE2F),
        (0xFEFF, 0xFEFF), (0xFFF9, 0xFFFB), (0xE0000, 0xE01FF),
    )
    for one in range(first, last + 1)
}  # fmt: skip
_CSI: Final = re.compile(rb"(?:\xc2\x9b|(?<![\x80-\xff])\x9b)[0-?]{0,64}[ -/]{0,8}(?:[@-~]|\Z)")
_BEGUN: Final = re.compile(
    rb"(?:[\xc2\xcc\xcd\xd8]|\xe1[\xa0\xaa\xab\xb7]?|\xe2[\x80\x81\x83]?|\xef[\xb8\xbb\xbf]?"
    rb"|\xf3(?:\xa0[\x80-\x87]?)?)\Z"
)
_PARAMETER: Final = re.compile(rb"[?&][A-Za-z0-9_.-]{0,32}\Z")
_FIELD: Final = re.compile(rb";d=(?:([0-9]+)/[0-9]+:)?([^;\x07\x18\x1a\x1b]*)")


class ReferenceSpans(NamedTuple):
    """Where secrets are in a text.

    Attributes:
        spans: their begins and ends, in order, apart from each other.
        settled: up to here nothing changes, whatever follows the text.
    """

    spans: list[tuple[int, int]]
    settled: int


class _Text(NamedTuple):
    """Bytes, and of each the places that it had in the data: three for a percent code, else one."""

    data: bytes
    places: Sequence[tuple[int, ...]]

    def part(self, begin: int, end: int) -> _Text:
        return _Text(self.data[begin:end], self.places[begin:end])

    def without(self, spans: list[tuple[int, int]]) -> _Text:
        """Take spans out, which are in order and apart."""
        kept = [one for begin, end in _between(spans, len(self.data)) for one in range(begin, end)]
        return _Text(bytes([self.data[one] for one in kept]), [self.places[one] for one in kept])


def find_shown(data: bytes, *, more: bool = False) -> ReferenceSpans:
    """Find the secrets in what a terminal is sent, as the function of this name in the product does."""
    text = _Text(data, [(place,) for place in range(len(data))])
    marks = [span for span in _strings(data) if data.startswith(_MARKS, span[0] + 2)]
    ours = [span for span in marks if data.startswith(b"7717;", span[0] + 2)]
    secret: set[int] = set()
    settled = len(data)
    for borders in (marks, ours):
        parts = _between(borders, len(data))
        for begin, end in parts:
            until = _find_in_part(text.part(begin, end), more and (begin, end) == parts[-1], secret)
        settled = min(settled, parts[-1][0] + until)
    unfinished = more and marks and marks[-1][1] == len(data) and data[-1:] not in (b"\x07", b"\x18", b"\x1a", b"\\")
    carried = _Text(b"", [])
    for begin, end in marks:
        last = bool(unfinished) and end == len(data)
        field = _FIELD.search(data, begin, end) if (begin, end) in ours else None
        if field is None:
            _add(secret, text.part(begin + 2, end), find(data[begin + 2 : end], more=last).spans)
            continue
        before = _Text(b"", []) if field[1] in (None, b"1") else carried
        carried = _Text(before.data + field[2], [*before.places, *text.places[field.start(2) : field.end(2)]])
        decoded = _decoded(carried)
        _add(secret, decoded, find(decoded.data, more=last).spans)
    if unfinished:
        settled = min(settled, marks[-1][0])
    return ReferenceSpans(_runs(secret), settled)


def _find_in_part(part: _Text, more: bool, secret: set[int]) -> int:
    """Find the secrets in a text that no mark parts; return up to where it is settled."""
    settled = len(part.data)
    for data in dict.fromkeys((part.data, re.sub(rb"[\0\v\f]", b"\n", part.data))):
        shown = _shown(_Text(data, [(place,) for place in range(len(data))]))
        found = find(shown.data, more=more)
        if found.settled < len(shown.data):
            settled = min(settled, shown.places[found.settled][0])
        _add(secret, part, [(one, one + 1) for at, to in found.spans for some in shown.places[at:to] for one in some])
    for begin, end in _strings(part.data):
        begin += 2
        end = next((at for at in range(begin, end) if part.data[at] in b"\x07\x18\x1a\x1b"), end)
        if end - begin > RUN_LEAST // 2:
            last = end == len(part.data)
            found = find(part.data[begin:end], more=more and last)
            _add(secret, part.part(begin, end), found.spans)
            cuts = [(cut.start(cut.lastindex or 0), cut.end()) for cut in cut_token().finditer(part.data[begin:end])]
            _add(secret, part.part(begin, end), cuts)
            decoded = _decoded(part.part(begin, end))
            if b"%" in part.data[begin:end]:
                _add(secret, decoded, find(decoded.data, more=more and last).spans)
            if last:
                settled = min(settled, begin + found.settled)
    return settled


def _add(secret: set[int], text: _Text, spans: list[tuple[int, int]]) -> None:
    secret.update(place for begin, end in spans for places in text.places[begin:end] for place in places)


def _between(spans: list[tuple[int, int]], length: int) -> list[tuple[int, int]]:
    """Return what lies beside spans, which are in order and apart; one more than there are of them."""
    return list(zip([0, *(end for _, end in spans)], [*(begin for begin, _ in spans), length], strict=True))


def _runs(places: set[int]) -> list[tuple[int, int]]:
    begins = sorted(place for place in places if place - 1 not in places)
    ends = sorted(place + 1 for place in places if place + 1 not in places)
    return list(zip(begins, ends, strict=True))


def _decoded(text: _Text) -> _Text:
    """Return a text in which each percent code is the byte that it stands for."""
    data, places, at = bytearray(), [], 0
    while at < len(text.data):
        is_code = re.match(rb"%[0-9A-Fa-f]{2}", text.data[at : at + 3]) is not None
        data.append(int(text.data[at + 1 : at + 3], 16) if is_code else text.data[at])
        places.append(tuple(place for one in text.places[at : at + (3 if is_code else 1)] for place in one))
        at += 3 if is_code else 1
    return _Text(bytes(data), places)


# What is shown


def _shown(text: _Text) -> _Text:
    """Take out of a text what shows nothing, one kind after the other."""
    kinds: tuple[Callable[[bytes], Iterator[tuple[int, int] | _Again]], ...] = (
        _jumps,
        _sequences,
        _struck,
        lambda data: ((at, at + 1) for at, one in enumerate(data) if one in _SILENT),
        _hidden,
        _wraps,
    )
    for spans in kinds:
        taken = list(spans(text.data))
        places = list(text.places)
        for span in taken:
            for twin, one in span.twins if isinstance(span, _Again) else ():
                places[twin] += places[one]
        text = _Text(text.data, places).without([(span[0], span[1]) for span in taken])
    return text


class _Again(NamedTuple):
    """A span with places that draw once more what stands at other ones."""

    begin: int
    end: int
    twins: list[tuple[int, int]]


def _jumps(data: bytes) -> Iterator[tuple[int, int] | _Again]:
    """Yield the ways from the left edge to a column, and those to another row and back."""
    at = 0
    while at < len(data):
        begin = at
        at += 1
        if data.startswith(_UP, begin):
            rows = 1
            while data.startswith(_UP, begin + 3 * rows):
                rows += 1
            first = begin + 3 * rows
            end = _returns(data, first)
            downs = [one + b"\r\n" * rows for one in (b"\r", b"") if data.startswith(one + b"\r\n" * rows, first)]
            if 1 < rows < 9 and downs:
                at = first + len(downs[0])
                yield begin, at
            elif rows == 1 and first < end <= first + 2 and data[end : end + 1] in (b"\n", b""):
                at = min(end + 1, len(data))
                yield begin, at
        elif data[begin] == 13 and (
            _JUMP.match(data, at) or (_BEGUN_JUMP.match(data, at) and data[max(0, begin - 1) : begin] != b" ")
        ):
            yield begin, at
        elif data[begin] == 13 and 1 < _returns(data, begin) - begin < 5:
            end = _returns(data, begin)
            if end == len(data):
                at = end
                yield begin, end
            if data[end : end + 1] != b"\n":
                continue
            behind = _colours(data, end + 1)
            up = re.compile(rb"\x1b\[A\x1b\[[0-9]{1,4}C").match(data, behind)
            first = _colours(data, up.end()) if up is not None else 0
            before, two = data[begin - 1 : begin], data[first : first + 2]
            is_again = two[1:] in (b"", before) and two[:1] in _PRINTABLE and before not in (b"", b"\n", b"\r", b"\x1b")
            if up is not None and two and is_again:
                at = first + len(two)
                yield _Again(begin, at, [(begin - 1, one) for one in range(first, at)])
                continue
            if data.startswith(_UP, behind) or re.compile(rb"(\x1b(\[[0-9;:]{0,20}|\()?)?\Z").match(data, behind):
                at = end + 1
                yield begin, at


def _struck(data: bytes) -> Iterator[tuple[int, int] | _Again]:
    """Yield what is drawn over with the same character."""
    for at in range(len(data) - 2):
        if data[at] in _PRINTABLE and data[at + 1] == 8 and data[at + 2] == data[at]:
            yield _Again(at, at + 2, [(at + 2, at)])


def _returns(data: bytes, at: int) -> int:
    return _behind(data, at, 13, 13)


def _colours(data: bytes, at: int) -> int:
    for _ in range(8):
        found = _COLOUR.match(data, at)
        at = at if found is None else found.end()
    return at


def _wraps(data: bytes) -> Iterator[tuple[int, int] | _Again]:
    """Yield what stands where a row goes on in the next one."""
    for at in range(len(data)):
        if data[at : at + 2] == b" \r" and data[at + 2 : at + 3] != b"\n":
            one = data[at + 2 : at + 3]
            if one and one in _PRINTABLE and data[at + 3 : at + 5] == b"\r" + one:
                yield _Again(at, at + 4, [(at + 4, at + 2)])
            else:
                yield at, at + 2


def _sequences(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the control sequences."""
    end = 0
    for at, one in enumerate(data):
        if one == _ESC and at >= end and (found := _sequence_end(data, at)):
            end = found
            yield at, end


def _strings(data: bytes) -> list[tuple[int, int]]:
    """Return the control sequences that hold a string."""
    begun = [at for at in range(len(data) - 1) if data[at] == _ESC and data[at + 1] in _STRINGS]
    return [(at, _sequence_end(data, at)) for at in begun]


def _sequence_end(data: bytes, at: int) -> int:
    """Return where the sequence ends whose ESC stands at a place; 0 where it begins none."""
    kind = data[at + 1 : at + 2]
    if kind and kind in _STRINGS:
        end = at + 2
        while end < len(data) and data[end] not in b"\x07\x18\x1a\x1b":
            end += 1
        if data[end : end + 2] == b"\x1b\\":
            return end + 2
        return end + (data[end : end + 1] not in (b"", b"\x1b"))
    if kind == b"[":
        end = _behind(data, _behind(data, at + 2, 0x30, 0x3F), 0x20, 0x2F)
        if end == len(data) or 0x40 <= data[end] <= 0x7E:
            return min(end + 1, len(data))
        return at + 2
    end = _behind(data, at + 1, 0x20, 0x2F)
    return min(end + 1, len(data)) if end == len(data) or 0x30 <= data[end] <= 0x7E else 0


def _behind(data: bytes, at: int, least: int, most: int) -> int:
    while at < len(data) and least <= data[at] <= most:
        at += 1
    return at


def _hidden(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield characters without a width, and sequences that begin with a CSI of one character."""
    end = 0
    for at, one in enumerate(data):
        if at < end or one < 0x80:
            continue
        wide = next((data[at:to] for to in (at + 2, at + 3, at + 4) if data[at:to] in _NO_WIDTH), None)
        found = _CSI.match(data, at) or _BEGUN.match(data, at)
        if wide is not None or found is not None:
            end = at + len(wide) if wide is not None else found.end() if found is not None else at
            yield at, end


# What is a secret


def find(text: bytes, *, more: bool = False) -> ReferenceSpans:
    """Find the secrets in a text without control sequences.

    `more`: the text may go on. What may become a secret at its end is then one.
    """
    secret: set[int] = set()
    open_at = len(text)
    closed = [*_tokens(text), *_keys(text)]
    ends = [*_named(text, more), *_following(text, more), *_password_lines(text, more), *_keys_at_end(text)]
    begun = open_token().search(text, max(0, len(text) - 4096)) if more else None
    if begun is not None:
        ends.append((begun.start(begun.lastindex or 0), len(text), True))
    for begin, end, is_open in [*((begin, end, False) for begin, end in closed), *ends]:
        secret.update(range(begin, end))
        if is_open and more:
            open_at = min(open_at, begin)
    return ReferenceSpans(_runs(secret), open_at)


def _tokens(text: bytes) -> Iterator[tuple[int, int]]:
    for chars, only_wide in ((RUN_CHARS, False), (WIDE_RUN_CHARS, True)):
        for run in re.finditer(rb"[%s]{%d,}" % (re.escape(chars), RUN_LEAST), text):
            end = run.end() + (128 if text[run.end() : run.end() + 1] in (b"+", b"/", b"=", b":") else 0)
            for found in any_token().finditer(text, max(0, run.start() - 40), end):
                glued: re.Match[bytes] | None = found
                while glued is not None:
                    number = glued.lastindex or 0
                    rest = TOKEN_REST[number - 1].match(text, glued.start(number))
                    assert rest is not None
                    if TOKEN_IS_WIDE[number - 1] or not only_wide:
                        yield rest.span()
                    others = [glued_token().match(text, at, end) for at in range(rest.end() - 24, rest.end() + 1)]
                    at = glued.start()
                    glued = next((one for one in others if one and one.start() > at and one.end() > rest.end()), None)


def _keys(text: bytes) -> Iterator[tuple[int, int]]:
    for found in private_key().finditer(text):
        for piece in PRIVATE_KEY_PIECE.finditer(text, *found.span("value")):
            if piece[1] is not None:
                yield piece.span(1)


def _keys_at_end(text: bytes) -> Iterator[tuple[int, int, bool]]:
    """Yield an empty span where a key begins that is not known to have ended."""
    for found in private_key().finditer(text):
        if found.end() == len(text):
            yield found.start("value"), found.start("value"), True


def _password_lines(text: bytes, more: bool) -> Iterator[tuple[int, int, bool]]:
    for found in PASSWORD_LINE.finditer(text):
        is_open = more and found.end("value") == len(text)
        if is_password_line(text, found, whole=not is_open):
            yield *found.span("value"), is_open


def _named(text: bytes, more: bool) -> Iterator[tuple[int, int, bool]]:
    assigned = {
        place.start()
        for word in ASSIGNED
        for place in re.finditer(re.escape(word), text.lower())
        if begun_of(word)(text, place.start())
    }
    for shape in NAMED:
        for word in re.finditer(re.escape(shape.word), text.lower()):
            at = word.start()
            found = shape.pattern.match(text, at)
            if found is None or (shape.may_be is not None and not shape.may_be(text, at)):
                continue
            groups = {name: span for name in shape.pattern.groupindex if (span := found.span(name)) != (-1, -1)}
            begin, end = groups.get("value") or groups.get("quoted") or groups["bare"]
            if more and end == len(text):
                yield begin, end, True
                continue
            value = text[begin:end]
            whole = value
            if _PARAMETER.search(text[max(0, at - 33) : at]):
                value = value.split(b"&")[0]
            crowd = len([one for one in assigned if at < one < min(end, at + CROWDED)])
            crowded = "bare" in groups and end - begin > 64 and crowd >= CROWD and value == whole
            value = value.rstrip(b",;)]}")
            checked = value[:CHECKED_BYTES] if shape.word in ASSIGNED else value
            if value and (crowded or shape.is_secret(text, found, checked)):
                yield begin, begin + len(value), False


def _following(text: bytes, more: bool) -> Iterator[tuple[int, int, bool]]:
    for shape in FOLLOWING:
        words = [word.start() for name in shape.words for word in re.finditer(re.escape(name), text.lower())]
        for opener in filter(None, [shape.opener.match(text, at) for at in words]):
            for at in range(opener.end() + shape.least, min(opener.end() + shape.most, len(text)) + 1):
                if set(text[opener.end() : at]) & set(shape.breaks):
                    break
                found = shape.pattern.match(text, at)
                if found is None:
                    continue
                begin, end = found.span("value")
                value = text[begin:end].rstrip(b",;)]}")
                if more and end == len(text):
                    yield begin, end, True
                elif value and shape.is_secret(text, found, value):
                    yield begin, begin + len(value), False
