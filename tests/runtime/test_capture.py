"""Captures: what happened between two calls, also over a restart."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

import blockpty
from blockpty.errors import NotFound
from tests.support.async_tests import async_test
from tests.support.exports import lines_of, output_of


@pytest.mark.needs("bash")
@async_test
async def test_a_capture_holds_what_happened_meanwhile_also_over_a_restart(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash", persist=True)
        with pytest.raises(NotFound, match="capture"):
            await conversation.stop_capture()
        await conversation.run("echo before")
        begun = await conversation.start_capture()
        assert (begun.bytes_captured, begun.cursor) == (0, conversation.cursor)
        assert not Path(begun.capture_file).exists()
    async with blockpty.Engine(home) as engine:
        conversation = await engine.conversation("c1")
        await conversation.run("echo meanwhile")
        again = await conversation.start_capture()
        assert again.capture_file == begun.capture_file and again.bytes_captured > 0
        done = await conversation.stop_capture()
        await conversation.run("echo after")
        assert (await conversation.stop_capture()).bytes_captured == done.bytes_captured
        path = Path(done.capture_file)
        assert done.capture_file == begun.capture_file and path.parent == home / "exports"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        header, screen, *events = lines_of(path.read_text("utf-8"))
        assert header["version"] == 2 and screen[0] == 0 and "before" in screen[2]
        assert [event[2] for event in events if event[1] == "m"] == ["echo meanwhile"]
        assert "meanwhile" in output_of(events) and "after" not in output_of(events)
        assert events[-1][0] <= done.duration_seconds
        assert done.bytes_captured == (done.cursor - begun.cursor)
        assert (await conversation.start_capture()).capture_file != begun.capture_file
        assert [one.name for one in path.parent.iterdir()] == [path.name]
        assert (await conversation.verify()).clean
        await conversation.close()
