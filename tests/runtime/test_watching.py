"""Watching a terminal: sizes in their place, and never more than a window beyond what was acknowledged."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import blockpty
from blockpty.errors import BadCursor, BadRequest
from blockpty.runtime.stream_pieces import StreamPiece
from blockpty.runtime.watching import FlowWindow, Joined, Restarted, SizeChange, TerminalWatch
from blockpty.screen.emulator import Emulator
from tests.support.async_tests import async_test

pytestmark = pytest.mark.needs("bash")


@async_test
async def test_sizes_and_shells_of_a_record(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash", cols=90, rows=30)
        # Not where the record ends: the prompt may be in it already, and then the new size is the one at its end.
        middle = (await conversation.run("echo one")).block.span[0]
        await conversation.resize(100, 40)
        await conversation.run("echo two")
        await conversation.reset()
        await conversation.run("echo three")
        end = conversation.live.state.classified
        seen = []
        items = TerminalWatch(conversation.live, middle).items()
        async for one in items:
            seen.append(one)
            if isinstance(one, StreamPiece) and one.cursor + len(one.data) >= end:
                break
        await items.aclose()  # type: ignore[attr-defined]
        sizes = [(one.cols, one.rows, one.fresh) for one in seen if isinstance(one, SizeChange)]
        assert sizes == [(90, 30, False), (100, 40, False), (90, 30, True)]
        restarts = [number for number, one in enumerate(seen) if isinstance(one, Restarted)]
        assert len(restarts) == 1 and isinstance(seen[restarts[0] + 1], SizeChange)
        at = middle
        for one in seen:
            assert one.cursor == at  # type: ignore[union-attr]
            at += len(one.data) if isinstance(one, StreamPiece) else 0
        with pytest.raises(BadCursor):
            await anext(TerminalWatch(conversation.live, end + 10**6).items())
        await conversation.close()


@async_test
async def test_a_window_is_kept(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.run("seq 100000")
        end = conversation.live.state.classified
        watch = TerminalWatch(conversation.live, 0, window=FlowWindow(10_000, 10**9))
        items = watch.items()
        at = acknowledged = 0
        async for one in items:
            if isinstance(one, StreamPiece):
                at = one.cursor + len(one.data)
                assert at - acknowledged <= 10_000
                if at - acknowledged > 7_000:
                    acknowledged = at - 100
                    watch.acknowledge(acknowledged)
                    watch.acknowledge(1)
                with pytest.raises(BadRequest):
                    watch.acknowledge(at + 1)
            if at >= end:
                break
        assert at == end
        await items.aclose()  # type: ignore[attr-defined]
        await conversation.close()


@async_test
async def test_who_lags_gets_screens_with_rests_until_it_has_caught_up(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash", cols=80, rows=24)
        live = conversation.live
        flood = asyncio.ensure_future(conversation.run("seq 1 600000", max_bytes=100, timeout_ms=60_000))
        watch = TerminalWatch(live, joins=True, scrollback=50, window=FlowWindow(16_384, 65_536))
        items, drawn, sent, joined = watch.items(), Emulator(80, 24), 0, []
        at = -1
        while not flood.done() or at < live.state.classified or (len(joined) > 1 and not joined[-1]):
            one = await anext(items)
            if isinstance(one, Joined):
                at, drawn = one.point.cursor, Emulator(one.point.cols, one.point.rows)
                drawn.feed(one.point.data.encode())
                joined.append(len(drawn.history))
            elif isinstance(one, StreamPiece):
                at, sent = one.cursor + len(one.data), sent + len(one.data)
                drawn.feed(one.data)
            watch.acknowledge(at)
        assert len(joined) > 1 and sent < flood.result().cursor / 2
        # The rows above the screen come when all has been caught up, and not before.
        assert joined[1:] == [0] * (len(joined) - 2) + [50]
        shown = await conversation.screen(format="text")
        assert [line.text.rstrip() for line in drawn.frame().lines] == [
            row.rstrip() for row in (shown.content.split("\n") + [""] * 24)[:24]
        ]
        await items.aclose()  # type: ignore[attr-defined]
        await conversation.close()


@pytest.mark.parametrize("prints", [True, False])
@async_test
async def test_who_lags_gets_the_next_screen_after_a_rest(home: Path, prints: bool) -> None:
    """Which ends early where nothing is printed for a twentieth of a second."""
    now = 100.0
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.run("seq 100000", max_bytes=100)
        await conversation.wait_for({"idle_ms": 200})

        async def rest(seconds: float) -> None:
            nonlocal now
            now += seconds
            if prints:
                await conversation.run("echo more")

        watch = TerminalWatch(conversation.live, 0, window=FlowWindow(16_384, 65_536), clock=lambda: now, sleep=rest)
        items, joined = watch.items(), []
        async for one in items:
            if isinstance(one, Joined):
                joined.append(now)
                watch.acknowledge(one.point.cursor)
                if len(joined) == 2:
                    break
        assert joined == pytest.approx([100.0, 100.2 if prints else 100.05])
        await items.aclose()  # type: ignore[attr-defined]
        await conversation.close()


@async_test
async def test_who_does_not_acknowledge_its_screen_gets_bytes_all_the_same(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.run("seq 100000", max_bytes=100)
        live = conversation.live
        items = TerminalWatch(live, 0, window=FlowWindow(16_384, 65_536)).items()
        while isinstance(joined := await anext(items), SizeChange):
            pass
        assert isinstance(joined, Joined) and joined.point.cursor == live.state.classified
        await conversation.run("seq 100000", max_bytes=100)
        piece = await anext(items)
        assert isinstance(piece, StreamPiece) and piece.cursor == joined.point.cursor and 0 < len(piece.data) <= 16_384
        await items.aclose()  # type: ignore[attr-defined]
        await conversation.close()


@async_test
async def test_who_wraps_lines_in_another_way_has_the_screen_after_a_size(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash", cols=80, rows=24)
        await conversation.run("printf '%0200d\\n' 1 2 3")
        live = conversation.live
        items = TerminalWatch(live, joins=True, redraws=True).items()
        assert isinstance(await anext(items), Joined)
        await conversation.resize(60, 10)
        await conversation.resize(33, 12)
        await conversation.run("echo more")
        end, at, seen = live.state.classified, -1, []
        while at < end or not isinstance(seen[-1], Joined):
            seen.append(one := await anext(items))
            at = one.cursor + len(one.data) if isinstance(one, StreamPiece) else getattr(one, "point", one).cursor
        sizes = [(one.cols, one.rows) for one in seen if isinstance(one, SizeChange)]
        # The second one may be in the screen that follows the first.
        assert sizes in ([(60, 10)], [(60, 10), (33, 12)])
        point = seen[-1].point
        drawn = Emulator(point.cols, point.rows)
        drawn.feed(point.data.encode() + live.redactor.read(live.drawn, point.cursor, end - point.cursor))
        shown = await conversation.screen(format="text")
        assert (point.cols, point.rows) == (33, 12)
        assert [line.text.rstrip() for line in drawn.frame().lines] == [
            row.rstrip() for row in (shown.content.split("\n") + [""] * 12)[:12]
        ]
        await items.aclose()  # type: ignore[attr-defined]
        await conversation.close()
