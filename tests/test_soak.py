"""tools/soak: a short run finds nothing, and it can find something. Nights are made by its long run."""

from __future__ import annotations

import os
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from tests.support.profile import LONG
from tools.soak.__main__ import SECRET, TAIL_BYTES, Soak

TOP = Path(__file__).resolve().parents[1]


def soak(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(TOP / "tools" / "soak"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=115, env=os.environ)


@pytest.mark.linux
@pytest.mark.slow
@pytest.mark.needs("bash")
@pytest.mark.parametrize(
    "faults", [("engine", "recorder"), ("keeper", "shell"), ("derived", "stop"), ("full", "index")]
)
def test_a_short_run_finds_nothing(faults: tuple[str, str]) -> None:
    which = [part for fault in faults for part in ("--fault", fault)]
    done = soak("--faults", "3" if LONG else "2", "--conversations", "2", "--pause", "0.3", "--minutes", "1", *which)
    assert done.returncode == 0, done.stdout + done.stderr
    last = done.stdout.splitlines()[-1]
    assert last.endswith(" 0 wrong") and not last.startswith("0 faults")


def test_it_finds_a_changed_stream_and_a_password(tmp_path: Path) -> None:
    stream = tmp_path / "home" / "conversations" / "c0" / "stream" / f"{0:020d}"
    stream.parent.mkdir(parents=True)
    stream.write_bytes(b"what was there")
    one = Soak(tmp_path, 1, 1, tmp_path / "evidence")
    one._only_grown("c0", "nothing")
    assert one.wrong == [] and one.seen["c0"][:3] == (0, 14, zlib.crc32(b"what was there"))
    stream.write_bytes(b"what was There, and more")
    one._only_grown("c0", "a test")
    assert len(one.wrong) == 1 and "no continuation" in one.wrong[0]
    (tmp_path / "home" / "note").write_text(f"x{SECRET}x")
    one._no_secret("a test")
    assert len(one.wrong) == 2 and "a password is in note" in one.wrong[1]


def test_it_keeps_the_home_as_it_was_when_something_was_wrong_first(tmp_path: Path) -> None:
    place, evidence = tmp_path / "place", tmp_path / "evidence"
    (place / "home").mkdir(parents=True)
    (place / "home" / "note").write_text("as it was")
    (place / "c0.facts").write_text("known")
    os.mkfifo(place / "home" / "pipe")
    one = Soak(place, 1, 1, evidence)
    one.keep_evidence()
    assert not evidence.exists(), "nothing is wrong"
    one.wrong.append("something")
    one.keep_evidence()
    (place / "home" / "note").write_text("later")
    one.keep_evidence()
    kept = {path.relative_to(evidence).as_posix() for path in evidence.rglob("*")}
    assert kept == {"home", "home/note", "c0.facts"}
    assert (evidence / "home" / "note").read_text() == "as it was"


def test_a_beginning_that_is_not_kept_is_no_change(tmp_path: Path) -> None:
    place = tmp_path / "home" / "conversations" / "c0" / "stream"
    place.mkdir(parents=True)
    (place / f"{0:020d}").write_bytes(b"x" * TAIL_BYTES)
    (place / f"{TAIL_BYTES:020d}").write_bytes(b"y" * TAIL_BYTES + b"z")
    one = Soak(tmp_path, 1, 1, tmp_path / "evidence")
    one._only_grown("c0", "nothing")
    (place / f"{0:020d}").unlink()
    one._only_grown("c0", "nothing")
    assert one.wrong == [] and one.dropped == {"c0"}
    (place / f"{TAIL_BYTES:020d}").write_bytes(b"y" * TAIL_BYTES + b"Z and more")
    one._only_grown("c0", "a test")
    assert len(one.wrong) == 1


def test_it_finds_what_grows(tmp_path: Path) -> None:
    one = Soak(tmp_path, 1, 1, tmp_path / "evidence")
    one.sizes = {"recorder": [(10_000, 20)] * 6 + [(90_000, 20)] * 6, "keeper": [(10_000, 20)] * 12}
    assert len([*one.grown()]) == 2
    assert one.wrong == ["recorder grew"]
