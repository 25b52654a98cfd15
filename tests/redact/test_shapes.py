"""Shapes of secrets: what is one and what only looks like one, and that no two fragments can overlap."""

from __future__ import annotations

import itertools

import pytest

from blockpty.redact.redaction import redact_text
from blockpty.redact.shapes import FOLLOWING, FRAGMENTS, NAMED
from tests.support.secret_shapes import HARMLESS


def test_no_fragment_can_overlap_another() -> None:
    assert {shape.word for shape in NAMED} | {word for shape in FOLLOWING for word in shape.words} == set(FRAGMENTS)
    fragments = [*FRAGMENTS.values(), b"login"]
    for word, fragment in FRAGMENTS.items():
        assert fragment in word
    for first, second in itertools.product(fragments, repeat=2):
        assert first is second or first not in second
        assert not [size for size in range(1, min(len(first), len(second))) if first.endswith(second[:size])]


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact_text(text + "\n") == text + "\n"


@pytest.mark.parametrize(
    ("before", "hidden"),
    [
        # Behind the letter of an escape it begins a word; behind any other letter it is the middle of one.
        ('{"said": "one\\n', True), ("a\\t", True), ("%0A", True), (" ", True), ("_", True),
        ("h", False), ("\\x", False), ("7", False),
    ],
)  # fmt: skip
def test_what_may_stand_before_a_token(before: str, hidden: bool) -> None:
    token = "ghp_" + "4fK9" * 9
    shown = redact_text(f'{before}{token}"\n')
    assert (token not in shown) is hidden
    assert not hidden or f"{before}ghp_***" in shown
