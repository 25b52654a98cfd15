"""Holes: the beginning of a file reads as zeros, takes no space, and its length stays."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from blockpty.files.holes import first_data, punch


@pytest.mark.linux
def test_the_beginning_of_a_file_becomes_a_hole(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w+b") as file:
        file.write(b"x" * 100_000)
        file.flush()
        assert first_data(file.fileno()) == 0
        try:
            punch(file.fileno(), 65536)
        except OSError as problem:
            assert problem.errno == errno.EOPNOTSUPP  # noqa: PT017  a file system without holes says so
            return
        assert first_data(file.fileno()) in (0, 65536)
        assert os.pread(file.fileno(), 65538, 0) == b"\0" * 65536 + b"xx"
        assert os.fstat(file.fileno()).st_size == 100_000


def test_a_file_that_cannot_be_asked_begins_at_its_beginning() -> None:
    read, write = os.pipe()
    try:
        assert first_data(read) == 0
    finally:
        os.close(read)
        os.close(write)
