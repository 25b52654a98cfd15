"""Files that were made to do harm, and texts of headers: refused with the place, or made harmless."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from blockpty.errors import BadRequest
from blockpty.runtime.importing.writer import import_file
from tests.support.imports import HEADER, cast

DEEP = "[" * 100_000
HOSTILE: list[tuple[str, bytes, str]] = [
    ("empty", b"", "no recording"),
    ("binary", bytes(range(256)) * 10, "no recording"),
    ("elf", b"\x7fELF" + bytes(100), "no recording"),
    ("prose", b"hello\nworld\n", "no recording"),
    ("an array", b"[1, 2]\n", "not an asciicast"),
    ("deep", DEEP.encode(), "not an asciicast"),
    ("no version", b'{"width": 80, "height": 24}\n', "not an asciicast"),
    ("a later version", b'{"version": 4}\n', "version '4' is not known"),
    ("a version that is no number", b'{"version": "2"}\n', "version '2' is not known"),
    ("no size", b'{"version": 2}\n', "line 1: a terminal cannot have None columns"),
    ("no size in 3", b'{"version": 3, "term": 5}\n', "line 1: a terminal cannot have None columns"),
    ("a huge size", b'{"version": 2, "width": 1000000000, "height": 1}\n', "line 1: a terminal cannot"),
    ("a negative size", b'{"version": 2, "width": -1, "height": 1}\n', "line 1: a terminal cannot"),
    ("a flag for a size", b'{"version": 2, "width": true, "height": 1}\n', "line 1: a terminal cannot"),
    ("a time before all times", b'{"version": 2, "width": 9, "height": 9, "timestamp": -5}\n', "lies before"),
    ("a time of no clock", b'{"version": 2, "width": 9, "height": 9, "timestamp": 1e300}\n', "hundred years"),
    ("no event", b'{"version": 2, "width": 9, "height": 9}\n{}\n', "line 2: no event"),
    ("a short event", b'{"version": 2, "width": 9, "height": 9}\n[1, "o"]\n', "line 2: no event"),
    ("no JSON", b'{"version": 2, "width": 9, "height": 9}\n[0, "o", "x"]\nnonsense\n', "line 3: no event"),
    ("deep event", b'{"version": 2, "width": 9, "height": 9}\n' + DEEP.encode() + b"\n", "line 2: no event"),
    ("no text", b'{"version": 2, "width": 9, "height": 9}\n[0, "o", 5]\n', "line 2: the data"),
    ("no time", b'{"version": 2, "width": 9, "height": 9}\n["x", "o", "x"]\n', "line 2: 'x' is not a time"),
    ("NaN", b'{"version": 2, "width": 9, "height": 9}\n[NaN, "o", "x"]\n', "is not a time"),
    ("infinity", b'{"version": 2, "width": 9, "height": 9}\n[1e999, "o", "x"]\n', "is not a time"),
    ("a time before the begin", b'{"version": 3, "term": {"cols": 9, "rows": 9}}\n[-1, "o", "x"]\n', "lies before"),
    ("many years", b'{"version": 3, "term": {"cols": 9, "rows": 9}}\n' + b'[3e9, "o", "x"]\n' * 3, "hundred years"),
    ("a bad resize", b'{"version": 2, "width": 9, "height": 9}\n[0, "r", "0x9"]\n', "line 2: a terminal"),
    ("a worse resize", b'{"version": 2, "width": 9, "height": 9}\n[0, "r", "axb"]\n', "line 2: a terminal"),
    ("version 1 without output", b'{"version": 1, "width": 9, "height": 9}', "not one of version 1"),
    ("a bad event of 1", b'{"version": 1, "width": 9, "height": 9, "stdout": [[1]]}', r"stdout\[0\]: no event"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "message"), [one[1:] for one in HOSTILE], ids=[one[0] for one in HOSTILE])
def test_hostile_files_are_refused_with_the_place(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "evil.cast"
    path.write_bytes(content)
    with pytest.raises(BadRequest, match=message) as caught:
        import_file(tmp_path / "h", "i", path, None, threading.Event())
    assert caught.value.hint and "evil.cast" in str(caught.value)
    assert list((tmp_path / "h").rglob("*")) in ([], [tmp_path / "h" / "conversations"])


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ("nonsense\n", "no line of a timing file"),
        ("O x 5\n", "no delay"),
        ("O 0.1 -5\n", "no count"),
        ("O 0.1 5x\n", "no count"),
        ("O -1 5\n", "no delay"),
        ("O 99999999999 1\n", "hundred years"),
        ("S 0 SIGWINCH ROWS=0 COLS=5\n", "a terminal cannot"),
        ("0.1 x\n", "no count"),
        ("O " + "1" * 100_000 + "\n", "longer than"),
    ],
)
def test_hostile_times_are_refused_with_the_place(tmp_path: Path, times: str, message: str) -> None:
    (tmp_path / "a.log").write_bytes(b"Script started\n0123456789")
    (tmp_path / "a.log.timing").write_text(times)
    with pytest.raises(BadRequest, match=message) as caught:
        import_file(tmp_path / "h", "i", tmp_path / "a.log", None, threading.Event())
    assert "a.log.timing, line 1" in str(caught.value)


def test_lone_surrogates_and_titles_with_control_characters(tmp_path: Path) -> None:
    header = {**HEADER, "title": "a\nb\u001b[31m\ud800", "env": {"SHELL": "/x/\ud800"}}
    path = cast(tmp_path / "a.cast", header, [0, "o", "x\ud83dy"], [1, "m", "cmd\udc00"])
    result = import_file(tmp_path / "h", "i", path, None, threading.Event())
    assert result.imported_bytes == len("x\ufffdy".encode())
