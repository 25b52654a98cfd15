"""What `blockpty shell-init` prints, in real shells: nothing is seen of it, and nothing of the user's is changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from blockpty.host.injection import init_text, offered_hooks

from .conftest import NONCE, Terminal

SHELLS = [pytest.param(name, marks=pytest.mark.needs(name)) for name in ("bash", "zsh", "fish")]
# What a user has set that a careless hook would trip over.
STRICT = {
    "bash": "set -u; trap 'echo ERR' ERR; PROMPT_COMMAND='(exit 9)'",
    "zsh": "setopt no_unset; trap 'echo ERR' ZERR",
    "fish": "",
}


def text_of(shell: str, directory: Path) -> str:
    return init_text(shell, str(directory)).decode()


def prompted(terminal: Terminal) -> Terminal:
    terminal.until_text(b"ready> ")
    return terminal


def answer(terminal: Terminal, line: str) -> str:
    """Type a line that prints `ans=` and something, and return that."""
    terminal.type(line + "\r")
    terminal.until_text(b"ans=")
    found = terminal.until_text(b"\r\n").decode().strip()
    terminal.until_text(b"ready> ")
    return found


@pytest.mark.parametrize("shell", SHELLS)
def test_it_is_silent_and_keeps_status_and_settings(
    shell: str, open_terminal: Callable[..., Terminal], tmp_path: Path
) -> None:
    directory = tmp_path / "it's"
    directory.mkdir()
    once = text_of(shell, directory)
    terminal = prompted(open_terminal(shell, f"{STRICT[shell]}\n{once}\n{once}", bare=True))
    assert (directory / str(terminal.pid)).read_text() == f"{shell}\n"
    status = "$status" if shell == "fish" else "$?"
    terminal.type("sh -c 'exit 7'\r")
    terminal.until_text(b"ready> ")
    assert answer(terminal, f"echo an''s={status}") == "7"
    if shell != "fish":
        terminal.type(": last-word\r")
        terminal.until_text(b"ready> ")
        assert answer(terminal, "echo an''s=$_") == "last-word"
    exported = "(env | grep -i bpty | wc -l)"
    assert answer(terminal, f"echo an''s={'' if shell == 'fish' else '$'}{exported}") == "0"
    assert b"7717" not in terminal.data and b"command not found" not in terminal.data and b"unset" not in terminal.data
    if shell == "bash":
        assert answer(terminal, "echo an''s=$(printf '%s\\n' \"${PROMPT_COMMAND[@]}\" | grep -c blockpty)") == "1"
        # A line that was half typed is there again behind the key.
        terminal.type("echo an''s=ha")
        terminal.type("\x1b[7716~")
        terminal.until_text(b"ready> ")
        terminal.type("lf\r")
        terminal.until_text(b"ans=half")
    if shell == "zsh":
        assert answer(terminal, "echo an''s=${(M)#precmd_functions:#*blockpty*}") == "1"


@pytest.mark.parametrize("shell", SHELLS)
def test_an_offer_is_taken_once_at_the_next_prompt(
    shell: str, open_terminal: Callable[..., Terminal], tmp_path: Path
) -> None:
    directory = tmp_path / "shells"
    directory.mkdir()
    terminal = prompted(open_terminal(shell, text_of(shell, directory), bare=True))
    path = directory / f"{terminal.pid}.offer"
    hooks = offered_hooks(shell, directory=str(terminal.directory), file=str(path), nonce=NONCE)
    path.write_bytes(hooks)
    # Another user's file is not read.
    if os.geteuid() == 0:
        os.chown(path, 12345, -1)
        assert answer(terminal, "echo an''s=no") == "no" and b"7717" not in terminal.data
        os.chown(path, 0, -1)
    terminal.type("echo an''s=yes\r")
    assert {"__HELLO__", "__CWD__", "__END__"} <= {mark.kind for mark in terminal.until()}
    run = terminal.run("cd /usr; sh -c 'exit 3'")
    assert (run.status, run.output) == (3, b"")
    history = {"bash": "echo $HISTFILE", "zsh": "echo $HISTFILE$options[banghist]", "fish": "echo $fish_history"}
    assert str(terminal.directory) not in (said := terminal.run(history[shell]).output.decode())
    assert shell != "zsh" or said.strip().endswith("on")
    # The file is still there, and is not taken again.
    assert [mark.kind for mark in terminal.marks()].count("__HELLO__") == 1


@pytest.mark.parametrize("shell", [pytest.param("bash", marks=pytest.mark.needs("bash"))])
def test_without_its_directory_nothing_happens(
    shell: str, open_terminal: Callable[..., Terminal], tmp_path: Path
) -> None:
    terminal = prompted(open_terminal(shell, text_of(shell, tmp_path / "gone"), bare=True))
    assert answer(terminal, "echo an''s=${PROMPT_COMMAND-}${__blockpty_pid-}") == ""
