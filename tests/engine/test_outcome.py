"""How a source that is elsewhere has ended, and which marks of a pane's pictures are accepted."""

from __future__ import annotations

from typing import Any

import pytest

from blockpty.engine.marks import parse_mark
from blockpty.engine.outcome import lacks_hooks, outcome_of, seam_of, source_of

NONCE = "n0nce_of_the_fixture_1"
LOST = {"status": None, "signal": None, "reason": "connection_lost"}


def source(kind: str) -> dict[str, Any]:
    fields = {"nonce": NONCE, "source": {"kind": kind, "target": "x", "command": f"{kind} x", "author": "agent"}}
    found = source_of(fields)
    assert found is not None and found["nonce"] == NONCE
    return found


@pytest.mark.parametrize(
    ("kind", "status", "signal", "ending", "outcome"),
    [
        ("exec", 255, None, False, {"status": 255, "signal": None}),
        ("exec", None, "SIGKILL", False, {"status": None, "signal": "SIGKILL"}),
        ("ssh", 7, None, False, {"status": 7, "signal": None}),
        ("ssh", 255, None, False, LOST),
        ("ssh", None, "SIGKILL", False, LOST),
        ("ssh", 255, None, True, {"status": 255, "signal": None}),
        ("ssh", None, None, False, {"status": None, "signal": None}),
        ("tmux", 0, None, False, {"status": None, "signal": None}),
        ("tmux", 255, None, False, LOST),
        ("container", 1, None, False, {"status": 1, "signal": None}),
    ],
)
def test_what_an_exit_says(kind: str, status: int | None, signal: str | None, ending: bool, outcome: Any) -> None:
    assert outcome_of(source(kind), {"status": status, "signal": signal}, pane=kind == "tmux", ending=ending) == outcome


@pytest.mark.parametrize("fields", [{}, {"source": None}, {"source": "ssh"}, {"source": {"kind": 7}}])
def test_what_names_no_source(fields: dict[str, Any]) -> None:
    assert source_of(fields) is None


def test_only_a_program_is_exact_without_hooks() -> None:
    assert lacks_hooks(source("exec")) is None
    assert all((lacks_hooks(source(kind)) or "").startswith("no_hooks: ") for kind in ("ssh", "tmux", "container"))


def seam(number: int, reason: str, nonce: str = NONCE) -> Any:
    mark = parse_mark(f"__SEAM__;n={nonce};i=7;s={number};c=0;r={reason};w=90;h=30".encode())
    assert mark is not None
    return mark


def test_a_seam_has_the_nonce_of_its_pane_and_the_next_number() -> None:
    pane = source("tmux")
    first = seam_of(pane, None, seam(1, "attached"))
    assert first == {"number": 1, "reason": "attached", "cols": 90, "rows": 30, "drawn": False}
    assert isinstance(first, dict)
    drawn = seam_of(pane, first, seam(2, "drawn"))
    assert drawn == {**first, "number": 2, "drawn": True}
    assert seam_of(pane, first, seam(1, "paused")) == "sequence"
    assert seam_of(pane, first, seam(3, "paused")) == "sequence"
    assert seam_of(pane, first, seam(2, "paused", "x" * 22)) == "nonce"
    assert seam_of(source("exec"), None, seam(1, "attached")) == seam_of(None, None, seam(1, "attached")) == "nonce"
    assert seam_of({**source("ssh"), "nonce": "n" * 22}, None, seam(1, "attached", "n" * 22)) == first
    assert seam_of({**pane, "nonce": ""}, None, seam(1, "attached")) == "nonce"
    unknown = seam_of(pane, first, seam(2, "nonsense"))
    assert isinstance(unknown, dict) and unknown["reason"] == "attached"
