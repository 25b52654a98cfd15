"""What a person is shown, and that a verdict can mean nothing else."""

from __future__ import annotations

import re
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from blockpty.control.approvals import SHOWN_MOST, Approval, digest_of, visible


def test_what_cannot_be_seen_is_made_visible() -> None:
    assert visible("ls\r\n\x1b[2J\x7f\t") == "ls^M\n^[[2J^?^I"
    assert visible("a\u202eb\u200bc\u00a0d\u3164e\u0301") == "a<U+202E>b<U+200B>c<U+00A0>d<U+3164>e<U+0301>"
    assert visible("plain text, größer, 日本語 🙂") == "plain text, größer, 日本語 🙂"


@given(st.text())
def test_no_character_hides(text: str) -> None:
    for character in visible(text):
        assert character == "\n" or character == " " or unicodedata.category(character)[0] not in "CZ"


@given(st.text(max_size=50), st.text(max_size=50))
def test_different_texts_are_shown_differently(one: str, other: str) -> None:
    # Of texts that hold none of the signs that stand for what cannot be seen.
    plain = [re.sub(r"[\^<>]", "", text) for text in (one, other)]
    assert (visible(plain[0]) == visible(plain[1])) == (plain[0] == plain[1])


def test_a_long_text_shows_both_ends() -> None:
    shown = visible("a" * SHOWN_MOST + "the end")
    assert shown.startswith("aaa") and shown.endswith("the end") and "<7 characters more>" in shown


PART = st.text(max_size=4)


@given(st.tuples(PART, PART, PART, PART), st.tuples(PART, PART, PART, PART))
def test_a_digest_is_for_one_question_only(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    assert (digest_of(*one) == digest_of(*other)) == (one == other)


def test_the_digest_of_a_secret_cannot_be_guessed_from() -> None:
    asked = ("c1", "send", "hunter2", None)
    assert len({digest_of(*asked), digest_of(*asked, key=b"1"), digest_of(*asked, key=b"2")}) == 3


def test_the_note_has_the_fields_of_the_schema() -> None:
    one = Approval("a1.1", "c1", "bot", "run", "asks", "ls", "0" * 64, "rule", "/", None, 3, 4, "[[rule]]")
    assert one.to_note()["type"] == "approval_requested" and "always" not in one.to_note()
