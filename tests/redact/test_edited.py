"""A token that is edited in a line editor: nothing of it is left in what was sent, however it was drawn."""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import pytest

import blockpty
from blockpty.redact import edited
from blockpty.redact.redaction import find_sent, find_shown, redact_spans
from blockpty.runtime.redactor import Redactor
from blockpty.spool.masking import Mask
from blockpty.spool.stream import StreamReader
from tests.support import edited_lines
from tests.support.async_tests import async_test
from tests.support.edited_lines import EDITED_INSIDE, TOKEN
from tests.support.profile import LONG, some_of

# Recorded in real shells: the token was typed in parts, in another order, with characters too many and too few, one key
# at a time or some at once, and then entered or given up.
RECORDED: Final[list[dict[str, Any]]] = [
    json.loads(line)
    for line in Path(edited_lines.__file__).with_name("edited_streams.jsonl").read_text().splitlines()
]
each_recorded = pytest.mark.parametrize(
    "recorded", RECORDED, ids=[f"{one['shell']}-{one['cols']}-{one['edit']}" for one in RECORDED]
)
_BESIDE: Final = re.compile(rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\(B|\x1b[=>]|\x1b\][^\x07\x1b]*\x07?|[\r\n\x08]")
# So many characters of the token may stand in one piece.
MOST = 3


def pieces(shown: bytes) -> list[bytes]:
    """Return what is left of the token's value where it was drawn in one go, and in titles."""
    titles = re.findall(rb"\x1b\]([^\x07\x1b]*)", shown)
    return [piece for text in (*_BESIDE.split(shown), *titles) for piece in re.findall(rb"[4fK9]+", text)]


def assert_none(shown: bytes) -> None:
    assert max(map(len, pieces(shown)), default=0) <= MOST, shown
    # Nor in pieces that are put together where they follow each other, but for the first keys of an edit.
    assert max(map(len, re.findall(rb"[4fK9]+", _BESIDE.sub(b"", shown))), default=0) <= 7, shown


@each_recorded
def test_nothing_is_left_in_what_was_sent(recorded: dict[str, Any]) -> None:
    sent = recorded["sent"].encode("latin-1")
    shown = redact_spans(sent, find_sent(sent, more=True, columns=lambda: [recorded["cols"]]).spans)
    assert len(shown) == len(sent) and sent.translate(None, b"\x1b") != shown
    assert re.sub(rb"[^\x00-\x1f]", b"", shown) == re.sub(rb"[^\x00-\x1f]", b"", sent)  # what moves the cursor stays
    assert_none(shown)


@each_recorded
def test_what_it_says_itself_of_its_width_is_nearly_always_enough(recorded: dict[str, Any]) -> None:
    sent = recorded["sent"].encode("latin-1")
    if recorded["shell"] == "bash" and recorded["cols"] == 24:
        return  # which says nothing of it where several keys come at once
    assert_none(redact_spans(sent, find_sent(sent, more=True).spans))


@pytest.mark.parametrize("editor", [*EDITED_INSIDE])
def test_with_wide_characters_and_more(editor: str) -> None:
    cols, sent = EDITED_INSIDE[editor]
    assert_none(redact_spans(sent, find_sent(sent, more=True, columns=lambda: [cols]).spans))


def record(place: Path, sent: bytes, cols: int) -> StreamReader:
    """Write a stream and the size of its terminal, and return its reader."""
    (place / "stream").mkdir()
    (place / "stream" / f"{0:020d}").write_bytes(sent)
    entry = {"offset": 0, "ts": 1, "kind": "spawn", "shell": "bash", "cols": cols, "rows": 24}
    (place / "timeline.jsonl").write_text(json.dumps(entry, separators=(",", ":")) + "\n")
    return StreamReader(place / "stream")


@each_recorded
def test_where_a_read_begins_and_ends_does_not_matter(recorded: dict[str, Any], tmp_path: Path) -> None:
    before = b"a line of other output\r\n" * 400
    sent = before + recorded["sent"].encode("latin-1") + b"\r\nand more\r\n" * 20
    stream, redactor = record(tmp_path, sent, recorded["cols"]), Redactor(Mask())
    assert stream.columns() == [recorded["cols"]]
    whole = redactor.read(stream, 0, len(sent))
    assert_none(whole)
    chosen = random.Random(len(sent))
    for _ in range(25 if LONG else 8):
        begin, length = chosen.randrange(len(before), len(sent)), chosen.choice((1, 7, 60, 500))
        assert redactor.read(stream, begin, length) == whole[begin : begin + length]
        assert redactor.read_lines(stream, begin, length)[0] == whole[begin : begin + length][
            : whole.rfind(b"\n", begin, begin + length) + 1 - begin if b"\n" in whole[begin : begin + length] else None
        ]
    stream.close()


@pytest.mark.parametrize("seed", some_of(range(60)))
def test_a_token_put_together_in_any_order_in_one_row(seed: int) -> None:
    """An editor of our own: each time it draws what changes, from there on, and goes back to its place."""
    chosen = random.Random(seed)
    target, parts = f"echo {TOKEN} x", [0]
    while parts[-1] < len(target):
        parts.append(min(len(target), parts[-1] + chosen.randint(3, 14)))
    cuts = list(itertools.pairwise(parts))
    line, at, sent = "", 0, b"$ "
    there: list[tuple[int, int]] = []
    for begin, end in chosen.sample(cuts, len(cuts)):
        place = sum(last - first for first, last in there if first < begin)
        there.append((begin, end))
        sent += b"\b" * (at - place) if place < at else f"\x1b[{place - at}C".encode() if place > at else b""
        rest = line[place:]
        line = line[:place] + target[begin:end] + rest
        sent += (target[begin:end] + rest).encode() + (f"\x1b[{len(rest)}D".encode() if rest else b"")
        at = place + end - begin
    assert line == target
    shown = redact_spans(sent + b"\r\n", find_sent(sent + b"\r\n", columns=lambda: [200]).spans)
    assert max(map(len, pieces(shown)), default=0) <= MOST, shown


def test_ordinary_output_that_goes_back_is_redacted_no_more_than_before() -> None:
    texts = [
        b"".join(b"\r\x1b[K%3d%% |%-40s| token 0x%08x" % (one, b"#" * one, one * 7919) for one in range(40)),
        b"".join(b"\x1b[2A\x1b[2Kabc%d: Pulling 12%d kB\r\n\n" % (one, one) for one in range(40)),
        b"|\b/\b-\b\\\b" * 100, b"b\bbo\bol\bld\bd _\bu_\bn_\bd\r\n" * 40,
        b"commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b\x1b[3D...\r\n" * 9,
    ]  # fmt: skip
    for text in texts:
        assert find_sent(text).spans == find_shown(text).spans


@pytest.mark.parametrize(
    "text",
    [
        b"\x1b[9999999999C\b", b"\x1b[99999D\x1b[?25A\x08", b"\x1b[999@x\b" * 9, b"\x1b[J\b\x1b[1J\x1b[2J\x1b[K\b",
        b"\n" * 2000 + b"\b", b"\x1b[H\b\x1b[5P", "漢字\b\b\u0301x".encode(), b"\xff\b\xc3\b\x1b]0;\b", b"\t\b\t\b",
        b"x" * 300 + b" \ry\b", b"\x1b[A\r\n\x1b[8C" * 30,
    ],
)  # fmt: skip
def test_anything_can_be_drawn(text: bytes) -> None:
    for cols in (1, 2, 10, 80):
        for more in (text, text * 20):
            data = b"ghp_" + b"4fK9" * 9 + more
            spans = find_sent(data, columns=lambda cols=cols: [cols]).spans  # type: ignore[misc]
            assert all(0 <= begin < end <= len(data) for begin, end in spans)
            assert spans == sorted(spans)
            assert covered(spans) >= covered(find_shown(data).spans)
            assert edited.regions(data)


def covered(spans: Iterable[tuple[int, int]]) -> set[int]:
    return {at for begin, end in spans for at in range(begin, end)}


@pytest.mark.needs("bash")
@pytest.mark.parametrize("number", range(0, len(RECORDED), 4))
@async_test
async def test_nor_in_any_format_and_answer(home: Path, tmp_path: Path, number: int) -> None:
    recorded = RECORDED[number]
    (tmp_path / "it").write_bytes(recorded["sent"].encode("latin-1"))
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell="bash", cols=recorded["cols"])
        await conversation.run(f"stty -opost; cat {tmp_path}/it; stty opost")
        styles = ("cast", "cast3", "text", "html", "markdown", "jsonl")
        texts = {style: (await conversation.export(style)).data or "" for style in styles}
        for view in ("raw", "ansi", "text", "rendered"):
            texts[view] = (await conversation.read(0, view=view)).data
        for style in ("text", "json", "html", "ansi", "svg"):
            texts[f"screen {style}"] = (await conversation.screen(format=style)).content
        for name, text in texts.items():
            data = re.sub(r"<[^<>]*>|\\u001b\[[0-9;?]*[A-Za-z]|\\[rnb]", "\x1b[m", text).encode()
            # A hash may have these letters in another order.
            left = [piece for piece in pieces(data) if piece in TOKEN.encode()]
            assert max(map(len, left), default=0) <= MOST, (name, text)
        await engine.search("nothing")
        hits = (await engine.search("4fK9", mode="substring")).hits
        assert not hits, [hit.to_dict() for hit in hits]
