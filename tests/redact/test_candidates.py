"""What is passed over holds no secret: the quick way finds what the slow one finds, in any text, colours and all."""

from __future__ import annotations

import itertools
import random
import tracemalloc

import pytest

from blockpty.redact import candidates, redaction
from blockpty.redact.redaction import (
    find_shown,
)
from tests.support import profile
from tests.support import redaction_reference as reference
from tests.support.secret_shapes import HARMLESS, SHAPES, Shape

LINE = b"\x1b[2m2026-01-01T12:00:00.123Z\x1b[0m \x1b[1;32mINFO\x1b[0m server: request 00000012 took 12 ms\x1b[K\r\n"
BEFORE, BEHIND = 6 * LINE, 4 * LINE
INSIDE = (b"\x1b[31;1m", b"\x1b[K", b"\x1b[m\x1b[38;2;1;20;255m", b"\x1b[2J\x1b[12;40H", b"\x00\x1b[?25l")

SIMPLE = (
    *(b"\x1b[m", b"\x1b[0m", b"\x1b[1;32m", b"\x1b[K", b"\x1b[38;2;255;1;10m", b"\x1b[?25h", b"\x1b[2J"),
    b"\x1b[12;3H",
)
# Sequences of other kinds, broken ones, and what becomes another one if the wrong part of it is taken out.
ODD = (
    *(b"\x1b7", b"\x1b(B", b"\x1b[31", b"\x1b[", b"\x1b", b"\x1b[5 q", b"\x1b[38:5:1m", b"\x1bPabc", b"\x1b1[pass"),
    *(b"\x1b]0;title\x07", b"\x1b]8;;http://me:hunter2x@h/\x1b\\", b"\x1b]7717;__END__;n=abc\x07", b"\x1b[\x00m"),
    *(b"\x1b[\x1b[m", b"\x1b\x1b[m", b"\x1b[\x1b[mK", b"\x1b[3\x1b[Km", b"\x1b7[k", b"\x00", b"\x08", b"\x01", b"\r"),
    *(b" \r", b" \r\n", b"\x1b[K\r", b" \x1b[K\r", b" 5\r", b" \r5\n", b"\r\x1b[m\n", b"\r\x1b[12C", b"\r\x1b[C"),
    *(b"\r\r\n\x1b[A\x1b[78Cid", b"\r\r\n\x1b[30m\x1b(B\x1b[m\x1b[A", b"\x1b[A\r\r\n\x1b[3C", b"\r\r\n", b" \rx\rx"),
    *(b"\x1b[A\x1b[A\r\r\n\r\n", b"\x1b[A\x1b[A\x1b[A\r\n\r\n", b"\x1b[A\r", b"\x1b[A"),
    *(b"x\x08x", b"p\x08pass"),
    b"x\r\r\n\x1b[m\x1b[A\x1b[8C\x1b[36m1x",
)
WORDS = (
    *(b"pass", b"password=", b"token: ", b"secretoken=", b"passecret=", b"login me\n", b"login", b"password hunter2x"),
    *(b"key ", b"KEY=", b"auth=", b"--password ", b"hunter2x", b"Bearer ", b"://a:b1c2d3@", b"PRIVATE KEY", b"a" * 19),
    *(b"A1" * 12, b"1234567890" * 2, b"the ", b"x", b" ", b"\r\n", b"\n", b"\xc3\xa9"),
)


# What a shape needs behind a word, whole and in parts; colours and lines erased at their ends as the only sequences.
COLOURS = (b"\x1b[m", b"\x1b[0m", b"\x1b[1;32m", b"\x1b[38;2;255;1;10m")
NAMES = (
    *(b"auth", b"Auth", b"AUTH", b"aUth", b"_auth", b"authorization", b"auth_token", b"pass", b"PASS", b"PassWord"),
    *(b"passphrase", b"passed", b"passcode", b"pass_", b"passx", b"passwd", b"secret", b"Secret", b"token", b"key"),
    *(b"KeY", b"pwd", b"bearer ", b"api_key", b"login me ", b"https://me"),
)
SIGNS = (
    *(b":", b"=", b": ", b" = ", b":=", b"=>", b">", b"   ", b" ", b"     :", b'": "', b"':'", b"']=", b"", b"::"),
    b"\t=\t",
)
VALUES = (
    *(b"hunter2x", b"dXNlcjpwYXNzd29yZA==", b"Abcdefghij1", b"Abcdefghij12", b"basic dXNlcjpwYXNz", b"Basic a1b2c"),
    *(b"request 00011126", b"x", b'"A1b2C3d4E5f6"', b"A1b2C3d4E5f6G7h8I9j0", b"a1b2c3d4@host", b""),
    *(b"password hunter2x", b"Abcdefgh1;jk", b"abcdefghijkl", b"Abcdefghij12 x"),
)


