"""A secret that is there only when the output is drawn, or behind a link, leaves covered too."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

import blockpty
from blockpty.control.redaction import cover_shown
from blockpty.runtime.covered import Cover
from blockpty.spool.masking import Mask
from tests.asyncio_support import async_test

TOKEN = "ghp_" + "4fK9" * 9
DRAWN = {
    "struck over": "".join(f"{one}\b{one}" for one in TOKEN),
    "underlined": "".join(f"_\b{one}" for one in TOKEN),
    "corrected": f"{TOKEN[:12]}#\b{TOKEN[12:]}",
    "moved left": f"{TOKEN[:12]}##\x1b[2D{TOKEN[12:]}",
    "overwritten": f"xxxx{TOKEN[4:]}\r{TOKEN[:4]}",
    "no width": f"{TOKEN[:9]}\u200b{TOKEN[9:20]}\u00ad{TOKEN[20:]}",
    "C1": f"{TOKEN[:12]}\u009b1m{TOKEN[12:]}",
    "behind NUL": f"A=1\0{TOKEN}",
    "behind NUL, coloured": f"\x1b[1mA=1\x1b[0m\0{TOKEN}\x1b[2m",
}
LINK = f"\x1b]8;;https://h/?k={TOKEN}\x1b\\here\x1b]8;;\x1b\\"


@pytest.mark.needs("bash")
@pytest.mark.parametrize("way", [*DRAWN])
@async_test
async def test_what_is_drawn(home: Path, tmp_path: Path, way: str) -> None:
    (tmp_path / "it").write_text(f"one\n{DRAWN[way]}\ntwo\n")
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.run(f"cat {shlex.quote(str(tmp_path))}/it")
        texts = {style: (await conversation.export(style)).data or "" for style in ("text", "html", "markdown")}
        texts["rendered"] = (await conversation.read(0, view="rendered")).data
        texts |= {style: (await conversation.screen(format=style)).content for style in ("text", "html", "ansi")}
        for name, text in texts.items():
            plain = text.replace("\u200b", "").replace("\u00ad", "").replace("\0", "")
            assert TOKEN[4:] not in plain and TOKEN[-12:] not in plain, name
            assert "two" in text, name


@pytest.mark.needs("bash")
@async_test
async def test_where_a_link_leads(home: Path, tmp_path: Path) -> None:
    (tmp_path / "it").write_text(f"{LINK}\n")
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.run(f"cat {shlex.quote(str(tmp_path))}/it")
        for style in ("html", "ansi", "json", "svg"):
            content = (await conversation.screen(format=style)).content
            assert TOKEN[-12:] not in content, style
        assert "https://h/?k=ghp_****" in (await conversation.screen(format="json")).content
        assert TOKEN[-12:] not in ((await conversation.export("html")).data or "")


@pytest.mark.parametrize("size", [1, 700, 64 * 1024, 300_000])
def test_pieces_of_any_size_are_covered_as_the_whole(size: int) -> None:
    # A secret over each border at which pieces are looked at together.
    text = (f"{'x' * 60}\n" * 1074)[: 64 * 1024 - 12] + f" {TOKEN}\n"
    data = (text * 3)[-3_000 if size == 1 else 0 :].encode()
    drawn = Cover(Mask()).drawn()
    out = b"".join([drawn.feed(data[at : at + size]) for at in range(0, len(data), size)]) + drawn.finish()
    assert out == cover_shown(data) and TOKEN.encode()[12:] not in out
