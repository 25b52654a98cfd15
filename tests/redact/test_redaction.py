"""Covering secrets: every shape, cut at every place, coloured at every place; and what is no secret."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blockpty.redact.redaction import (
    find,
    find_in_plain_lines,
    find_shown,
    redact_output,
    redact_spans,
    redact_text,
)
from blockpty.screen.rendered import plain_lines
from tests.support.profile import LONG, some_of
from tests.support.secret_shapes import SHAPES, Shape

ONE_LINE = [shape for shape in SHAPES if "\n" not in shape.text.rstrip("\n")]
each_shape = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name.replace(" ", "_"))


def places(shape: Shape) -> list[int]:
    """Return where the bytes of the secret stand, blanks and line ends left out, also those of a JSON string."""
    begin, secret = len(shape.before.encode()), shape.secret.encode().replace(b"\\n", b"\n\n")
    return [begin + number for number, one in enumerate(secret) if one not in b"\r\n\t "]


def assert_hidden(shown: bytes, original: bytes, at: list[int]) -> None:
    left = [place for place in at if place < len(shown) and shown[place] == original[place]]
    assert not left, f"still there: {bytes(original[place] for place in left)!r} in {shown!r}"


@each_shape
def test_a_secret_is_redacted_and_nothing_else(shape: Shape) -> None:
    shown = redact_text(shape.text)
    assert len(shown) == len(shape.text)
    assert len(shown.encode()) == len(shape.text.encode())
    assert shown.startswith(shape.before)
    assert shown.endswith(shape.after)
    assert_hidden(shown.encode(), shape.text.encode(), places(shape))
    assert redact_text(shown) == shown


@each_shape
def test_a_text_that_ends_anywhere_does_not_show_the_part_that_is_there(shape: Shape) -> None:
    data = shape.text.encode()
    whole, at = redact_output(data), places(shape)
    for cut in range(len(data) + 1):
        spans, settled = find_shown(data[:cut], more=True)
        shown = redact_spans(data[:cut], spans)
        assert len(shown) == cut
        assert_hidden(shown, data, at)
        assert shown[:settled] == whole[:settled]


@each_shape
def test_a_colour_or_a_wrapped_line_in_the_middle_hides_nothing(shape: Shape) -> None:
    data, at = shape.text.encode(), places(shape)
    for number, inside in enumerate((
        *(b"\x1b[31;1m", b"\x1b]8;;https://x\x1b\\", b"\x07", b" \r", b"\x9b31m", b"\xc2\x9b0m"),
        *(b"\x1b]133;A\x07", b"\x1b]633;D;0\x1b\\"),
    )):
        for cut in some_of(range(1, len(data)), 4, number):
            if inside == b" \r" and data[cut - 1 : cut] + data[cut : cut + 1] != (data[cut - 1 : cut + 1]).strip():
                continue
            if data[cut] & 0xC0 == 0x80 or data[cut] in b"\r\n" or data[cut - 1] in b"\r\n":
                continue
            if inside[0] == 0x9B and data[cut - 1] & 0x80:
                continue  # which may be part of a character there
            shown = redact_output(data[:cut] + inside + data[cut:])
            assert shown[cut : cut + len(inside)] == inside
            assert_hidden(shown[:cut] + shown[cut + len(inside) :], data, at)


@each_shape
def test_line_ends_of_a_terminal_change_nothing(shape: Shape) -> None:
    data = shape.text.encode()
    assert redact_output(data.replace(b"\n", b"\r\n")) == redact_output(data).replace(b"\n", b"\r\n")


@pytest.mark.parametrize("shape", ONE_LINE, ids=lambda shape: shape.name.replace(" ", "_"))
def test_a_secret_in_a_title_is_redacted(shape: Shape) -> None:
    data = b"\x1b]0;" + shape.text.rstrip("\n").encode() + b"\x07$ "
    shown = redact_output(data)
    assert len(shown) == len(data)
    assert_hidden(shown, data, [4 + place for place in places(shape)])


def test_a_secret_ends_at_a_mark() -> None:
    mark = b"\x1b]7717;__END__;n=abc;x=0\x07"
    data = b"token=short" + mark + b"user@host:~$ 0123456789abcdefABCDEF"
    assert redact_output(data) == data


@each_shape
def test_half_a_sequence_or_mark_at_the_end_shows_nothing_of_what_is_there(shape: Shape) -> None:
    data, at = shape.text.encode(), places(shape)
    for number, inside in enumerate((b"\x9b31m", b"\xc2\x9b31m", b"\xe2\x80\x8b", b"\x1b]133;A\x07")):
        for cut in some_of(range(1, len(data)), 6, number):
            if data[cut - 1] & 0x80 or data[cut] & 0x80 or data[cut] in b"\r\n" or data[cut - 1] in b"\r\n":
                continue
            whole = redact_output(data[:cut] + inside + data[cut:])
            for come in {1, 2, len(inside) - 1, len(inside)}:
                text = data[:cut] + inside[:come]
                spans, settled = find_shown(text, more=True)
                shown = redact_spans(text, spans)
                assert_hidden(shown[:cut], data, at)
                assert shown[:settled] == whole[:settled]


def test_the_prompt_of_another_integration_is_no_value() -> None:
    prompt = b"\x1b]133;D;0\x07\x1b]133;A\x07me@host:~$ \x1b]133;B\x07"
    for output in (b"", b"plain text", b"a:5432:b:c\r\n", b"ok\r\n" + b"A1b2" * 8):
        assert not find_shown(prompt + b"run\r\n\x1b]133;C\x07" + output + prompt, more=True).spans


def test_a_held_end_is_settled_by_what_follows() -> None:
    assert find(b"password=", more=True).spans == []
    assert find(b"password=ab", more=True) == ([(9, 11)], 9)
    assert find(b"password=ab\n", more=True) == ([], 12)


@given(st.text())
def test_any_text_keeps_its_length(text: str) -> None:
    assert len(redact_text(text)) == len(text)


@given(st.binary(max_size=300), st.integers(0, 300))
def test_any_bytes_keep_their_length_and_what_is_settled_stays(data: bytes, cut: int) -> None:
    shown = redact_output(data)
    assert len(shown) == len(data)
    begun = find_shown(data[:cut], more=True)
    assert 0 <= begun.settled <= min(cut, len(data))


def test_many_secrets_in_one_long_line_of_nothing_else() -> None:
    chance = random.Random(1)
    shapes = chance.choices(ONE_LINE, k=300)
    text = "".join(shape.text.replace("\n", " ") for shape in shapes)
    shown = redact_text(text)
    assert len(shown) == len(text)
    for shape in shapes:
        assert shape.secret not in shown


@pytest.mark.parametrize("shape", ONE_LINE, ids=lambda shape: shape.name.replace(" ", "_"))
def test_a_secret_that_an_editor_draws_key_by_key_is_redacted(shape: Shape) -> None:
    data, drawn, at = shape.text.rstrip("\n").encode(), b"", []
    secret = set(places(shape))
    looked_at = set(some_of(range(len(data))))
    for number in range(len(data)):
        at += [len(drawn)] if number in secret else []
        drawn += data[number : number + 1] + b"\x1b[30m\x1b(B\x1b[m\r\x1b[%dC" % (number + 5)
        if data[number] & 0x80 == 0 and number in looked_at:
            # Also when the rest has not come yet, and wherever that begins.
            for cut in (0, 3):
                shown = redact_output(drawn[: len(drawn) - cut], more=True)
                assert_hidden(shown, drawn, at)
    assert_hidden(redact_output(drawn + b"\r\n"), drawn, at)


def _encoded(text: bytes) -> bytes:
    return b"".join(b"%c" % one if chr(one).isalnum() and one < 128 else b"%%%02X" % one for one in text)


def test_a_secret_that_a_mark_carries_is_redacted_and_the_mark_stays_one() -> None:
    token = b"ghp_" + b"4fK9" * 9
    command = b"export A=1 MY_TOKEN=" + token + b" B=2"
    begin, end = b"\x1b]7717;__CMD__;n=abcdef;i=1;s=1;c=0;p=1;d=", b"\x07"
    whole = begin + _encoded(command) + end
    shown = redact_output(b"$ " + whole + b"done")
    assert len(shown) == len(whole) + 6 and shown.startswith(b"$ " + begin) and shown.endswith(b"%20B%3D2\x07done")
    assert b"4fK9" not in shown and b"%5F" + b"*" * 36 in shown
    encoded = _encoded(command)
    for cut in range(1, len(encoded)):
        pieces = (encoded[:cut], encoded[cut:])
        data = b"".join(begin + b"%d/2:" % (number + 1) + piece + end for number, piece in enumerate(pieces))
        left = redact_output(data).replace(end + begin + b"2/2:", b"")
        assert b"4fK9" not in left and left.count(b"*") == 36
    foreign = b"\x1b]633;E;curl -H 'Authorization: Bearer " + token[4:] + b"'\x07"
    assert b"4fK9" not in redact_output(foreign)
    # What has begun is held.
    for cut in range(len(begin) + 4, len(whole)):
        found = find_shown(b"$ " + whole[:cut], more=True)
        assert found.settled == 2


def test_plain_lines_hold_the_same_secrets_as_what_is_sent() -> None:
    chosen, found = random.Random(3), 0
    sequences = (b"\x1b[m", b"\x1b[31m", b"\x1b[4:3m", b"\x1b[K", b"\x07", b"")
    for _ in range(100):
        data = b""
        for shape in chosen.choices(ONE_LINE, k=chosen.randint(1, 8)):
            text = shape.text.rstrip("\n").encode() if chosen.random() < 0.5 else b"nothing: auth pass key "
            cut = chosen.randint(0, len(text))
            data += chosen.choice(sequences) + text[:cut] + chosen.choice(sequences) + text[cut:] + b"\r\n"
        shown = plain_lines(data)
        if shown is not None and (spans := find_in_plain_lines(data, shown)) is not None:
            found += len(spans)
            assert redact_spans(data, spans) == redact_output(data)
    assert found > 100


# What editors send between two characters of a line where its row ends, and whether they draw some of it once more.
FISH_FULL = b"\r\r\n\x1b[30m\x1b(B\x1b[m\x1b[A\x1b[78C\x1b[36m"
FISH_COLUMN = b"\x1b[A\r\r\n\x1b[%dC\x1b[30m\x1b(B\x1b[m\x1b[36m"
ROW_ENDS = {
    "bash": lambda before, behind: (b" \r", 0),
    "zsh": lambda before, behind: (b" \r\x1b[K" + behind[:1] + b"\r", 0),
    "fish, full": lambda before, behind: (FISH_FULL + before[-2:], 2),
    "fish, after it": lambda before, behind: (FISH_COLUMN % 4, 0),
    "fish, third row": lambda before, behind: (b"\x1b[A\x1b[A\r\r\n\r\n\x1b[31m", 0),
    "fish, first column": lambda before, behind: (b"\x1b[A\r\r\n\x1b[C", 0),
}


@pytest.mark.parametrize(
    ("shape", "editor"),
    [
        (shape, name)
        for number, shape in enumerate(ONE_LINE)
        for editor, name in enumerate(ROW_ENDS)
        if LONG or (number + editor) % 6 == 0
    ],
    ids=lambda one: one if isinstance(one, str) else one.name.replace(" ", "_"),
)
def test_a_secret_over_the_end_of_an_editors_row_is_redacted(shape: Shape, editor: str) -> None:
    data = shape.text.rstrip("\n").encode()
    secret = set(places(shape))
    for cut in sorted(secret)[1::4]:
        before, behind = data[:cut], data[cut:]
        if not (before[-2:] + behind[:1]).isalnum():
            continue
        end, again = ROW_ENDS[editor](before, behind)
        drawn = before + end + behind + b"\r\n"
        at = [one if one < cut else one + len(end) for one in sorted(secret)]
        if again:
            at += [len(before + end) - back for back in (1, 2) if cut - back in secret]
        for first in (b"", b"a line before\r\n\x1b[31mof another colour\x1b[m\r\n" * 40):
            assert_hidden(redact_output(first + drawn), first + drawn, [len(first) + one for one in at])
        # What is there of the second row begins to matter at its first bytes.
        for length in [*range(len(before), len(before + end) + 4), *range(len(before + end) + 4, len(drawn), 5)]:
            if drawn[:length].endswith(b" "):
                continue  # which ends a value, as long as no CR follows
            # The part that is there is hidden as well.
            assert_hidden(redact_output(drawn[:length], more=True), drawn, [one for one in at if one < length])


@pytest.mark.parametrize("shape", ONE_LINE, ids=lambda shape: shape.name.replace(" ", "_"))
def test_a_secret_that_is_drawn_over_itself_is_redacted(shape: Shape) -> None:
    data, drawn, at = shape.text.rstrip("\n").encode(), b"", []
    secret = set(places(shape))
    for number in range(len(data)):
        one = data[number : number + 1]
        drawn += one + b"\x08\x1b[1m" if one.isalnum() else b""
        at += [len(drawn)] if number in secret else []
        at += [len(drawn) - 6] if number in secret and one.isalnum() else []
        drawn += one
    assert_hidden(redact_output(drawn + b"\r\n"), drawn, at)
    line = b"\x1b[31mplain\x1b[m\r\n" * 50
    assert_hidden(redact_output(line + drawn + b"\r\n"), line + drawn, [len(line) + one for one in at])


def test_rows_of_ordinary_output_are_not_joined() -> None:
    for end in (b"\r\r\n", b" \r\n", b"\r\r\n\x1b[m", b"\x1b[A\x1b[2K\r", b"\r\n\x1b[A", b"\r"):
        text = b"ghp_4fK94fK94fK9" + end + b"4fK94fK94fK94fK94fK94fK94fK9" + end + b"done\r\n"
        assert redact_output(text) == text