def named(chance: random.Random) -> bytes:
    """Return lines in which words name what stands behind them, or seem to."""
    lines = []
    inside = chance.random() < 0.3
    for _ in range(chance.randint(1, 12)):
        before, name = chance.choice((b"", b"at 12:03 ", b"x", b"_")), chance.choice(NAMES)
        line = before + name + chance.choice(SIGNS) + chance.choice(VALUES)
        line += chance.choice((b"", b" ok", b";", b" state=ok"))
        for _ in range(chance.choice((0, 1, 2, 2, 4, 12))):
            cut = chance.randint(0 if inside else len(before + name), len(line))
            added = chance.choice(COLOURS) if chance.random() < 0.9 else chance.choice((b"\x00", b"\x07", b"\x08\x1f"))
            line = line[:cut] + added * chance.choice((1, 1, 1, 10)) + line[cut:]
        lines.append(line + chance.choice((b"\n", b"\r\n", b"\x1b[K\r\n", b"\x1b[0K\n", b"\x1b[0m\x1b[K\r\n")))
    return b"".join(lines)


def lines_of(data: bytes) -> list[tuple[int, int]] | None:
    """Return the numbers of the lines that can hold a secret."""
    found = candidates.pieces(data)
    return None if found is None else [(data.count(b"\n", 0, at), data.count(b"\n", 0, to)) for at, to in found]


def made(chance: random.Random) -> bytes:
    """Return a text of secrets, half secrets and harmless lines, with sequences anywhere in it."""
    sequences = SIMPLE * 4 + ODD if chance.random() < 0.5 else SIMPLE
    out = []
    for _ in range(chance.randint(1, 40)):
        kind = chance.random()
        if kind < 0.2:
            data = chance.choice(SHAPES).text.encode()
        elif kind < 0.25:
            data = chance.choice(HARMLESS).encode()
        elif kind < 0.6:
            data = chance.choice(WORDS)
        else:
            line = b"line of text %d and more\r\n" % chance.randint(0, 10**9)
            data = line if kind < 0.8 else chance.choice(sequences)
        for _ in range(chance.choice((0, 0, 1, 3))):
            cut = chance.randint(0, len(data))
            data = data[:cut] + chance.choice(sequences) + data[cut:]
        out.append(data)
    text = b"".join(out)
    return text[: chance.randint(0, len(text))] if chance.random() < 0.5 else text


def test_the_quick_way_finds_what_the_slow_one_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_FEW_BYTES", 0)
    chance, spans, quick = random.Random(20), 0, 0
    for number in range(1300 if profile.LONG else 400):
        text = made(chance)
        more = bool(number % 2)
        found = find_shown(text, more=more)
        assert found == reference.find_shown(text, more=more), text
        spans += len(found.spans)
        quick += b"\x1b" in text and candidates.pieces(text[: text.rfind(b"\n") + 1]) is not None
    assert spans > 300 and quick > 60  # both ways have been gone


def test_no_secret_behind_a_word_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_FEW_BYTES", 0)
    chance, spans, quick = random.Random(21), 0, 0
    for number in range(600 if profile.LONG else 200):
        text = named(chance)
        if number % 3 == 0:
            text = text[: chance.randint(0, len(text))]
        found = find_shown(text, more=bool(number % 2))
        assert found == reference.find_shown(text, more=bool(number % 2)), text
        spans += len(found.spans)
        head = text[: text.rfind(b"\n") + 1]
        shown = candidates._shown_of_colours(head)
        quick += shown is not None and candidates._pieces_of_words(head, shown) is not None
    assert spans > 300 and quick > 15


LONG = 200 * b"\0"  # colours would leave a run


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name.replace(" ", "_"))
def test_no_colour_hides_a_secret_among_coloured_lines(shape: Shape) -> None:
    data = shape.text.encode()
    if not data.endswith(b"\n"):
        data += b"\n"
    whole = reference.find_shown(data).spans
    assert whole
    for cut, inside in profile.some_of(zip(range(1, len(data)), itertools.cycle(INSIDE), strict=False)):
        text = BEFORE + data[:cut] + inside + data[cut:] + BEHIND
        assert lines_of(text) is not None
        found = find_shown(text).spans
        hidden = {at for begin, end in found for at in range(begin - len(BEFORE), end - len(BEFORE))}
        secret = [at for begin, end in whole for at in range(begin, end)]
        if data[cut - 1 : cut + 1].isascii():
            assert not [at for at in secret if at + (at >= cut) * len(inside) not in hidden], (cut, inside)
        if cut % 7 == 0:
            assert found == reference.find_shown(text).spans


@pytest.mark.parametrize("lines", [0, 1, 40, 118])
def test_a_password_behind_a_login_lines_before_it(lines: int) -> None:
    text = BEFORE + b"login me" + lines * b"\n" + b"\x1b[m \npassword \x1b[1mhunter2x\x1b[m\n" + BEHIND
    found = find_shown(text).spans
    assert found == reference.find_shown(text).spans
    assert bool(found) is (lines < 118)
    tail = text[: text.index(b"hunter2x") + 8]
    assert find_shown(tail, more=True) == reference.find_shown(tail, more=True)


