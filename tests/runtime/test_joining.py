"""A join point and the bytes behind it give what the whole stream gives."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path

import pytest

import blockpty
from blockpty.runtime.watching import Joined, Restarted, SizeChange, TerminalWatch
from blockpty.screen import Emulator
from tests.support.async_tests import async_test
from tests.support.emulators import TOP, shown

pytestmark = pytest.mark.needs("bash")

STREAMS = sorted((TOP / "tests" / "streams").glob("*/stream/*"), key=lambda path: path.stat().st_size)[-6:]


async def drawn(watch: TerminalWatch, end: int) -> Emulator:
    """Return what a client that watches up to a cursor has drawn."""
    emulator = Emulator(80, 24)
    items = watch.items()
    try:
        async for seen in items:
            if isinstance(seen, Joined):
                emulator = Emulator(seen.point.cols, seen.point.rows)
                emulator.feed(seen.point.data.encode())
                at = seen.point.cursor
            elif isinstance(seen, SizeChange):
                emulator.resize(seen.cols, seen.rows)
                at = seen.cursor
            elif isinstance(seen, Restarted):
                emulator.feed(seen.data)
                at = seen.cursor
            else:
                emulator.feed(seen.data)
                at = seen.cursor + len(seen.data)
            if at >= end:
                break
    finally:
        await items.aclose()  # type: ignore[attr-defined]
    return emulator


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.parent.parent.name)
@async_test
async def test_a_join_point_and_the_tail_are_the_whole_stream(home: Path, path: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        live = conversation.live
        half = path.stat().st_size // 2
        for command in (f"head -c {half}", f"tail -c +{half + 1}"):
            await conversation.run(f"{command} {shlex.quote(str(path))}; echo")
            point = await live.joining.point(100, live.state.classified)
            late = TerminalWatch(live, joins=True, scrollback=100)
            await conversation.run("printf 'on \\303'; printf '\\244 and\\e['; echo 1m on")
            whole = await drawn(TerminalWatch(live, 0), live.state.classified)
            rest = TerminalWatch(live, point.cursor)
            again = Emulator(point.cols, point.rows)
            again.feed(point.data.encode())
            async for seen in rest.items():
                if isinstance(seen, SizeChange):
                    assert (seen.cols, seen.rows) == (point.cols, point.rows)
                else:
                    again.feed(seen.data)  # type: ignore[union-attr]
                if again.undecoded == b"" and seen.cursor + len(getattr(seen, "data", b"")) >= live.state.classified:
                    break
            assert shown(again) == shown(whole)
            assert shown(await drawn(late, live.state.classified)) == shown(whole)
        await conversation.close()


@async_test
async def test_the_rows_above_are_as_many_as_were_asked_for(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.run("seq 3000")
        joining = conversation.live.joining
        place = None
        while place != conversation.live.reader.position:
            # A silence that is recorded meanwhile makes other points.
            place = conversation.live.reader.position
            points = [await joining.point(rows, conversation.cursor) for rows in (0, 10, 1000)]
            again = await joining.point(10, points[1].cursor)
        assert again is points[1]
        counts = []
        for point in points:
            emulator = Emulator(point.cols, point.rows, 5000)
            emulator.feed(point.data.encode())
            counts.append(len(emulator.history))
        assert counts == [0, 10, 1000]
        # Who has gone leaves nothing that is half done.
        await conversation.run("seq 200000")
        asked = asyncio.ensure_future(joining.point(10, conversation.cursor))
        await asyncio.sleep(0)
        asked.cancel()
        await asyncio.wait((asked,))
        last = await joining.point(10, conversation.cursor)
        assert "199999\r\n200000" in last.data
        await conversation.close()
