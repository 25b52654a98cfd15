"""Reading a span, by cursor and by line: what is rendered with colours, what is refused, and what is redacted."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import blockpty
from blockpty.errors import BadCursor, BadRequest
from blockpty.runtime import reading
from tests.support.async_tests import async_test

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
