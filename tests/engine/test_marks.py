"""The grammar of a mark: what is one, and what merely looks like one."""

from __future__ import annotations

import pytest

from blockpty.engine.marks import KINDS, MAX_MARK, parse_mark

GOOD = b"__END__;n=nonce;i=42;s=2;c=1;p=3;x=130"


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_is_parsed(kind: str) -> None:
    mark = parse_mark(GOOD.replace(b"__END__", kind.encode()))
    assert mark is not None
    assert (mark.kind, mark.nonce, mark.instance, mark.seq, mark.count, mark.prompt) == (kind, "nonce", "42", 2, 1, 3)
    assert mark.number("x") == 130


@pytest.mark.parametrize(
    "body",
    [
        b"", b"__END__", b"__end__;n=nonce;i=42;s=2;c=1", b"END;n=nonce;i=42;s=2;c=1", b" __END__;n=n;i=4;s=2;c=1",
        b"__END__;i=42;s=2;c=1", b"__END__;n=;i=42;s=2;c=1", b"__END__;n=n;s=2;c=1", b"__END__;n=n;i=4;c=1",
        b"__END__;n=n;i=4;s=2", b"__END__;n=n;i=4;s=-2;c=1", b"__END__;n=n;i=4;s=+2;c=1", b"__END__;n=n;i=4;s=2.0;c=1",
        b"__END__;n=n;i=4;s=1e3;c=1", b"__END__;n=n;i=4;s=;c=1", b"__END__;n=n;i=4;s=9999999999999;c=1",
        b"__END__,n=n;i=4;s=2;c=1", b"__BEGIN____END__;n=n;i=4;s=2;c=1", b"\xff\xfe", b"__END__;n=n;i=4;s=\xb2;c=1",
    ],
)  # fmt: skip
def test_what_is_no_mark(body: bytes) -> None:
    assert parse_mark(body) is None


def test_number_is_none_for_what_is_no_number() -> None:
    mark = parse_mark(GOOD.replace(b"x=130", b"x=-1"))
    assert mark is not None
    assert mark.number("x") is None
    assert mark.number("absent") is None


def test_unknown_keys_and_bare_words_are_ignored() -> None:
    mark = parse_mark(GOOD + b";zz=1;word;=;a==b")
    assert mark is not None
    assert mark.fields["a"] == "=b"


def test_a_mark_fits_one_write() -> None:
    assert MAX_MARK == 512
