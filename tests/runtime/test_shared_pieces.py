"""Pieces that several followers of a stream share: equal to what a read gives."""

from __future__ import annotations

from pathlib import Path

import pytest

import blockpty
from tests.support.async_tests import async_test

pytestmark = pytest.mark.needs("bash")


@async_test
async def test_who_follows_a_flood_gets_what_a_read_gives_wherever_a_secret_lies(home: Path, tmp_path: Path) -> None:
    """Whole parts of the stream are looked through once for all: no secret that lies across two of them is seen."""
    secret = "ghp_" + "4fK9" * 9
    lines = [f"line {number} token {secret} of the log {'x' * (number % 37)}" for number in range(6000)]
    (tmp_path / "log").write_text("\n".join(lines) + "\n")
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        block = (await conversation.run(f"cat {tmp_path}/log", max_bytes=1)).block
        begin, end = block.span
        assert end is not None and end - begin > 500_000
        live = conversation.live
        whole = live.redactor.read(live.drawn, begin, end - begin)
        assert secret[4:].encode() not in whole and len(whole) == end - begin
        for room in (1, 1000, 65_536, 262_144):
            at, steps = begin, 0
            while at < end and steps < 40:
                data = live.pieces.read(at, min(at + room, end), end, is_last=True)
                assert data and data == whole[at - begin : at - begin + len(data)], (room, at)
                # Small steps only around the borders of the parts.
                at, steps = at + max(len(data), 65_536 - 2 if room == 1 else 0), steps + 1
        assert 0 < len(live.pieces._parts) <= 8
        await conversation.close()
