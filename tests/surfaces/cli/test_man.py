"""The manual page: every command is in it, and man reads it without a complaint."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from blockpty.surfaces.cli.groups import GROUPS


def page() -> str:
    found = subprocess.run(
        [sys.executable, "-m", "blockpty", "man"], capture_output=True, text=True, check=True, timeout=60
    )
    return found.stdout


def test_every_command_is_there_with_its_options() -> None:
    text = page().replace(r"\-", "-")
    for group in GROUPS.values():
        for name in group:
            assert f'.SS "{name} ' in text, name
    assert "--timeout-ms DURATION" in text and "exit status" in text.lower()


def test_man_shows_it_without_a_warning() -> None:
    if shutil.which("groff") is None and shutil.which("mandoc") is None:
        pytest.skip("neither groff nor mandoc is here to read it")
    program = ["groff", "-man", "-Tutf8", "-ww", "-z"] if shutil.which("groff") else ["mandoc", "-Tlint", "-Werror"]
    found = subprocess.run(program, input=page(), capture_output=True, text=True, check=True, timeout=60)
    # Long words in a narrow column cannot be broken; anything else is a mistake of the page.
    assert [line for line in found.stderr.splitlines() if "break line" not in line and "adjust" not in line] == []
