"""tools/torture runs, finds nothing wrong, and can find something. The numbers are made by its long run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.profile import LONG
from tools.torture import files, report

TOP = Path(__file__).resolve().parents[1]
RUNS = (
    "engine", "recorder", "takeover", "keeper", "all", "power", "calls", "spawns", "recovery", "many", "files",
    "memory", "idle", "short", "forks",
)  # fmt: skip
# How many kills and the like; the others have the number of `--short`.
TRIES = {} if LONG else {"engine": 3, "recorder": 4, "takeover": 2, "power": 10, "memory": 3}


def torture(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(TOP / "tools" / "torture"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=110, env=os.environ)


@pytest.mark.linux
@pytest.mark.slow
@pytest.mark.parametrize("what", RUNS)
def test_a_short_run_finds_nothing(what: str) -> None:
    tries = ("--tries", str(TRIES[what])) if what in TRIES else ()
    done = torture("--short", *tries, what)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith("|")]
    assert rows
    assert all(row.endswith("| ok |") and "| 0 |" not in row for row in rows)


@pytest.mark.linux
@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system")
def test_a_small_disk_loses_nothing() -> None:
    done = torture("--short", "disk")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("| ok |") == 1


def test_it_can_find_something(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A recovery that leaves a torn line where it is is found out."""
    damaged = files.Damage(tmp_path, 1)
    whole = damaged.whole["events.jsonl"]
    assert damaged.look("events.jsonl", whole[:-5]) is None
    monkeypatch.setattr(damaged, "recover", lambda: files.disk.derived_files(damaged.layout))
    assert damaged.look("events.jsonl", whole[:-5]) is not None


def test_a_stream_with_bytes_in_its_middle_is_derived_anew_and_a_longer_one_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing tells that bytes before a checkpoint have changed; what lies behind it is taken without being asked."""
    damaged = files.Damage(tmp_path, 1)
    whole = damaged.whole[files.STREAM]
    # What is no mark of ours becomes an event at once.
    between, behind = whole[:-50] + b"more\r\n" + whole[-50:], whole + b"\x1b]7717;no mark\x07"
    assert damaged.look(files.STREAM, between) is None
    assert damaged.look(files.STREAM, behind) is None
    monkeypatch.setattr(damaged, "recover", lambda: files.disk.derived_files(damaged.layout))
    assert damaged.look(files.STREAM, between) is not None
    assert damaged.look(files.STREAM, behind) is not None


def test_an_unknown_name_is_refused() -> None:
    assert torture("nothing").returncode == 2


def test_the_page_has_a_place_for_every_run() -> None:
    page = report.PAGE.read_text("utf-8")
    for name in (*RUNS, "disk"):
        assert f"<!-- torture {name} -->" in page
        assert f"<!-- end {name} -->" in page
