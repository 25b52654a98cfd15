"""Progress on stderr: nothing for what is soon over, one line that goes away, and no failure of its own."""

from __future__ import annotations

import asyncio
import io

import pytest

from blockpty.surfaces.cli import progress
from blockpty.surfaces.cli.progress import shown_progress
from tests.support.async_tests import async_test


class Terminal(io.StringIO):
    """What is written, and an event when the first of it was; `gone`: every write fails."""

    def __init__(self, *, gone: bool = False) -> None:
        super().__init__()
        self._gone = gone
        self.written = asyncio.Event()

    def write(self, text: str) -> int:
        self.written.set()
        if self._gone:
            raise OSError("gone")
        return super().write(text)


@async_test
async def test_what_is_soon_over_shows_nothing() -> None:
    err = io.StringIO()
    async with shown_progress(err, "verify"):
        await asyncio.sleep(0)
    assert err.getvalue() == ""


@async_test
async def test_the_line_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "BEGIN_SECONDS", 0)
    err = Terminal()
    async with shown_progress(err, "verify"):
        await err.written.wait()
    shown = err.getvalue().split("\r")
    assert shown[1] == "verify ... 0 s"
    # Over it as many blanks, and the cursor where it was.
    assert shown[-2:] == [" " * len("verify ... 0 s"), ""]
    assert "\x1b" not in err.getvalue()


@async_test
async def test_a_terminal_that_has_gone_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "BEGIN_SECONDS", 0)
    err = Terminal(gone=True)
    async with shown_progress(err, "verify"):
        await err.written.wait()


@async_test
async def test_an_error_of_the_call_passes() -> None:
    with pytest.raises(KeyError):
        async with shown_progress(io.StringIO(), "verify"):
            raise KeyError
