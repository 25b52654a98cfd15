"""Reading a span, by cursor and by line: what is rendered with colours, what is refused, and what is redacted."""

from __future__ import annotations

import asyncio
import os
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import blockpty
from blockpty.errors import BadCursor, BadRequest
from blockpty.model.events import Event
from blockpty.runtime import reading
from tests.support.async_tests import async_test
from tests.support.counting import ReadBytes, turns_beside

pytestmark = pytest.mark.needs("bash")

SGR = re.compile(r"\x1b\[[0-9;:]*m")
SECRET = "correct-h0rse-battery"


@async_test
async def test_lines_with_colours(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        command = r"printf '\033[31mred\033[0m plain\n50%%\r100%%\n\033[1mbold\033[0m\n'"
        name = (await conversation.run(command)).block.block_id
        found = await conversation.read(block_id=name, view="rendered", style="sgr")
        assert found.data == "\x1b[0;31mred\x1b[0m plain\n100%\n\x1b[0;1mbold\x1b[0m\n" and found.eof
        assert SGR.sub("", found.data) == (await conversation.read(block_id=name, view="rendered")).data
        for from_line, expected in ((0, found.data), (1, "100%\n\x1b[0;1mbold\x1b[0m\n"), (3, ""), (2**53, "")):
            part = await conversation.read(block_id=name, view="rendered", style="sgr", from_line=from_line)
            assert (part.data, part.eof, part.next_line, part.cursor) == (expected, True, None, found.cursor)
        assert (await conversation.read(block_id=name, view="rendered", from_line=1)).data == "100%\nbold\n"
        await conversation.close()


@async_test
async def test_lines_in_pieces_are_the_whole(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        command = r"for i in $(seq 900); do printf '\033[%dmline %d\033[0m\n' $((31 + i % 6)) $i; done; printf end"
        name = (await conversation.run(command)).block.block_id
        for style in ("plain", "sgr"):
            whole = await conversation.read(block_id=name, view="rendered", style=style, max_bytes=1_000_000)
            assert SGR.sub("", whole.data) == "".join([f"line {number}\n" for number in range(1, 901)]) + "end"
            data, line, steps = "", 0, 0
            while True:
                part = await conversation.read(
                    block_id=name, view="rendered", style=style, from_line=line, max_bytes=2000
                )
                assert 0 < len(part.data.encode()) <= 2000
                assert SGR.sub("", part.data).startswith(f"line {line + 1}\n" if line < 900 else "end")
                data, steps = data + part.data, steps + 1
                if part.eof:
                    break
                assert part.next_line == line + part.data.count("\n") and part.data.endswith("\n")
                line = part.next_line
            assert data == whole.data and steps > 2 and part.next_line is None
        # A line that is longer than what may be returned is cut, with whole sequences.
        long = (await conversation.run(r"printf '\033[31m%0500d\033[0m\n' 7; echo next")).block.block_id
        cut = await conversation.read(block_id=long, view="rendered", style="sgr", from_line=0, max_bytes=100)
        assert len(cut.data) <= 100 and cut.data.startswith("\x1b[0;31m000") and cut.data.endswith("\x1b[0m")
        assert (cut.next_line, cut.eof) == (1, False)
        after = await conversation.read(block_id=long, view="rendered", style="sgr", from_line=1, max_bytes=100)
        assert (after.data, after.eof) == ("next\n", True)
        await conversation.close()


@async_test
async def test_hostile_output_leaves_nothing_but_sgr(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        hostile = (
            r"\033]52;c;aGk=\007\033[6n\033]8;;javascript:x\033\\\\link\033]8;;\033\\\\\033P1$r\033\\\\"
            r"\302\23331m\2332J\033c\000\016\033[?1049hx\033[?1049l\033[31;5mred\033[3Cx\033]0;t"
        )
        name = (await conversation.run(f"printf '{hostile}'; head -c 20000 /dev/urandom")).block.block_id
        for from_line in (None, 0):
            for size in (50, 1000, 1_000_000):
                found = await conversation.read(
                    block_id=name, view="rendered", style="sgr", from_line=from_line, max_bytes=size
                )
                assert re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", SGR.sub("", found.data)) is None
        await conversation.run("reset >/dev/null 2>&1; true")
        await conversation.close()


@async_test
async def test_secrets_are_redacted_whatever_colours_they_have(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        command = rf"printf '\033[32mDB_PASSWORD=\033[1m{SECRET[:9]}\033[31m{SECRET[9:]}\033[0m\nfree\n'"
        block = (await conversation.run(command)).block
        for options in ({}, {"from_line": 0}, {"style": "sgr"}, {"style": "sgr", "from_line": 0}):
            data = (await conversation.read(block_id=block.block_id, view="rendered", **options)).data  # type: ignore[arg-type]
            bare = SGR.sub("", data)
            assert SECRET[:9] not in bare and SECRET[9:] not in bare and bare.startswith("DB_PASSWORD=*"), options
            assert bare.endswith("\nfree\n") and re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", bare) is None
        begin, end = block.span
        assert end is not None
        whole = (await conversation.read(begin, to_cursor=end, view="raw")).data
        for cut in range(begin, end + 1, 7):
            first = await conversation.read(begin, to_cursor=cut, view="raw")
            assert first.data == whole[: cut - begin] and (first.cursor, first.eof) == (cut, True)
        await conversation.close()


@async_test
async def test_what_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        name = (await conversation.run("seq 100")).block.block_id
        head = conversation.cursor
        wrong: tuple[tuple[dict[str, Any], str], ...] = (
            ({"style": "sgr"}, "view rendered"), ({"from_line": 1}, "view rendered"),
            ({"style": "html", "view": "rendered"}, "style"), ({"from_line": -1, "view": "rendered"}, "from_line"),
            ({"from_line": True, "view": "rendered"}, "from_line"),
        )  # fmt: skip
        for options, said in wrong:
            with pytest.raises(BadRequest, match=said):
                await conversation.read(**options)
        for begin, end in ((0, head + 1), (head + 1, head + 2), (5, 4), (0, -1)):
            with pytest.raises(BadCursor) as refused:
                await conversation.read(begin, to_cursor=end)
            assert refused.value.hint
        monkeypatch.setattr(reading, "LINES_BYTES", 100)
        with pytest.raises(BadRequest, match="too many"):
            await conversation.read(block_id=name, view="rendered", from_line=0)
        assert (await conversation.read(block_id=name, view="rendered")).data.startswith("1\n2\n")
        monkeypatch.setattr(reading, "LINES_BYTES", 10_000)
        monkeypatch.setattr(reading, "DRAWN_BYTES", 100)
        with pytest.raises(BadRequest, match="draws more"):
            await conversation.read(block_id=name, view="rendered", from_line=0)
        await conversation.close()


@async_test
async def test_what_runs_is_read_as_far_as_it_goes(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        begun = await conversation.exec_block(r"printf '\033[31mbegun\033[0m\n'; read -r line; echo $line")
        await conversation.wait_for("begun")
        part = await conversation.read(block_id=begun.block_id, view="rendered", style="sgr", from_line=0)
        assert (part.data, part.eof, part.next_line) == ("\x1b[0;31mbegun\x1b[0m\n", False, None)
        empty = await conversation.read(part.cursor, view="rendered", style="sgr", from_line=0)
        assert (empty.data, empty.eof) == ("", False)
        await conversation.enter()
        await conversation.wait_for({"token": "PROMPT"})
        await conversation.close()


@async_test
async def test_growth_without_its_text_is_few_events_and_adds_up(home: Path) -> None:
    """Events without their text: a flood is few of them, which say as much as all of them."""
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        live: Any = conversation.live
        told: list[Event] = []

        async def follow() -> None:
            async for event in reading.follow_events(live, 0, True, with_data=False):
                told.append(event)

        following = asyncio.create_task(follow())
        await conversation.run("seq 1 400000", max_bytes=100)
        await conversation.run("echo one; sleep 0.3; echo two")
        every = [event async for event in reading.follow_events(live, 0, False)]
        while not told or told[-1].seq < every[-1].seq:
            await live.subscribers.changed(0.02)
        following.cancel()
        await asyncio.wait((following,))

        assert all("data" not in event.fields for event in told)
        others = [event for event in told if event.type != "agent_block_delta"]
        assert others == [event for event in every if event.type != "agent_block_delta"]
        assert [event.seq for event in told] == sorted({event.seq for event in told})
        for block_id in {event.fields["block_id"] for event in every if "block_id" in event.fields}:
            spans = _spans(every, block_id)
            joined = _spans(told, block_id)
            assert joined[0][0] == spans[0][0] and joined[-1][1] == spans[-1][1]
            # Each ends where one of the record ends, and begins where the next one begins.
            follows = {end: begin for (_, end), (begin, _) in pairwise(spans)}
            assert all(follows[end] == begin for (_, end), (begin, _) in pairwise(joined))
        flood = next(event.fields["block_id"] for event in told if event.type == "agent_block_begin")
        assert len(_spans(told, flood)) < len(_spans(every, flood)) / 2
        await conversation.close()


def test_growth_is_sent_four_times_a_second() -> None:
    now, sent = 100.0, []
    growth = reading.Growth(lambda: now)
    for number in range(2048):
        now += 1 / 1024
        assert not [*growth.take({"type": "agent_block_delta", "block_id": "1.1", "span": [number, number + 1]})]
        if (grown := growth.due(closed=False)) is not None:
            sent.append((now, grown["span"]))
    assert [span for _, span in sent] == [[0, 1], *([begin, begin + 256] for begin in range(1, 1793, 256))]
    assert {later - at for (at, _), (later, _) in pairwise(sent)} == {0.25}
    assert growth.left() == 1 / 1024
    # What is left is sent at the end, or in front of the next event of another kind.
    assert growth.due(closed=True) == {"type": "agent_block_delta", "block_id": "1.1", "span": [1793, 2048]}
    last = {"type": "agent_block_delta", "block_id": "1.1", "span": [2048, 2049]}
    end = {"type": "agent_block_end", "block_id": "1.1"}
    assert [*growth.take(last), *growth.take(end)] == [last, end] and not growth.is_held


@async_test
async def test_what_is_not_wanted_comes_between_no_growth(home: Path) -> None:
    wanted = ("agent_block_begin", "agent_block_delta", "agent_block_end")
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        live, seen = conversation.live, []

        async def follow() -> None:
            async for event in reading.follow_events(live, 0, True, with_data=False, types=wanted, clock=lambda: 100.0):
                seen.append(event)

        following = asyncio.create_task(follow())
        await conversation.exec_interactive("cat")
        for number in range(40):
            await conversation.send_line(f"line {number}", match=f"line {number}")
        await conversation.ctrl_d()
        while not seen or seen[-1].type != "agent_block_end":
            await live.subscribers.changed(0.02)
        following.cancel()
        await asyncio.wait((following,))
        every = [event async for event in reading.follow_events(live, 0, False)]
        assert sum(event.type == "input" for event in every) >= 40
        assert {event.type for event in seen} == set(wanted)
        block_id = seen[0].fields["block_id"]
        # Its time stands still: what has come is sent once, if it looks before the end of the block, and then the rest.
        assert len(_spans(seen, block_id)) <= 2
        assert _spans(seen, block_id)[-1][1] == _spans(every, block_id)[-1][1]
        await conversation.close()


def _spans(events: list[Event], block_id: str) -> list[tuple[int, int]]:
    growth = (event for event in events if event.type == "agent_block_delta" and event.fields["block_id"] == block_id)
    return [tuple(event.fields["span"]) for event in growth]


@async_test
async def test_events_from_a_number_on_are_read_from_there_and_others_have_their_turn(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.run("true")
        live = conversation.live
        every = [event async for event in reading.follow_events(live, 0, False)]
        events = live.layout.events
        own = events.stat().st_size
        # More of them than a shell makes in a reasonable time: copies of the last, with numbers that go on.
        line, last = events.read_bytes().splitlines()[-1], every[-1].seq
        copies = [line.replace(b'"seq":%d,' % last, b'"seq":%d,' % seq, 1) for seq in range(last + 1, last + 8_000)]
        with events.open("ab") as file:
            file.write(b"".join([copy + b"\n" for copy in copies]))

        read = ReadBytes(monkeypatch)
        for first in (last + 7_990, last + 7_999, last + 8_005):
            numbers = [event.seq async for event in reading.follow_events(live, first, False)]
            assert numbers == list(range(first, last + 8_000))
        assert read.count < 2 * events.stat().st_size  # three times all of it, if each read all

        async def read_all() -> None:
            numbers = [event.seq async for event in reading.follow_events(live, 0, False)]
            assert numbers == list(range(every[0].seq, last + 8_000))

        turns = await turns_beside(read_all())
        assert turns >= events.stat().st_size // (128 * 1024)
        os.truncate(events, own)
