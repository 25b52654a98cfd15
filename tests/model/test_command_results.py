"""The result of a command as a program, a person and a notebook see it."""

from __future__ import annotations

import pytest

from blockpty.model.block import Block
from blockpty.model.command_results import RunResult
from tests.support.blocks import BLOCK


def result(status: int | None, *, timed_out: bool = False, output: str = "oh\n") -> RunResult:
    state = "running" if timed_out else "ended"
    block = Block.from_dict({**BLOCK.to_dict(), "cmd": "make <b>", "exit_status": status, "state": state})
    return RunResult(block, output, len(output), False, timed_out, "timeout" if timed_out else "prompt", 9)


@pytest.mark.parametrize(("status", "ok"), [(0, True), (2, False), (None, False)])
def test_how_it_ended(status: int | None, ok: bool) -> None:
    found = result(status)
    assert (found.exit_status, found.ok) == (status, ok)
    assert RunResult.from_dict(found.to_dict()) == found


def test_it_is_short_at_a_prompt() -> None:
    assert repr(result(2)) == "<RunResult 'make <b>' exit_status=2 output='oh\\n'>"
    assert "timed out" in repr(result(None, timed_out=True))
    assert len(repr(result(0, output="x" * 10_000))) < 600


def test_no_markup_of_a_program_reaches_a_notebook() -> None:
    shown = result(0, output="<script>alert(1)</script>")._repr_html_()
    assert "<script" not in shown and "make &lt;b&gt;" in shown and "&lt;script&gt;" in shown
