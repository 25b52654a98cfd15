"""A secret that is there only when the output is drawn, or behind a link, is redacted too."""

from __future__ import annotations

import random
import re
import shlex
from pathlib import Path

import pytest

import blockpty
from blockpty.redact.redaction import redact_output
from blockpty.runtime.redactor import Redactor
from blockpty.spool.masking import Mask
from tests.support.async_tests import async_test
from tests.support.edited_lines import EDITED, EDITED_INSIDE, TOKEN
from tests.support.profile import some_of

BESIDE = re.compile(r"<[^<>]*>|\x1b\[[0-?]*[ -/]*[@-~]|\x1b\(B|[\r\n\u200b\u00ad\0]")
PLAIN = {
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
# The way back of the others does not lead to the row before.
OVER_ROWS = ("corrected", "moved left", "no width", "C1", "behind NUL", "behind NUL, coloured")
LINK = f"\x1b]8;;https://h/?k={TOKEN}\x1b\\here\x1b]8;;\x1b\\"


def coloured(text: str) -> str:
    """Return a text with another colour from about the middle on, which is at a letter that stands behind a letter."""
    half = next(at for at in range(len(text) // 2, len(text)) if re.fullmatch(r"\w\w", text[at - 1 : at + 1]))
    return f"{text[:half]}\x1b[31m{text[half:]}\x1b[m"


DRAWN = {
    **PLAIN,
    **{f"{name}, in two colours": coloured(text) for name, text in PLAIN.items()},
    **{f"{name}, in two rows": f"{'x' * 59} {PLAIN[name]}" for name in OVER_ROWS},
    **{f"{name}, in two rows and colours": f"{'x' * 59} {coloured(PLAIN[name])}" for name in OVER_ROWS},
}


def assert_none(texts: dict[str, str]) -> None:
    """Check that of the token no part is seen that has as many letters as its first one and more."""
    for name, text in texts.items():
        plain = BESIDE.sub("", text)
        assert TOKEN[4:16] not in plain and TOKEN[-12:] not in plain, (name, text)


@pytest.mark.needs("bash")
@pytest.mark.parametrize("way", some_of(DRAWN))
@async_test
async def test_what_is_drawn(home: Path, tmp_path: Path, way: str) -> None:
    (tmp_path / "it").write_text(f"one\n{DRAWN[way]}\ntwo\n")
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        await conversation.run(f"cat {shlex.quote(str(tmp_path))}/it")
        texts = {style: (await conversation.export(style)).data or "" for style in ("text", "html", "markdown")}
        texts["rendered"] = (await conversation.read(0, view="rendered")).data
        texts |= {style: (await conversation.screen(format=style)).content for style in ("text", "html", "ansi")}
        assert_none(texts)
        for name, text in texts.items():
            assert "two" in text, name


@pytest.mark.needs("bash")
@pytest.mark.parametrize("editor", [*EDITED])
@async_test
async def test_what_a_line_editor_draws_in_two_rows(home: Path, tmp_path: Path, editor: str) -> None:
    (tmp_path / "it").write_bytes(EDITED[editor])
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash")
        cursor = (await conversation.run(f"stty -opost; cat {shlex.quote(str(tmp_path))}/it; stty opost")).cursor
        styles = ("cast", "typescript", "text", "html", "markdown", "jsonl")
        texts = {style: (await conversation.export(style)).data or "" for style in styles}
        views = ("raw", "ansi", "text", "rendered")
        texts |= {f"view {view}": (await conversation.read(0, view=view)).data for view in views}
        screens = ("text", "json", "html", "ansi", "svg")
        texts |= {f"screen {style}": (await conversation.screen(format=style)).content for style in screens}
        for pattern in ("ghp_[^ ]+", "TOKEN=.*", "4fK9[4fK9]{12}", "[4fK9]{12}"):
            found = await conversation.wait_for({"regex": pattern}, from_cursor=0, stop="never", timeout_ms=1)
            texts[f"wait for {pattern}"] = str(found.to_dict())
        await engine.search("nothing")
        hits = (await engine.search("export", mode="substring")).hits
        texts["search"] = str([hit.to_dict() for hit in hits])
        assert cursor and hits
        assert_none(texts)


@pytest.mark.needs("bash")
@pytest.mark.parametrize("editor", [*EDITED_INSIDE])
@async_test
async def test_what_a_line_editor_puts_in_later(home: Path, tmp_path: Path, editor: str) -> None:
    cols, sent = EDITED_INSIDE[editor]
    (tmp_path / "it").write_bytes(sent)
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash", cols=cols)
        await conversation.run(f"stty -opost; cat {shlex.quote(str(tmp_path))}/it; stty opost")
        texts = {style: (await conversation.export(style)).data or "" for style in ("text", "html", "markdown")}
        texts["rendered"] = (await conversation.read(0, view="rendered")).data
        screens = ("text", "json", "html", "ansi", "svg")
        texts |= {f"screen {style}": (await conversation.screen(format=style)).content for style in screens}
        assert_none(texts)


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
def test_pieces_of_any_size_are_redacted_as_the_whole(size: int) -> None:
    # A secret over each border at which pieces are looked at together.
    text = (f"{'x' * 60}\n" * 1074)[: 64 * 1024 - 12] + f" {TOKEN}\n"
    data = (text * 3)[-3_000 if size == 1 else 0 :].encode()
    drawn = Redactor(Mask()).drawn()
    out = b"".join([drawn.feed(data[at : at + size]) for at in range(0, len(data), size)]) + drawn.finish()
    assert out == redact_output(data) and TOKEN.encode()[12:] not in out


@pytest.mark.parametrize("seed", some_of(range(40)))
def test_lines_that_are_as_printed_are_looked_at_where_they_meet_what_was_drawn(seed: int) -> None:
    chosen = random.Random(seed)
    key = "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n" * 8 + "-----END PRIVATE KEY-----\n"
    # Each between two runs of lines: whole there, begun there, ended there, named in one and shown in the other.
    both = ("login me\n", "password hunter2x\n")
    drawn_pieces = ("", f"{TOKEN}\n", key, TOKEN[:12], key[:90], f"a {TOKEN[:30]}\n", *both)
    lines = (f"{'x' * 60}\n", f"{TOKEN[12:]}\n", key[90:], "-----\n", *both)
    pieces: list[tuple[bytes, bool]] = []
    for _ in range(6):
        pieces.append((chosen.choice(drawn_pieces).encode(), False))
        middle = "plain line of a log\n" * chosen.choice((10, 1000, 9000))
        printed = chosen.choice(lines) + middle + chosen.choice(lines)
        pieces.append((redact_output(printed.encode()), True))
    redactor = Redactor(Mask()).drawn()
    out = b"".join([redactor.feed(text, as_printed=printed) for text, printed in pieces]) + redactor.finish()
    assert out == redact_output(b"".join([text for text, _ in pieces]))
