"""The names that our startup files give to things are ours alone: no framework that people load has them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Terminal

ROOT = Path(__file__).parents[2]
FRAMEWORKS = ROOT.parent / "shared" / "fixtures" / "startup"
_OURS = re.compile(rb"\w*(?:bpty|blockpty)\w*", re.IGNORECASE)
# Functions, variables and widgets of a shell, one a line.
_NAMES = {
    "bash": "compgen -A function -A variable",
    "zsh": "print -l ${(k)functions} ${(k)parameters} ${(k)widgets}",
    "fish": "functions -an; set -n",
}
# What the shells themselves set while they run, and what README.md says that the hooks set.
_KNOWN = {
    "bash": {"BASH_REMATCH", "COLUMNS", "HISTCMD", "HISTFILE", "LINES", "PIPESTATUS", "PROMPT_COMMAND", "PS0", "PS2"},
    "zsh": {"HISTFILE", "PROMPT_EOL_MARK", "preexec_functions", "precmd_functions", "zle-line-init"},
    "fish": {"argv", "fish_history"},
}


def _ours() -> set[bytes]:
    files = [path for path in (ROOT / "shellrc").rglob("*") if path.suffix in (".bash", ".zsh", ".fish", ".sh")]
    files += [ROOT / "shellrc" / "zsh" / "zshenv", *(ROOT / "blockpty" / "host" / "shells").rglob("*.py")]
    return {name for path in files for name in _OURS.findall(path.read_bytes())}


def test_no_framework_has_a_name_of_ours() -> None:
    if not FRAMEWORKS.is_dir():
        pytest.skip("the startup frameworks of ../shared/fixtures are not there")
    ours = _ours()
    assert b"__bpty_install" in ours
    found = {}
    for path in FRAMEWORKS.rglob("*"):
        if path.is_file():
            taken = {name for name in ours if name in path.read_bytes()}
            if taken:
                found[path.name] = taken
    assert found == {}


@pytest.mark.parametrize("shell", [pytest.param(name, marks=pytest.mark.needs(name)) for name in _NAMES])
def test_every_name_has_our_prefix(shell: str, open_terminal: Callable[..., Terminal]) -> None:
    """What a shell with hooks has that one without does not: `__bpty_` and a few documented names."""
    hooked = open_terminal(shell)
    hooked.start()
    run = hooked.run(_NAMES[shell])
    with_hooks = set(run.output.decode().split())
    bare = open_terminal(shell, bare=True)
    bare.type(f"{_NAMES[shell]}; echo all''done\r")
    without = set(bare.until_text(b"\nalldone").decode().split())
    assert {name for name in with_hooks - without if not name.startswith("__bpty_")} <= _KNOWN[shell]
    assert "__bpty_n" in with_hooks