def test_lines_are_named_that_can_hold_one_and_few_others() -> None:
    text = LINE * 3 + b"\x1b[1mto\x1b[Kken: x\n" + LINE * 2 + b"a" * 20 + b"\n" + LINE
    assert lines_of(text) == [(3, 4), (6, 7), (8, 8)]
    assert lines_of(LINE) == [(1, 1)]
    for odd in (b"\x1b7", b"\x1b]0;x\x07", b"\x1b[5 q", b"\x1b\n", b"x \rx\x1b[m", b"x\r\x1b[1Cx"):
        assert lines_of(LINE + odd + b"\n") is None
    assert lines_of(LINE + b"a blank at the end \r\n") == [(2, 2)]


@pytest.mark.parametrize("line", [b"key\n", b"k\x1b[mey\n", b"\n", b"\x1b[m\n", b"a" * 20 + b"\x1b[m\n"])
def test_a_text_of_nothing_else_takes_little_memory(line: bytes) -> None:
    text = line * (256 * 1024 // len(line)) + b"token=\x1b[mx\n"
    tracemalloc.start()
    try:
        assert find_shown(text).spans == []
        assert tracemalloc.get_traced_memory()[1] < 35 * len(text)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "name",
    [
        *(b"auth" + between + b"ORIZATION" for between in (b"", LONG, LONG[:100])),
        *(b"auth", b"_auth", b"authx", b"pass", b"Pass_", b"passphrase"),
    ],
    ids=lambda name: name.decode().replace("\0", "")[:20],
)
def test_what_a_word_needs_behind_it_is_what_its_shapes_need(name: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "_FEW_BYTES", 0)
    between = (b"", b"\x1b[1;32m", LONG, b"\x00", b" \x1b[0m\x1b[1m ", 3 * b"\x1b[m\x1b[m\x1b[m ")
    spans = passed = 0
    cases = list(itertools.product(SIGNS, between, VALUES))
    for sign, colour, value in cases if profile.LONG else random.Random(22).sample(cases, len(cases) // 6):
        # Each by itself: a run, or another word, would have the line looked at anyway.
        text = b"\x1b[2mat\x1b[m " + colour.join((name, sign, value)) + b"\x1b[K\r\n"
        found = find_shown(text)
        assert found == reference.find_shown(text), text
        spans += len(found.spans)
        passed += candidates.pieces(text) == [(len(text), len(text))]
    assert spans > (100 if profile.LONG else 15) and passed > (15 if name in (b"auth", b"_auth", b"authx") else -1)


PLAIN = (
    *(b"pass", b"Pass", b"PAS", b"word", b"WORD", b"=", b": ", b"tok", b"en", b"KEY", b"ke", b"y", b"sec", b"ret"),
    *(b"log", b"in", b"auth", b"PRIVATE", b" PRIVATE KEY", b"://", b"@", b"sk-", b"ghp", b"_", b"xox", b"AKIA", b"$2"),
    *(b"hunter2x", b"A1b2C3d4E5", b"-----BEGIN ", b"the ", b"x", b"\r\n", b"\n", b"\t", b" \r", b"1.2.3", b"/usr/bin "),
    *(b"s" * 9, b"0123456789", b'"', b"'", b";", b"curl -u me:", b":5432:", b"Enter ", b"\x1b[m", b" ", b"\xc3\xa9"),
    b"\x00",
)


def test_a_small_text_that_is_called_harmless_holds_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    chance, quick = random.Random(22), 0
    for _ in range(20_000 if profile.LONG else 3000):
        pieces = chance.choices(PLAIN, k=chance.randint(1, 12))
        if chance.random() < 0.2:
            pieces.insert(chance.randint(0, len(pieces)), chance.choice(SHAPES).text.encode()[: chance.randint(1, 40)])
        text = b"".join(pieces)
        if candidates.is_harmless(text):
            quick += 1
            assert reference.find_shown(text) == reference.ReferenceSpans([], len(text)), text
        for more in (False, True):
            assert find_shown(text, more=more) == reference.find_shown(text, more=more), text
        texts = redaction.secret_texts(text)
        with monkeypatch.context() as patched:
            patched.setattr(candidates, "is_harmless", lambda data: False)
            assert redaction.secret_texts(text) == texts, text
    assert quick > 500


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name.replace(" ", "_"))
def test_no_text_with_a_secret_is_called_harmless(shape: Shape) -> None:
    text = shape.text.encode()
    assert not candidates.is_harmless(text)
    for cut in range(1, len(text)):
        if candidates.is_harmless(text[:cut]):
            assert find_shown(text[:cut], more=True) == reference.find_shown(text[:cut], more=True)
            assert reference.find_shown(text[:cut]).spans == []
    for before in (b"", b"ok\r\n", b"\tok\n"):
        assert candidates.is_harmless(before + b"total 12\r\n")
        assert not candidates.is_harmless(before + text.replace(b"\n", b"\r\n"))
