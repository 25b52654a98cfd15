"""tools/words finds the words, and only them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parents[1]


def words(*paths: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(TOP / "tools" / "words"), *map(str, paths)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_words_are_found(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("Fine.\nIt is Laid\nto rest, and self._bite is run.\n")
    found = words(tmp_path)
    assert found.returncode == 1
    lines = found.stdout.splitlines()
    assert [line.partition(" (")[0] for line in lines[:2]] == [
        f"{tmp_path}/page.md:2: laid to rest",
        f"{tmp_path}/page.md:3: bite",
    ]


def test_each_form_of_a_word_is_found(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(
        "Mended, taken\nup and taken_up; it stood back and let_go.\nSecrets are covered.\n"
    )
    lines = words(tmp_path).stdout.splitlines()
    assert [line.partition(":")[2] for line in lines[:6]] == [
        "1: mended (instead: recover, repair)",
        "1: taken up (instead: attached, resumed)",
        "2: taken_up (instead: attached, resumed)",
        "2: stood back (instead: lowers its CPU share)",
        "2: let_go (instead: detach, close, release)",
        "3: secrets are covered (instead: redacted)",
    ]


def test_names_that_cannot_change_are_not(tmp_path: Path) -> None:
    (tmp_path / "page.py").write_text(
        'ask("mend")  # words: on the wire\nread("told")  # words: on disk\nuser = "nobody"  # words: on the system\n'
        "MEND = 1\n"
    )
    assert words(tmp_path).returncode == 0


def test_names_of_tests_are_searched_too(tmp_path: Path) -> None:
    (tmp_path / "test_page.py").write_text("def test_a_reader_is_told() -> None: ...\n")
    assert words(tmp_path).returncode == 1


def test_parts_of_other_words_are_not(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("An arbiter bites; he is untold, and recommending it.\n")
    found = words(tmp_path)
    assert (found.returncode, found.stdout) == (0, "")
