"""blockpty watch: the program of `view` for one conversation, with its screen alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from blockpty.surfaces.cli import view
from blockpty.surfaces.cli.main import main

if TYPE_CHECKING:
    import pytest


def test_it_shows_the_screen_of_one_conversation(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[Any, ...]] = []

    def show(invocation: Any, command: str, conversation_id: str, *, only_screen: bool) -> int:
        shown.append((invocation.directory(), command, conversation_id, only_screen))
        return 3

    monkeypatch.setattr(view, "show", show)
    assert main(["watch", "c1"]) == 3
    assert shown == [(home, "watch", "c1", True)]
    assert main(["watch"]) == 2


def test_it_needs_a_terminal(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["watch", "c1"]) == 2
    assert "watch needs a terminal; without one, use `screen`" in capsys.readouterr().err
