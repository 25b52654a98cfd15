"""When an answer to a question counts."""

from __future__ import annotations

from blockpty.surfaces.view.approvals import DEAD_MS, ShownQuestion
from tests.support.pilots import Clock


def question(digest: str) -> dict[str, str]:
    return {"conversation_id": "c1", "approval_id": "a1", "digest": digest}


def test_no_key_answers_in_the_first_moment() -> None:
    clock = Clock()
    shown = ShownQuestion(clock)
    assert shown.answered() is None
    assert shown.show(question("1"))
    clock.ms = DEAD_MS - 1
    assert shown.answered() is None
    # That key was too early, so it counts from there.
    clock.ms = DEAD_MS + 1
    assert shown.answered() is None
    clock.ms += DEAD_MS
    assert shown.answered() == question("1")


def test_a_key_that_is_held_down_never_answers() -> None:
    clock = Clock()
    shown = ShownQuestion(clock)
    shown.show(question("1"))
    for _ in range(100):
        clock.ms += 33
        assert shown.answered() is None


def test_another_question_in_its_place_begins_again() -> None:
    clock = Clock()
    shown = ShownQuestion(clock)
    shown.show(question("1"))
    clock.ms = DEAD_MS
    assert not shown.show(question("1"))
    assert shown.answered() == question("1")
    assert shown.show(question("2"))
    assert shown.answered() is None
    clock.ms += DEAD_MS
    assert shown.answered() == question("2")
    shown.show(None)
    clock.ms += DEAD_MS
    assert shown.answered() is None
