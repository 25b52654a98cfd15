"""The screen of received bytes: the engine's, wherever it is joined and however the bytes are cut."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st
from textual.app import App, ComposeResult
from textual.widget import Widget

from blockpty.screen.emulator import Emulator
from blockpty.screen.lazy import LazyScreen
from blockpty.surfaces.view.terminal import STEP, ReceivedScreen, TerminalView
from blockpty.surfaces.view.theme import DARK, LIGHT
from tests.support.async_tests import async_test

PIECES = st.lists(
    st.sampled_from(
        [b"\x1b[31m", b"\x1b[2;5H", b"\x1b[?1049h", b"\x1b[K", b"\r\n", b"abc", "漢".encode(), b"\x1b[", b"3"]
    ),
    max_size=30,
)  # fmt: skip


@given(PIECES, st.data())
def test_a_join_and_the_bytes_after_it_are_the_whole(pieces: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(pieces)
    at = data.draw(st.integers(0, len(stream)))
    whole = Emulator(20, 6)
    whole.feed(stream)
    joined = LazyScreen(lambda begin, end: stream[begin:end], 20, 6)
    joined.advance(at)
    received = ReceivedScreen(20, 6, joined.redraw(), at)
    while at < len(stream):
        end = data.draw(st.integers(at + 1, len(stream)))
        received.feed(stream[at:end])
        if data.draw(st.booleans()):
            assert received.draw() == end
        at = end
    received.draw()
    shown, wanted = received.snapshot().frame, whole.frame()
    assert [line.text for line in shown.lines] == [line.text for line in wanted.lines]
    assert (shown.cursor, shown.alt, shown.pen) == (wanted.cursor, wanted.alt, wanted.pen)


def test_much_output_is_drawn_in_steps_and_then_forgotten() -> None:
    received = ReceivedScreen(20, 6, b"", 100)
    received.feed(b"0123456789\r\n" * STEP)
    assert received.draw() == 100 + STEP
    while received.behind:
        received.draw()
    assert received.cursor == 100 + 12 * STEP and len(received._kept) == 0
    assert received.snapshot().frame.lines[0].text == "0123456789"


def test_sizes_and_another_shell_stand_in_their_place() -> None:
    received = ReceivedScreen(20, 6, b"before", 0)
    received.feed(b"\x1b[31mred")
    received.resize(10, 4)
    received.feed(b"\r\nx")
    received.restart(b"\x1bc")
    frame = received.snapshot().frame
    assert (frame.cols, frame.rows, frame.lines[0].text) == (10, 4, "")


@async_test
async def test_the_first_bytes_are_drawn_at_once_and_those_after_them_when_it_has_rested() -> None:
    acknowledged: list[int] = []

    async def acknowledge(cursor: int) -> None:
        acknowledged.append(cursor)

    class Host(App[None]):
        def compose(self) -> ComposeResult:
            yield TerminalView(acknowledge)

    rests: list[Callable[[], None]] = []
    program = Host()
    async with program.run_test() as pilot:
        view = program.query_one(TerminalView)
        view.set_timer = lambda _, rested: rests.append(rested)  # type: ignore[method-assign]

        async def first_row(expected: str, *, resting: int) -> bool:
            # No rest ends by itself here, so what is drawn is drawn without one; when, a busy machine decides.
            for _ in range(1000):
                await pilot.pause()
                if (view.render_line(1).text.rstrip(), len(rests)) == (expected, resting):
                    return True
                await asyncio.sleep(0.01)
            return False

        view.take({"type": "screen", "cols": 20, "rows": 6, "data": "join", "cursor": 7})
        assert await first_row("join", resting=1)
        view.take(b"ed, an")
        view.take(b"d more")
        assert await first_row("join", resting=1)
        rests.pop()()
        assert await first_row("joined, and more", resting=1) and acknowledged == [7, 19]
        rests.pop()()
        assert await first_row("joined, and more", resting=0), "nothing came while it rested"
        view.take(b"!")
        assert await first_row("joined, and more!", resting=1)


@async_test
async def test_a_row_that_was_kept_is_drawn_as_it_would_be_anew() -> None:
    async def acknowledge(cursor: int) -> None: ...

    class Host(App[None]):
        CSS = """
        TerminalView { border-left: solid red; padding: 0 1; }
        TerminalView.typing { border-left: thick blue; }
        """

        def compose(self) -> ComposeResult:
            yield TerminalView(acknowledge)

    chance, program, kept = random.Random(23), Host(), 0
    async with program.run_test(size=(40, 8)) as pilot:
        view = program.query_one(TerminalView)
        view.take({"type": "screen", "cols": 30, "rows": 12, "data": "", "cursor": 0})
        for number in range(120):
            kind = chance.randrange(12)
            if kind < 7:
                view.take(b"\r\n\x1b[3%dmline %d" % (number % 8, number))
            elif kind == 7:
                view.take(
                    chance.choice((b"\x1b[?25l", b"\x1b[?25h", b"\x1b[?5h", b"\x1b[?5l", b"\x1b[2J", b"\x1b[3;20H"))
                )
            elif kind == 8:
                view.set_class(chance.random() < 0.5, "typing")
            elif kind == 9:
                view.recolour(chance.choice((DARK, LIGHT)))
            elif kind == 10:
                await pilot.resize_terminal(chance.choice((20, 40, 50)), chance.choice((5, 8, 20)))
            else:
                view.take({"type": "resize", "cols": chance.choice((15, 30)), "rows": 12})
            await pilot.pause()
            await view.draw()
            whole = view.outer_size.region
            part = whole.shrink((0, 3, 0, 2)) if chance.random() < 0.2 else whole
            kept += len(view._rows)
            shown = view.render_lines(part)
            view.refresh()
            assert Widget.render_lines(view, part) == shown, number
            view._rows = {}
            await pilot.pause()
    assert kept > 100
