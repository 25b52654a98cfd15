"""Events: their line there and back."""

from __future__ import annotations

from blockpty.model.events import ENVELOPE, Event


def test_there_and_back() -> None:
    event = Event(3, 1000, 42, "prompt", {"exit_status": 0, "cwd": "/"})
    line = event.to_dict("c1")
    assert list(line) == ["seq", "ts", "cursor", "type", "conversation_id", "exit_status", "cwd"]
    assert set(line) - {"exit_status", "cwd"} == ENVELOPE
    assert Event.from_dict(line) == event
