"""Screen matching: which condition a screen fulfils, and when a tick is due."""

from __future__ import annotations

import pytest

from blockpty.engine.matchers import PatternTimeout
from blockpty.engine.screen_matcher import SCREEN_MATCH_MS, ScreenMatch, ScreenMatcher
from blockpty.model.conditions import Changed, Prompt, Screen, Text


def test_conditions_about_the_stream_are_none_of_its() -> None:
    assert not ScreenMatcher([Text("x"), Prompt()])
    assert ScreenMatcher([Text("x"), Screen("x")])


def test_the_first_condition_that_holds() -> None:
    matcher = ScreenMatcher([Text("b"), Screen(r"^(?P<letter>b)(c)?$"), Screen("a")])
    assert matcher.find("a\nb", "", 1.0) == ScreenMatch(1, "b", {"1": "b", "2": None, "letter": "b"})
    assert matcher.find("a", "", 1.0) == ScreenMatch(2, "a", None)
    assert matcher.find("x", "", 1.0) is None


@pytest.mark.parametrize(
    ("wanted", "shown", "differs"),
    [
        ("11-22-33", "11-22-33", False), ("11-22-33", "11-22-34", True), ("11", "11-22-33", False),
        ("12", "11-22-33", True), ("--33", "99-98-33", False), ("-22", "11-23-33", True),
    ],
)  # fmt: skip
def test_only_the_hashes_that_are_given_are_compared(wanted: str, shown: str, differs: bool) -> None:
    found = ScreenMatcher([Changed(wanted)]).find("text", shown, 1.0)
    assert found == (ScreenMatch(0, "", None) if differs else None)


def test_ticks_are_due_by_their_own_time() -> None:
    matcher = ScreenMatcher([Screen("x")])
    matcher.looked(1000)
    assert not matcher.due(1000 + SCREEN_MATCH_MS - 1)
    assert matcher.due(1000 + SCREEN_MATCH_MS)


def test_a_pattern_that_takes_too_long() -> None:
    matcher = ScreenMatcher([Screen(r"(a+)+b\1c")])
    with pytest.raises(PatternTimeout):
        matcher.find("a" * 40, "", 1e-6)
