"""Reading JSON lines: whole lines only, whatever is torn, missing or damaged around them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from blockpty.errors import SpoolCorrupt
from blockpty.spool import line_reader
from blockpty.spool.line_reader import (
    LineReader,
    iterate_lines,
    iterate_lines_back,
    last_line,
    line_of_seq,
    parse_line,
)
from tests.support.counting import ReadBytes

LINES = [
    b'{"seq":0}\n',
    b'{"seq":1,"text":"caf\xc3\xa9 \xe2\x80\xa8 \\u0000"}\n',
    b'{"seq":2,"deep":{"list":[1,null,true]}}\n',
]
DAMAGED = [
    b"\n", b" \n", b"\x00\x00\x00\n", b"{\n", b'{"n":\n', b"null\n", b"3\n", b'"text"\n', b"[1]\n", b"{'n':1}\n",
    b"NaN\n",
    b'{"n":1}{"n":2}\n', b'{"n":1} x\n', b"\xff\xfe\n", b'{"n":"\xff"}\n', b'{"n":1}\x00\x00\n', b'{"n\x00":1}\n',
    b"\xef\xbb\xbf{}\n", b'{"n":"\\ud800"}\n', b"[" * 5000 + b"\n",
]  # fmt: skip


def numbers(found: list[tuple[dict[str, Any], int]]) -> list[int]:
    return [line["seq"] for line, _ in found]


def test_each_line_comes_with_the_place_after_it(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"".join(LINES))
    reader = LineReader(path)
    found = reader.read_new()
    assert numbers(found) == [0, 1, 2]
    assert found[1][0]["text"] == "café \u2028 \0"
    assert [place for _, place in found] == [len(b"".join(LINES[:count])) for count in (1, 2, 3)]
    assert reader.read_new() == []
    reader.close()
    for count, (_, place) in enumerate(found, 1):
        later = LineReader(path, place)
        assert numbers(later.read_new()) == list(range(count, 3))
        later.close()


def test_a_file_that_grows_byte_by_byte(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    reader = LineReader(path)
    assert reader.read_new() == []
    content = b"".join(LINES)
    seen: list[int] = []
    for end in range(len(content) + 1):
        path.write_bytes(content[:end])
        seen += numbers(reader.read_new())
        assert len(seen) == content[:end].count(b"\n"), "a line is there with its last byte, and not before"
        assert reader.position == content.rfind(b"\n", 0, end) + 1
    assert seen == [0, 1, 2] and reader.damaged == []
    reader.close()


@pytest.mark.parametrize("bad", DAMAGED, ids=lambda bad: repr(bad[:12]))
def test_a_damaged_line_is_passed_over_and_named(tmp_path: Path, bad: bytes) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(LINES[0] + bad + LINES[1] + bad + bad + LINES[2])
    reader = LineReader(path)
    assert numbers(reader.read_new()) == [0, 1, 2]
    first = len(LINES[0])
    assert reader.damaged[0] == (first, first + len(bad))
    assert len(reader.damaged) == 3
    assert reader.position == path.stat().st_size
    reader.close()


@pytest.mark.parametrize("length", [1, 2, 511, 4096, 1024 * 1024 + 5])
def test_a_run_of_nul_bytes_costs_no_whole_line(tmp_path: Path, length: int) -> None:
    """After a loss of power some file systems leave zeros where a write was under way; the next line follows them."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(LINES[0] + b"\0" * length + LINES[1] + LINES[2] + b"\0" * length)
    reader = LineReader(path)
    assert numbers(reader.read_new()) == [0, 1, 2]
    assert reader.position == path.stat().st_size - length
    reader.close()


