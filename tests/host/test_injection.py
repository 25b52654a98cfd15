"""The line that asks an unknown shell what it is, and what is fed to it, in the shells themselves."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from blockpty.host.injection import answer_in, asking_line, fed_lines

TOKEN = "0123456789abcdef"


@pytest.mark.parametrize(
    ("shell", "name"), [("bash", "bash"), ("zsh", "zsh"), ("dash", ""), ("ksh", ""), ("mksh", "")]
)
def test_a_shell_says_what_it_is_and_runs_what_it_is_fed(shell: str, name: str) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"needs {shell}")
    # As it stands in a file and on standard input, the line ends with LF; a terminal makes that of CR.
    text = b"echo \"it's $((6*7))\"\nprintf '%s|' 'a\\b' \"!!\" '" + b"x" * 10_000 + b"'\n"
    line = asking_line(TOKEN, pasted=False).rstrip(b"\r")
    done = subprocess.run([program, "-c", line], input=fed_lines(text), capture_output=True, check=False)
    assert answer_in(done.stdout, TOKEN) == name
    if name:
        assert done.stdout.partition(b"\x07")[2] == b"it's 42\na\\b|!!|" + b"x" * 10_000 + b"|"
    unfed = fed_lines(b"") + b"echo no\n"
    nothing = subprocess.run([program, "-c", line], input=unfed, capture_output=True, check=False)
    assert nothing.stdout.partition(b"\x07")[2] == b""


def test_no_line_is_longer_than_a_terminal_takes() -> None:
    assert max(len(line) for line in fed_lines(b"\xff" * 20_000).split(b"\n")) < 4000
    assert all(32 <= byte < 127 or byte == 10 for byte in fed_lines(bytes(range(256))))


def test_the_echo_of_the_line_is_no_answer() -> None:
    line = asking_line(TOKEN, pasted=True)
    assert line.startswith(b" \x1b[200~") and line.endswith(b"\x1b[201~\r")
    assert answer_in(line, TOKEN) is None
    assert answer_in(b"\x1b]7716;" + TOKEN.encode() + b";ba", TOKEN) is None
    assert answer_in(b"\x1b]7716;other;bash\x07", TOKEN) is None
    assert answer_in(b"$ \x1b]7716;" + TOKEN.encode() + b";zsh\x07", TOKEN) == "zsh"
