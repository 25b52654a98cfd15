"""Text, HTML, Markdown and JSON lines: what a person saw, and nothing of it that a program can turn into markup."""

from __future__ import annotations

import itertools
import random
import re
from pathlib import Path
from typing import TYPE_CHECKING

from blockpty.engine.views import transform
from blockpty.runtime.export.recording_events import PIECE
from blockpty.screen import markup
from blockpty.screen.rendered import Drawing, RowStyle
from tests.support.exports import exported, lines_of, pty, saved
from tests.support.profile import LONG

if TYPE_CHECKING:
    import pytest


def test_what_a_program_wrote_stays_data(tmp_path: Path) -> None:
    made = pty()
    hostile = b"</pre><script>alert(1)</script>\r\n```\r\n# no heading\r\n`````\r\n\x1b]0;title\x07\x1b[Kx\r\n"
    made.run("echo '</pre>' '```'\n# second line", hostile)
    source = saved(made, tmp_path)
    page = exported(source, "html")
    assert "<script" not in page and page.count("</pre>") == 1 and "default-src 'none'" in page
    shown = exported(source, "markdown")
    fences = re.findall(r"^`{3,}(?=\w)", shown, re.MULTILINE)
    assert fences == ["````", "``````"]
    assert shown.count("``````") == 2 and "\x1b" not in shown
    assert shown.startswith("# c\n\n## b1: exit 0, 0.000 s\n\n")
    assert "\x1b" not in exported(source, "text")


def test_json_lines_hold_the_records_and_the_whole_output(tmp_path: Path) -> None:
    made = pty()
    big = "".join(f"{number} \u00e9\r\n" for number in range(40_000))
    made.run("big", big.encode())
    made.run("empty", b"", 2)
    source = saved(made, tmp_path)
    about, *lines = lines_of(exported(source, "jsonl"))
    assert (about["type"], about["conversation_id"], about["span"]) == ("conversation", "c", [0, source.end])
    blocks = [line for line in lines if line["type"] == "block"]
    assert [(block["block_id"], block["cmd"], block["exit_status"]) for block in blocks] == [
        ("b1", "big", 0), ("b2", "empty", 2),
    ]  # fmt: skip
    pieces = [line for line in lines if line["type"] == "output"]
    assert {line["block_id"] for line in pieces} == {"b1"} and len(pieces) > 4
    assert "".join(line["data"] for line in pieces) == big.replace("\r\n", "\n")


def test_a_piece_of_json_lines_is_what_so_many_bytes_show_whatever_the_lines(tmp_path: Path) -> None:
    chance = random.Random(3)
    lengths = [chance.choice([0, 1, 7, 90, 600, 150_000 * (number % 200 == 0)]) for number in range(9_000)]
    lines = [b"\x1b[3%dm%s\x1b[m%d\r\n" % (number % 8, b"x" * size, number) for number, size in enumerate(lengths)]
    made = pty()
    made.run("lines", b"".join(lines))
    pieces = [line for line in lines_of(exported(saved(made, tmp_path), "jsonl")) if line["type"] == "output"]
    assert "".join(line["data"] for line in pieces).encode() == transform("text", b"".join(lines))
    # Where a piece ends inside a line is known from the bytes of the stream alone.
    ends = itertools.accumulate(len(line["data"]) for line in pieces[:-1])
    seen = [len(transform("text", b"".join(lines)[:at])) for at in range(PIECE, sum(map(len, lines)), PIECE)]
    assert all(abs(end - near) < 8 for end, near in zip(ends, seen, strict=True))


