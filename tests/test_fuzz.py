"""tools/fuzz: a short run of every target finds nothing, a case can be run again, and it can find something."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.profile import LONG
from tools.fuzz import material, pure

TOP = Path(__file__).resolve().parents[1]
# In a long run three times as many.
CASES = {
    name: cases * (3 if LONG else 1)
    for name, cases in {
        "scanner": 50, "machine": 7, "screen": 5, "redaction": 10, "readers": 7, "recovery": 4, "requests": 100,
        "operations": 1,
    }.items()
}  # fmt: skip


def fuzz(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(TOP / "tools" / "fuzz"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=110, env=os.environ)


@pytest.mark.linux
@pytest.mark.slow
@pytest.mark.needs("bash")
@pytest.mark.parametrize("target", [*CASES])
def test_a_short_run_finds_nothing(target: str) -> None:
    # Always the same cases: what a run finds must be what it was changed by. Other seeds are for the long runs.
    done = fuzz("--target", target, "--seed", "1", "--cases", str(CASES[target]))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("seed ") and f"{target}: {CASES[target]} cases" in done.stdout


def test_it_can_find_something(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scanner that lets a byte pass twice where it is cut is found out."""
    right = pure.scanned
    monkeypatch.setattr(pure, "scanned", lambda data, cuts=(): right(data, cuts)[: -1 if len([*cuts]) > 3 else None])

    def scan() -> None:
        for number in range(50):
            pure.scanner(random.Random(number))

    with pytest.raises(AssertionError):
        scan()


def test_the_same_seed_draws_the_same() -> None:
    assert material.output(random.Random("7 x 1")) == material.output(random.Random("7 x 1"))


def test_an_unknown_target_is_refused() -> None:
    assert fuzz("--target", "nothing").returncode == 2