def test_lines_longer_than_one_read(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    long = b'{"seq":1,"x":"' + b"y" * (3 * 1024 * 1024 + 17) + b'"}\n'
    path.write_bytes(LINES[0] + long + LINES[2] + long[:-2])
    reader = LineReader(path)
    assert numbers(reader.read_new()) == [0, 1, 2]
    with path.open("ab") as file:
        file.write(long[-2:])
    assert numbers(reader.read_new()) == [1]
    reader.close()


@pytest.mark.parametrize("kept", range(1, len(LINES[0])))
def test_a_torn_line_that_is_taken_back_leaves_nothing_behind(tmp_path: Path, kept: int) -> None:
    """The writer cuts a line that it could not write whole, and writes another one in its place."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(LINES[2] + LINES[0][:kept])
    reader = LineReader(path)
    assert numbers(reader.read_new()) == [2]
    os.truncate(path, len(LINES[2]))
    with path.open("ab") as file:
        file.write(LINES[1])
    assert numbers(reader.read_new()) == [1]
    assert reader.damaged == []
    reader.close()


def test_only_a_line_feed_ends_a_line(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(LINES[0] + b'damage\r{"seq":7}\n' + LINES[1])
    reader = LineReader(path)
    assert numbers(reader.read_new()) == [0, 1]
    reader.close()


def test_a_reader_can_be_closed_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(LINES[0] + LINES[1][:5])
    reader = LineReader(path)
    assert numbers(reader.read_new()) == [0]
    reader.close()
    reader.close()
    path.write_bytes(b"".join(LINES))
    assert numbers(reader.read_new()) == [1, 2]
    reader.close()


def test_lines_that_do_not_hold_what_is_looked_for_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b'{"a":1}\n{"b":2}\nno object\n{"b":3}\n')
    reader = LineReader(path, holding=b'"b"')
    assert reader.read_new() == [({"b": 2}, 16), ({"b": 3}, 34)]
    assert reader.position == 34 and not reader.damaged
    reader.close()


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(LINES[0])
    (tmp_path / "x.jsonl").symlink_to(tmp_path / "secret")
    with pytest.raises(SpoolCorrupt):
        LineReader(tmp_path / "x.jsonl").read_new()


def test_iterating_ends_where_the_file_ends(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    assert list(iterate_lines(path)) == []
    path.write_bytes(b"".join(LINES) + b'{"seq":3}')
    assert [line["seq"] for line in iterate_lines(path)] == [0, 1, 2]


@pytest.mark.parametrize("size", [0, 10, 65536, 300_000])
def test_the_last_line_of_every_cut(tmp_path: Path, size: int) -> None:
    path = tmp_path / "x.jsonl"
    content = LINES[0] + LINES[1] + b'{"seq":2,"x":"' + b"y" * size + b'"}\n' + LINES[2]
    ends = [place + 1 for place in range(len(content)) if content[place : place + 1] == b"\n"]
    cuts = range(len(content) + 1) if size < 100 else {end + near for end in ends for near in (-1, 0, 1)}
    for cut in cuts:
        path.write_bytes(content[:cut])
        whole = [end for end in ends if end <= cut]
        record, end = last_line(path)
        assert end == (whole[-1] if whole else 0)
        assert record == (parse_line(content[:end].splitlines(keepends=True)[-1]) if whole else None)


def test_there_is_no_last_line(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    assert last_line(path) == (None, 0)
    for content in (b"", b"{", b"\0" * 10, b'{"seq":1}', b"x" * 200_000):
        path.write_bytes(content)
        assert last_line(path) == (None, 0)


@pytest.mark.parametrize("bad", DAMAGED, ids=lambda bad: repr(bad[:12]))
def test_behind_the_last_whole_line_may_be_damaged_ones(tmp_path: Path, bad: bytes) -> None:
    """What follows the last line that can be read is no part of the journal, and nothing is counted from zero."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(LINES[0] + LINES[1] + bad + bad)
    assert last_line(path) == (parse_line(LINES[1]), len(LINES[0] + LINES[1]))


@pytest.mark.parametrize("bad", [b'{"sfq":2}\n', b'{"seq":"2"}\n', b'{"seq":2.5}\n', b'{"seq":true}\n', b"{}\n"])
def test_a_line_without_its_number_is_a_damaged_one(tmp_path: Path, bad: bytes) -> None:
    """One bit is enough for that; the conversation must still open."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(LINES[0] + LINES[1] + bad)
    assert last_line(path) == (parse_line(LINES[1]), len(LINES[0] + LINES[1]))


def test_what_is_a_line() -> None:
    assert parse_line(b'{"n":1}\n') == {"n": 1}
    assert parse_line(b"{}") == {}
    for bad in DAMAGED:
        assert parse_line(bad) is None


@pytest.mark.parametrize("piece", [1, 7, 64, 128 * 1024])
def test_lines_backwards_are_those_forwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    monkeypatch.setattr(line_reader, "_SOME", piece)
    path = tmp_path / "x.jsonl"
    assert list(iterate_lines_back(path)) == []
    content = b"".join([*LINES, b"\n", b"[1]\n", b"\x00\x00" + LINES[0], b'{"seq":3,"text":"' + b"x" * 300 + b'"}\n'])
    for end in range(len(content) + 1):
        path.write_bytes(content[:end])
        forwards = list(iterate_lines(path))
        assert list(iterate_lines_back(path)) == forwards[::-1]
    assert [line["seq"] for line in iterate_lines_back(path, len(b"".join(LINES[:2])))] == [1, 0]


@pytest.mark.parametrize("piece", [1, 7, 64, 128 * 1024])
def test_the_line_of_a_number_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    monkeypatch.setattr(line_reader, "_SOME", piece)
    path = tmp_path / "x.jsonl"
    assert line_of_seq(path, 1) == 0
    lines = [b'{"seq":%d,"text":"%s"}\n' % (seq, b"x" * (seq * 37 % 90)) for seq in range(0, 80, 2)]
    lines.insert(11, b"{damaged\n")
    lines.insert(30, b'{"text":"no number"}\n')
    path.write_bytes(b"".join(lines))
    for seq in range(-1, 82):
        place = line_of_seq(path, seq)
        behind = LineReader(path, place)
        found = [line["seq"] for line, _ in behind.read_new() if "seq" in line]
        assert found == [number for number in range(0, 80, 2) if number >= seq]
        behind.close()


def test_a_page_from_the_end_reads_the_end_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"".join([b'{"seq":%d,"text":"%s"}\n' % (seq, b"x" * 500) for seq in range(10_000)]))
    read = ReadBytes(monkeypatch)
    backwards = iterate_lines_back(path)
    assert [next(backwards)["seq"] for _ in range(100)] == list(range(9999, 9899, -1))
    backwards.close()  # type: ignore[attr-defined]
    assert read.count <= 256 * 1024
    line_of_seq(path, 5000)
    assert read.count <= 2 * 1024 * 1024
