"""Hostile lines: what is looked at of them is at most so many times what there is, whatever they hold."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from blockpty.redact import redaction
from blockpty.redact.redaction import find, find_shown
from blockpty.redact.shapes import NAMING
from tests.support import redaction_reference as reference
from tests.support.profile import LONG

SIZE = 48 * 1024
# Bytes that a match goes over or a check is given for each byte, and full looks at a word for so many bytes.
MOST_LOOKED_AT = 80
FEWEST_BYTES = 3

LINES = {
    **{name: name.encode() for name in ("pwd=", "secret=", "token=", "api_key=", "auth=", "PASSWORD:", "passcode=")},
    **{name: name.encode() for name in ("://", "://a:b", "http://a ", "://?sig=", "://a&sig=x ", "a://b:", "://u:p@")},
    **{name: name.encode() for name in ("curl -u ", "curl -u a", "mysql -p ", "mysqldump ", "cookie:a=b;")},
    "a long name": b"://" + b"u" * 120 + b":",
    "words": b"password token secret key auth pwd passphrase bearer cookie authorization ",
    "words that are given values": b"password= token= secret= api_key= auth= pwd= ",
    "digits": b"token=11",
    "far apart": b"token=x1" + b"y" * 60,
    "many values": b"cookie: a=" + b"=" * 300,
    "a run of another kind": b"auth." * 8 + b"key-" * 8,
}


class Work:
    """Counts the full looks at words, and the bytes that these go over or check."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.looks = self.size = 0
        shapes = {
            word: tuple(
                (self._match(match), groups, least, self._check(check), may_be, is_named)
                for match, groups, least, check, may_be, is_named in redaction._shapes_of(word)
            )
            for word in NAMING
        }
        monkeypatch.setattr(redaction, "_shapes_of", shapes.__getitem__)

    def _match(self, match: Callable[..., object]) -> Callable[..., object]:
        def counted(text: bytes, at: int) -> object:
            found = match(text, at)
            self.looks += 1
            self.size += 0 if found is None else found.end() - at  # type: ignore[attr-defined]
            return found

        return counted

    def _check(self, check: Callable[..., bool]) -> Callable[..., bool]:
        def counted(text: bytes, found: object, value: bytes) -> bool:
            self.size += len(value)
            return check(text, found, value)

        return counted


@pytest.mark.parametrize("more", [False, True])
@pytest.mark.parametrize("name", LINES)
def test_what_is_looked_at_grows_as_the_line_does(name: str, more: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    work = Work(monkeypatch)
    line = (LINES[name] * (SIZE // len(LINES[name]) + 1))[:SIZE]
    find(line, more=more)
    assert work.looks <= len(line) / FEWEST_BYTES + 20
    assert work.size <= MOST_LOOKED_AT * len(line)


def test_a_crowd_of_words_that_are_given_values_is_a_secret() -> None:
    crowd = b"a=b;secret=abcdefgh" * 40
    assert find(crowd).spans and find(crowd[: 19 * 8]).spans == []
    # With blanks, or in quotes, each is checked by itself.
    for apart in (crowd.replace(b";", b"; "), crowd.replace(b";", b'"')):
        assert find(apart).spans == []


def test_a_value_that_is_too_long_is_redacted_as_far_as_words_in_it_reach() -> None:
    line = b"x pwd=" + b"a1B2" * 600 + b"token=" + b"c3D4" * 1000 + b" end"
    (begin, end), *others = find(line).spans
    assert not others and line[:begin] == b"x pwd=" and line[end:] == b" end"


@pytest.mark.parametrize("name", LINES)
def test_a_short_hostile_line_is_what_it_was(name: str) -> None:
    for size, more in itertools.product((60, 300, 700) if LONG else (60, 300), (False, True)):
        line = b"begin " + (LINES[name] * size)[:size] + b" end"
        assert find(line, more=more) == reference.find(line, more=more)


def test_marks_with_many_pieces() -> None:
    begin, end = b"\x1b]7717;__CMD__;n=abcdef;i=1;s=1;c=0;p=1;d=", b"\x07"
    token = b"ghp_" + b"4fK9" * 9
    text = b"x" * 500 + b" " + token
    pieces = [text[at : at + 20] for at in range(0, len(text), 20)]
    data = b"".join(begin + b"%d/%d:" % (number, len(pieces)) + one + end for number, one in enumerate(pieces, 1))
    shown = bytearray(data)
    for first, last in find_shown(data).spans:
        shown[first:last] = b"*" * (last - first)
    assert b"4fK9" not in shown
