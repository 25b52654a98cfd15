"""Colour sequences that may break a text: every one that does is found, and one elsewhere is not."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blockpty.search.breaks import Breaks

SEQUENCE = re.compile(rb"(?:\x1b\[[0-9;]*[mkK])+")


@given(
    st.text("ab", min_size=2, max_size=5),
    st.lists(st.sampled_from(["a", "b", "c", "\n", "\x1b[m", "\x1b[01;31m", "\x1b[k", "\x1b[K"]), max_size=40),
)
def test_no_sequence_that_breaks_the_text_is_missed(text: str, parts: list[str]) -> None:
    data = ("\n" + "".join(parts) + "\n").encode()
    places = Breaks(text.encode()).places(data)
    assert places == sorted(places)
    for found in SEQUENCE.finditer(data):
        before = SEQUENCE.sub(b"", data[: found.start()])
        behind = SEQUENCE.sub(b"", data[found.end() :])
        around = range(1, len(text))
        if any(before.endswith(text[:at].encode()) and behind.startswith(text[at:].encode()) for at in around):
            assert found.start() in places


@pytest.mark.parametrize(
    ("data", "places"),
    [
        (b"\nxab\x1b[31mcdx\n", [4]),
        (b"\nxa\x1b[31mbcd\n", [3]),
        (b"\nabc\x1b[31mdx\n", [4]),
        (b"\nxxx\x1b[31mcdx\n", []),
        (b"\nxab\x1b[31mxxx\n", []),
        (b"\nabcd\x1b[0m\n", []),
        (b"\nabcd\n", []),
        (b"\nxab\x1b[31", []),
    ],
)
def test_a_sequence_is_found_within_the_text_and_passed_over_elsewhere(data: bytes, places: list[int]) -> None:
    assert Breaks(b"abcd").places(data) == places
