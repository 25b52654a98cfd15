"""A screen as a prompt and a notebook show it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from blockpty.model.screen_results import ScreenResult
from tests.support.operations import RESULTS

EVIL = "<script>alert('x')</script>\" onload=\"f()"


@pytest.fixture
def screen() -> ScreenResult:
    found = RESULTS["screen"]
    assert isinstance(found, ScreenResult)
    return replace(found, cols=80, rows=24, format="text", content="$ ls  \na b   \n\n\n")


def test_a_prompt_shows_what_is_on_it(screen: ScreenResult) -> None:
    assert repr(screen) == "<ScreenResult 80x24 text>\n$ ls\na b"


@pytest.mark.parametrize("kind", ["text", "html", "svg"])
def test_a_notebook_shows_it_escaped(screen: ScreenResult, kind: str) -> None:
    html = replace(screen, content=EVIL, title=EVIL, format=kind)._repr_html_()
    assert "<script" not in html and "&lt;script&gt;" in html
    assert ("80x24 &lt;script&gt;" in html) is (kind != "html")
