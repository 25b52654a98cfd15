"""The query planner: the texts that a chunk must hold, and nothing where that is not known."""

from __future__ import annotations

import pytest

from blockpty.search.planner import plan
from blockpty.search.query import Query


@pytest.mark.parametrize(
    ("pattern", "literals"),
    [
        ("error", (("error",),)),
        ("err(or)?", (("err",),)),
        ("(foo|bar) baz", ((" baz", "foo"), (" baz", "bar"))),
        ("a+b", (("a", "b"),)),
        (r"^\w+$", ()),
        ("x*", ()),
        ("(?:x|y*)", ()),
        ("[ab]c", (("c",),)),
        (r"foo\bbar", (("foobar",),)),
        ("(?e)(?:error){e<=1}", ()),
        ("[[:alpha:]]x", ()),
        ("[a--b]x", ()),
    ],
)
def test_texts_that_an_expression_needs(pattern: str, literals: tuple[tuple[str, ...], ...]) -> None:
    assert {frozenset(way) for way in plan(Query(pattern, "regex")).literals} == {frozenset(way) for way in literals}


def test_text_is_folded() -> None:
    assert plan(Query("ErrOR")).literals == (("error",),)
    assert plan(Query("ErrOR", "regex", ignore_case=True)).literals == (("error",),)


def test_words_are_needed_each() -> None:
    asked = plan(Query("Two Words two-fold", "words"))
    assert asked.literals == (("two", "words", "two-fold"),)
    assert asked.words == ("two", "words", "fold")


def test_too_many_ways_are_none() -> None:
    assert plan(Query("|".join(2 * letter for letter in "abcdefghijklmnopq"), "regex")).literals == ()
    assert plan(Query("(" * 40 + "x" + ")" * 40, "regex")).literals == ()
