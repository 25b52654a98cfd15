"""Matchers: what a pattern may be, and that a candidate does not depend on the pieces of the text."""

from __future__ import annotations

import pytest

from blockpty.engine.matchers import PatternMatcher, PatternTimeout, TextMatcher, TextWindow
from blockpty.engine.views import View
from blockpty.errors import BadCondition
from blockpty.testing import wait_on
from tests.support.machines import finished, the_same, waiter_for


@pytest.mark.parametrize(
    "pattern", ["(", "[", "*", "(?P<a", r"\p{Nope}", "(?<=a*", "a{99999999999}", r"\L<names>", "(" * 4000]
)
def test_what_does_not_compile_is_a_bad_condition(pattern: str) -> None:
    with pytest.raises(BadCondition):
        PatternMatcher(pattern)


def test_a_slow_pattern_may_be_asked_again() -> None:
    window, view = (
        TextWindow(
            "text",
        ),
        View("text", 0),
    )
    matcher = PatternMatcher(r"^(a|aa)+(a|aa)+$")
    window.append(view.feed(b"a" * 64 + b"b\nab\n"))
    with pytest.raises(PatternTimeout):
        matcher.grow(window, 0.001)
    with pytest.raises(PatternTimeout):
        matcher.grow(window, 0.001)


def test_needle_over_many_pieces() -> None:
    window, view, matcher = TextWindow("text"), View("text", 0), TextMatcher("needle")
    found = None
    for code in b"x" * 100_000 + b"needle":
        window.append(view.feed(bytes([code])))
        found = matcher.grow(window, 1.0)
        window.forget(matcher.needs)
        assert len(window.text) < 64
    assert found is not None
    assert found.span == (100_000, 100_006)


# Every one of these looks at more than the line, moves the match, or searches in another order.
PATTERNS = [
    r"(?r)foo", r"(?m-i:foo$)", r"(?-m:foo$)", r"(?-m)foo$", r"foo\n\K", r"foo\K", r"\Kfoo", r"(?<=\n)foo",
    r"(?<!\n)foo",
    r"foo(?!\n)", r"foo(?=\n)", r"foo\Z", r"\Afoo", r"foo\z", r"(?|(foo)|(bar))", r"(?>foo|f)", r"fo*+$",
    r"(?(?=f)foo|bar)",
    r"(?s).*foo", r"foo.*bar", r"(?s)foo.*bar", r"\s*$", r"^\s*$", r"(?w)foo$", r"(?b)(?:fop){e<=1}",
    r"(?e)(?:fop){i<=1}",
    r"(?p)foo|foobar", r"(?V1)foo", r"[\s\S]+", r"[^x]*", r"\R", r"\X", r"\Bo", r"(\w)\1",
    r"(?P<n>fo)(?P=n)?", r"\bfoo\s",
    r"\s$", r"\n$", r"$", r"^", "foo\r", r"o\r$", r"(?:foo|bar)\s$", r"\m\w+\M$", r"(?i-s)FOO", r"$(?r)", r"\G.",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize(
    "output",
    [
        b"foo 1\r\nfoo 2\r\n",
        b"x\r\n\x1b[0mfoo\x1b[1m\r\n\x1b[0m\r\nbar\r\n",
        b"foo\rbar\rfoobar\r\n",
        b"bar\r\nfoo\r",
        b"f\r\n\r\nfoo",
    ],
)
def test_answer_is_the_same_for_every_cut(pattern: str, output: bytes) -> None:
    recording, begin = finished(output)
    try:
        waiter = waiter_for({"regex": pattern}, begin)
    except BadCondition:
        return
    assert wait_on(recording, waiter) is not None
    cuts = [range(len(recording.stream)), *((place,) for place in range(begin, begin + len(output) + 2))]
    the_same(recording, lambda: waiter_for({"regex": pattern}, begin), cuts)
