"""tools/install: uv is given what pip is set to, and where it fails pip does the work."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest

from tests.support.tool_scripts import load_tool

LISTED = """
:env:.find-links='/wheels'
:env:.disable-pip-version-check='1'
global.find-links='/elsewhere /more'
global.index-url='https://packages.example/simple'
global.extra-index-url='https://one.example/simple https://two.example/simple'
global.constraint='/constraints.txt'
download.constraint='/only-for-downloads.txt'
install.trusted-host='packages.example'
no equals sign
"""


@pytest.fixture
def install() -> ModuleType:
    return load_tool("install")


def test_uv_takes_what_pip_is_set_to(install: ModuleType) -> None:
    assert install.uv_variables(LISTED) == {
        "UV_FIND_LINKS": "/wheels",
        "UV_DEFAULT_INDEX": "https://packages.example/simple",
        "UV_INDEX": "https://one.example/simple https://two.example/simple",
        "UV_CONSTRAINT": "/constraints.txt",
        "UV_INSECURE_HOST": "packages.example",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
    }
    assert install.uv_variables("global.find-links='/one /two'")["UV_FIND_LINKS"] == "/one,/two"


@pytest.mark.parametrize("lacks", ["uv", "a build", "nothing"])
def test_pip_does_what_uv_cannot(
    lacks: str, install: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        words = command[1:]
        ran.append(words)
        gets_uv, uses_uv = words[-1] == "uv", words[:2] == ["-m", "uv"]
        fails = (gets_uv and lacks == "uv") or (uses_uv and lacks == "a build")
        return subprocess.CompletedProcess(command, int(fails), "", "no such package\n")

    monkeypatch.setattr(install.subprocess, "run", run)
    monkeypatch.setattr(sys, "argv", ["install", "--compile", ".[all]"])
    assert install.main() == 0
    last = ran[-1]
    assert last[-2:] == ["--editable", ".[all]"]
    assert ("uv" if lacks == "nothing" else "pip") == last[1]
    assert ("--compile-bytecode" if lacks == "nothing" else "--compile") in last
    assert ("no such package" in capsys.readouterr().err) == (lacks == "a build")
