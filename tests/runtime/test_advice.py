"""What is said of a program that has not ended, by what is known of it."""

from __future__ import annotations

from typing import Any

import pytest

from blockpty.host.client import Inspected
from blockpty.runtime.advice import advice


def seen(**known: Any) -> Inspected:
    return Inspected(0, 0, True, foreground="child", **known)


@pytest.mark.parametrize(
    ("inspected", "tty", "reason", "said"),
    [
        (seen(foreground_name="git", reader="less"), "alt_screen", "input",
         "less waits for a key: send_keys 'q' ends it"),
        (seen(reader="vim.basic"), "alt_screen", "input",
         "vim.basic waits for a key: send_keys '[ESC]:qa![ENTER]' ends it"),
        (seen(reader="nano"), "raw", "input", "nano waits for a key: send_keys '^X' ends it"),
        (seen(reader="python3.11"), "raw", "timeout",
         "python3.11 waits for keys: send_line types a line, send_keys keys; 'exit()' ends it"),
        (seen(reader="whiptail"), "raw", "input", "whiptail waits for keys: send_line types a line, send_keys keys"),
        (seen(reader="cat"), "reads_line", "input",
         "cat asks for a line: send_line types it, ctrl_d ends the input"),
        (seen(foreground_name="sudo"), "password", "password",
         "sudo asks for a password: do not guess it; request_user_input asks a person to type it"),
        (seen(foreground_name="cc1", quiet_ms=12_345), "running", "timeout",
         "cc1 runs and has printed nothing for 12 s: keep waiting, or interrupt it"),
        (seen(foreground_name="make", quiet_ms=200), "running", "timeout",
         "make runs and prints: keep waiting, or interrupt it"),
        (seen(foreground_name="ssh", quiet_ms=9000), "raw", "timeout",
         "ssh passes the terminal on, and what waits at its other end is not seen here: "
         "wait for a text, or give its shell hooks with enter_shell"),
        (seen(foreground_name="vim", stopped=True), "running", "timeout",
         "vim is stopped: interrupt ends it, `kill -CONT` resumes it"),
    ],
)  # fmt: skip
def test_what_to_do(inspected: Inspected, tty: str, reason: str, said: str) -> None:
    assert advice(inspected, tty, reason) == said


def test_the_shell_itself_has_no_name_of_a_program() -> None:
    builtin = Inspected(0, 0, True, foreground="shell", foreground_name="bash", reader="bash")
    assert advice(builtin, "reads_line", "input") == (
        "the command asks for a line: send_line types it, ctrl_d ends the input"
    )
