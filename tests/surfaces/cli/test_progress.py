"""Progress on stderr: nothing for what is soon over, one line that goes away, and no failure of its own."""

from __future__ import annotations

import asyncio
import io
import re
from pathlib import Path

import pytest

import blockpty
from blockpty.api.progress import Progress
from blockpty.surfaces.cli import progress
from blockpty.surfaces.cli.progress import shown_progress, stopped
from tests.support.async_tests import async_test
from tests.support.cli_terminal import start
from tests.support.http_client import serving
from tests.support.slow_verify import slow_verify


class Terminal(io.StringIO):
    """What is written, and an event when the first of it was; `gone`: every write fails."""

    def __init__(self, *, gone: bool = False, terminal: bool = True) -> None:
        super().__init__()
        self._terminal = terminal
        self._gone = gone
        self.written = asyncio.Event()

    def isatty(self) -> bool:
        return self._terminal

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


@async_test
async def test_percent_and_rate_are_shown_where_they_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "BEGIN_SECONDS", 0)
    err, said = Terminal(), Progress()
    said.begin("import", 3_000_000)
    said.reach(1_500_000)
    async with shown_progress(err, "import_recording", said, passed_seconds=1.0):
        await err.written.wait()
    assert re.match(r"\rimport \.\.\. 50 %, 1\.5 MB of 3\.0 MB, \d+\.?\d* [kMG]?B/s\r", err.getvalue())


@async_test
async def test_in_a_file_each_step_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "BEGIN_SECONDS", 0)
    err = Terminal(terminal=False)
    async with shown_progress(err, "verify"):
        await err.written.wait()
    assert err.getvalue() == "verify ... 0 s\n"


def test_what_was_interrupted_says_what_was_done() -> None:
    said = Progress()
    assert stopped("verify", None) == "verify was interrupted; nothing was changed"
    said.begin("export", 2000)
    said.reach(2000)
    assert stopped("export", said) == "export was interrupted at 99 %, 2 kB of 2 kB; no file is left of it"
    assert stopped("status", said) == ""


@pytest.mark.needs("bash")
@async_test
async def test_ctrl_c_says_how_far_it_was(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def watch() -> tuple[int | None, str]:
        with start("--home", str(home), "verify", "c1", columns=200) as terminal:
            terminal.expect(r"verify \.\.\. 62 %, 5 B of 8 B, \d+ B/s")
            terminal.sendintr()
            shown = terminal.read()
        return terminal.exitstatus, shown.decode()

    async with serving(home), blockpty.Client(home) as client:
        conversation = await client.open("c1", shell="bash")
        with slow_verify(monkeypatch):
            status, shown = await asyncio.to_thread(watch)
        assert status == 130
        assert "verify was interrupted at 62 %, 5 B of 8 B; nothing was changed" in shown
        await conversation.close()
