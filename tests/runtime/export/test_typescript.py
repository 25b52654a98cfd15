"""Typescripts: scriptreplay plays every byte of them."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path

import pytest

from blockpty.runtime.export.writer import export
from blockpty.spool.masking import Mask
from tests.support.exports import saved, small_session


@pytest.mark.needs("scriptreplay")
def test_scriptreplay_plays_every_byte(tmp_path: Path) -> None:
    made = small_session()
    made.run("bytes", bytes(range(256)) + b"\r\n" + "\u00e9".encode() * 3000)
    source = saved(made, tmp_path)
    result = export(source, "typescript", 1, threading.Event())
    assert result.path is not None and result.timing_path is not None
    command = ["scriptreplay", "--divisor", "1000", "--log-out", result.path, "--timing", result.timing_path]
    played = subprocess.run(command, capture_output=True, timeout=30, check=True).stdout
    exact = Mask([made.NONCE]).hide(made.recording.stream)
    # It ends with a line end of its own.
    assert played == exact + b"\n"
    timing = Path(result.timing_path).read_text().splitlines()
    counts = [int(line.split()[2]) for line in timing if line.startswith("O ")]
    assert sum(counts) == len(exact)
    assert [line for line in timing if line.startswith("S")] == ["S 0.007000 SIGWINCH ROWS=30 COLS=100"]
    assert timing[-1] == "H 0.000000 EXIT_CODE 3"
