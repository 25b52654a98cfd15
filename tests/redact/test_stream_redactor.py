"""What a wait sees of a stream is covered in the same places, in whatever pieces the stream comes."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import pytest

from blockpty.redact.redaction import LONGEST, SecretSpans, find_shown, redact_output
from blockpty.redact.stream_redactor import STEP, StreamRedactor
from tests.support.profile import LONG, some_of
from tests.support.secret_shapes import HARMLESS, SHAPES, Shape


def redact_spans(data: bytes, cuts: Sequence[int], begin: int = 0) -> bytes:
    """Return a stream as it is seen behind a redactor that starts at an offset and gets it in pieces."""

    def before(offset: int, length: int) -> bytes:
        return data[max(0, offset - length) : offset]

    redactor, out, seen = StreamRedactor(before), b"", begin
    redactor.restart(begin, attach=True)
    borders = [begin, *(cut for cut in cuts if cut > begin), len(data)]
    for first, last in itertools.pairwise(borders):
        redactor.feed(data[first:last])
        assert seen <= redactor.settled <= last
        out += redactor.redact(seen, data[seen : redactor.settled])
        seen = redactor.settled
    redactor.flush()
    return out + redactor.redact(seen, data[seen:])


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_a_shape_is_redacted_at_every_cut(shape: Shape) -> None:
    text = b"so it is\r\n" + shape.text.encode() + b"and on\r\n"
    expected = redact_output(text)
    for cut in some_of(range(0, len(text), max(1, len(text) // 100))):
        assert redact_spans(text, [cut]) == expected, cut
    assert redact_spans(text, range(len(text))) == expected


def test_a_long_text_is_redacted_as_the_whole_is() -> None:
    chosen = random.Random(16)
    lines = [shape.text.replace("\n", "\r\n") for shape in SHAPES] + [f"{one}\r\n" for one in HARMLESS]
    lines += ["-----\r\n", "x" * 90 + "\r\n", "\x1b[1mtoken\x1b[0m=\r\n"] * 40
    for _ in range(6 if LONG else 2):
        chosen.shuffle(lines)
        data = "".join(lines).encode() * 2
        expected = redact_output(data)
        cuts = sorted(chosen.randrange(len(data)) for _ in range(60))
        assert redact_spans(data, cuts) == redact_spans(data, []) == expected
        begin = chosen.choice(cuts)
        assert redact_spans(data, cuts, begin) == expected[begin:]


def test_an_endless_line_costs_no_more_than_its_length() -> None:
    """Nothing settles in it, and still it is not kept."""
    data = b"ghp_" + b"a1" * LONGEST
    redactor = StreamRedactor(lambda offset, length: b"")
    for at in range(0, len(data), 1000):
        redactor.feed(data[at : at + 1000])
        assert len(redactor._data) <= 2 * LONGEST
    assert redact_spans(data, range(0, len(data), 4001))[:LONGEST] == b"ghp_" + b"*" * (LONGEST - 4)


def test_a_long_line_that_comes_at_once_is_looked_at_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = 0

    def counted(text: bytes, *, more: bool = False) -> SecretSpans:
        nonlocal looked
        looked += len(text)
        return find_shown(text, more=more)

    monkeypatch.setattr("blockpty.redact.stream_redactor.find_shown", counted)
    data = b"key pass " * LONGEST
    StreamRedactor(lambda offset, length: b"").feed(data)
    assert looked <= 2 * len(data)


def test_larger_steps_cover_the_same_and_look_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [shape.text for shape in SHAPES] + [f"{one}\n" for one in HARMLESS] + ["a plain line of text\n" * 40] * 60
    random.Random(17).shuffle(lines)
    data, looks = "".join(lines).encode(), 0

    def counted(text: bytes, *, more: bool = False) -> SecretSpans:
        nonlocal looks
        looks += 1
        return find_shown(text, more=more)

    monkeypatch.setattr("blockpty.redact.stream_redactor.find_shown", counted)
    redactor = StreamRedactor(lambda offset, length: b"", 8 * STEP)
    redactor.feed(data)
    redactor.flush()
    assert redactor.redact(0, data) == redact_output(data)
    assert looks <= len(data) // (8 * STEP) + 1
