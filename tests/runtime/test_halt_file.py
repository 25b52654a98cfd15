"""The file that halts agents everywhere: noticed by others, and never read as less than it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from blockpty.files import opening
from blockpty.runtime.halt_file import NAME, HaltFile


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "CHECK_SECONDS", 0.0)


def test_another_engine_notices(tmp_path: Path) -> None:
    one, other = HaltFile(tmp_path), HaltFile(tmp_path)
    assert one.who() is None
    one.set("ann")
    assert (one.who(), other.who(), HaltFile(tmp_path).who()) == ("ann", "ann", "ann")
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o600
    other.clear()
    assert (one.who(), other.who()) == (None, None)
    other.clear()  # there is nothing left to do


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'{"who": 3}', b'{"format": 1}'])
def test_a_damaged_file_halts_all_the_same(tmp_path: Path, content: bytes) -> None:
    (tmp_path / NAME).write_bytes(content)
    assert HaltFile(tmp_path).who()


def test_so_does_what_is_no_file(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    assert HaltFile(tmp_path).who()
