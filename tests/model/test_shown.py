"""What a prompt and a notebook show: short, and nothing that a page would run."""

from __future__ import annotations

from blockpty.model.results import RunResult
from blockpty.model.shown import framed, preformatted, shortened
from tests.support.blocks import EVIL, block


def test_a_long_value_has_no_end() -> None:
    assert shortened("a" * 200, 10) == "'aaaaaa..." and shortened("a") == "'a'"


def test_markup_in_a_text_is_text() -> None:
    for shown in (preformatted(EVIL, summary=EVIL), framed(EVIL, 24)):
        assert "<script" not in shown and "onload=\"" not in shown and "&lt;script&gt;" in shown
    assert framed("", 1).startswith("<iframe sandbox srcdoc=")


def test_blocks_and_runs_are_short() -> None:
    assert repr(block(cmd="make test")) == "<ListedBlock b7 'make test' ended 2>"
    assert repr(block(cmd="make", state="running", exit_status=None)) == "<ListedBlock b7 'make' running>"
    run = RunResult(block(cmd="make"), "x" * 9000, 9000, False, False, "prompt", 5)
    assert repr(run).startswith("<RunResult 'make' exit_status=2 output='xxx") and len(repr(run)) < 500
    assert not run.ok and RunResult(block(exit_status=0), "", 0, False, False, "prompt", 5).ok
    timed_out = RunResult(block(exit_status=None), "", 0, False, True, "timeout", 5)
    assert "timed out" in repr(timed_out) and not timed_out.ok


def test_a_notebook_shows_blocks_and_runs_escaped() -> None:
    one = block()
    run = RunResult(one, EVIL, 1, False, False, "prompt", 5)
    for shown in (one, run):
        html = shown._repr_html_()
        assert "<script" not in html and "&lt;script&gt;" in html
    assert "b7 ended, exit status 2, 1.2 s" in run._repr_html_()