def test_pages_show_what_a_person_saw(tmp_path: Path) -> None:
    made = pty()
    made.run("progress", b"  1%\r 50%\r100%\r\n\x1b[32mgreen\x1b[0m\r\n")
    made.entry("resize", cols=20, rows=5, author="agent")
    made.run("seq", b"".join(b"%d\r\n" % number for number in range(30)))
    source = saved(made, tmp_path)
    lines = ["$  . /c/1", "100%", "green", "$  . /c/2", *map(str, range(30)), "$"]
    assert exported(source, "text") == "\n".join(lines) + "\n"
    page = exported(source, "html")
    assert '<span style="color:#00cd00;background:#181818">green</span>\n' in page
    body = page.partition("<pre")[2].partition(">\n")[2].partition("</pre>")[0]
    assert [re.sub("<[^>]*>", "", line).rstrip() for line in body.splitlines()] == lines


def test_a_page_of_plain_lines_is_the_same_as_a_drawn_one() -> None:
    parts = [
        *(b"<b>&amp; line %d\r\n" % number * 700 for number in range(3)), b"x" * 300 + b"\r\n", b"\x1b[31mred\r\n",
        b"\x1b[0m", b"\x1b[?1049h hi\x1b[?1049l", b"trail   \r\n" * 900, b"\r\n" * 4000, b"abc\rde\r\n" * 900,
        b"\x1b[7m", "\u20ac\u6f22 ".encode() * 30 + b"\r\n", b"\x1b[41m\x1b[K\x1b[0m", b"step\nstep\n" * 700,
    ]  # fmt: skip
    chosen = random.Random(1)
    style = RowStyle(markup.html_line, markup.html_text, markup.html_around)
    for _ in range(40 if LONG else 12):
        data = b"".join(chosen.choices(parts, k=8))
        assert drawn(data, Drawing(80, 24, style)) == drawn(data, Drawing(80, 24, style, 1 << 40))


def test_a_page_of_coloured_lines_is_the_same_as_a_drawn_one(monkeypatch: pytest.MonkeyPatch) -> None:
    sequences = (
        *(b"\x1b[m", b"\x1b[0m", b"\x1b[31m", b"\x1b[1;38;5;99m", b"\x1b[38;2;1;2;3m", b"\x1b[4:3m", b"\x1b[7m"),
        *(b"\x1b[K", b"\x1b[39m", b"\x1b[0K", b"\x07", b"\x1b[8m"),
    )
    link = (b"\x1b]8;;https://a/\x07", b"\x1b]8;;\x07")
    rare = (*link, b"\x1b[44m", b"\x1b[1K", b"\t", b"\x08", "\u6f22".encode(), b"\r", b"\n")
    chosen, quick = random.Random(2), 0
    seen = Drawing._seen

    def counted(self: Drawing, data: bytes, shown: bytes | None) -> str | None:
        nonlocal quick
        found = seen(self, data, shown)
        quick += found is not None
        return found

    monkeypatch.setattr(Drawing, "_seen", counted)
    style = RowStyle(markup.html_line, markup.html_text, markup.html_around)
    for number in range(300 if LONG else 100):
        cols, rows = chosen.choice(((10, 2), (20, 3), (7, 1)))
        data = b""
        for _ in range(chosen.randint(1, 40)):
            for _ in range(chosen.choice((0, 1, 3, 6))):
                data += chosen.choice((b"<b>", b" ", b"   ", b"word", b"0123456789", "caf\u00e9 ".encode()))
                data += chosen.choice(rare) if number % 3 == 0 and chosen.random() < 0.02 else b""
                data += chosen.choice(sequences) if chosen.random() < 0.6 else b""
            data += b"\r\x1b[K\n" if number % 3 == 0 and chosen.random() < 0.02 else b"\r\n"
        whole = drawn(data, Drawing(cols, rows, style, 1 << 40))
        assert drawn(data, Drawing(cols, rows, style, 1)) == whole, data
        cut = chosen.randint(0, len(data))
        halves = Drawing(cols, rows, style, 1)
        assert halves.feed(data[:cut]) + halves.feed(data[cut:]) + halves.finish() == whole, (data, cut)
    assert quick > (100 if LONG else 33)


def drawn(data: bytes, drawing: Drawing) -> str:
    return drawing.feed(data) + drawing.finish()
