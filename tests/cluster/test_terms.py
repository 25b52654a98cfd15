"""The numbers that the shared index holds: a chunk has those of every text and word in it."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from blockpty.cluster.terms import terms_of, terms_of_block, time_terms, wanted_terms
from blockpty.search.text import fold, words_of

_SOME = "ab01239 \t\n\r_-./\u00e9\u6771\ue0b0\x00\x1f\x85\xa0"
_TEXTS = st.text(st.one_of(st.sampled_from(_SOME), st.characters()), max_size=60)


@given(before=_TEXTS, text=_TEXTS, after=_TEXTS)
@example(before="", text="404", after="")
@example(before="é", text="ls -l 12", after="")
@example(before="1", text="000", after="1")
def test_a_chunk_has_what_is_wanted_of_each_text_in_it(before: str, text: str, after: str) -> None:
    has = terms_of(fold(before + text + after))
    for line in text.split("\n"):
        assert wanted_terms([fold(line)]) <= has


@given(text=_TEXTS)
@example(text="a bc 12 7 def")
def test_a_chunk_has_what_is_wanted_of_its_words(text: str) -> None:
    words = words_of(fold(text))
    assert wanted_terms(words, words) <= terms_of(fold(text))


def test_what_is_not_there_is_mostly_known() -> None:
    has = terms_of("connection refused by 10.20.30.404\nls -l\n")
    for absent in ("refusal", "405", "connections", "ls -a", "r by 1x"):
        assert not wanted_terms([absent]) <= has, absent
    assert wanted_terms(["is"], ["is"]) and not wanted_terms(["is"], ["is"]) <= has
    assert wanted_terms(["ls"], ["ls"]) <= has
    # Nothing is known of a text so short.
    assert not wanted_terms(["ls"])


def test_numbers_are_the_same_for_ever() -> None:
    """What is in a user's database must be found by the next version."""
    assert sorted(terms_of("ab1 zz é12 404")) == [
        2109488, 2109538, 2128506, 3158048, 3158064, 3170913, 3420212, 6447392, 8026656, 1266904887, 1535359611,
        1787493956,
    ]  # fmt: skip
    assert sorted(terms_of_block("c1", 1_700_000_000_123)) == [
        -1073741837, -939524195, -805307160, -671094973, -536921576, -403058496, -271677949, -160157670, -73301804,
        1674261794,
    ]  # fmt: skip


@given(ts=st.integers(0, 1 << 42), first=st.integers(0, 1 << 42), length=st.integers(0, 1 << 38))
@example(ts=1_700_000_000_000, first=1_600_000_000_000, length=100_000_000_000)
def test_a_time_is_covered(ts: int, first: int, length: int) -> None:
    spans = time_terms(first, first + length)
    assert all(-(1 << 31) <= span < 0 for span in spans) and len(spans) <= 33
    if first <= ts <= first + length:
        assert set(spans) & terms_of_block("c", ts)
    assert set(time_terms(ts, ts + length)) & terms_of_block("c", ts)
