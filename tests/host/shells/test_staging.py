"""Staged commands and the lines that submit them: read back by the shells themselves as they were meant."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blockpty.errors import BadRequest
from blockpty.host import shells

NAME = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)


def test_submit_line_forms() -> None:
    assert shells.submit_line("/a b/1") == " . '/a b/1'"
    assert shells.submit_line("/it's!\n") == " . $'/it\\x27s\\x21\\x0a'"
    assert shells.submit_line("/a b/1", "fish") == " __bpty_begun; . '/a b/1'; __bpty_over"
    assert shells.submit_line("/it's é/1", "fish") == " __bpty_begun; . /it\\X27s\\X20\\Xc3\\Xa9/1; __bpty_over"
    assert shells.submit_line("/it's é/1", "dash") == " . '/it'\\''s é/1'"
    for path in ("relative", "", "/nul\0"):
        with pytest.raises(BadRequest):
            shells.submit_line(path)
    with pytest.raises(BadRequest):
        shells.submit_line("/escape\x1b", "dash")


@pytest.mark.parametrize("text", [
    "echo a &&", "echo a\necho b ||", "echo a |", "echo a |&  # comment", "echo a &&\n# comment\n", "f()", "f ( )",
    "function f", "for i in 1 2", "select i in 1 2", "echo a \\", "cat <<END", "# comment alone", "",
])  # fmt: skip
def test_what_is_not_whole_is_not_completed(text: str) -> None:
    assert not shells.is_settled(text)


@pytest.mark.parametrize(
    "text",
    ["echo a", "echo a &", "echo a;", "(echo a)", "f() { echo a; }", "for i in 1; do echo $i; done", "echo a # b"],
)
def test_what_is_whole_is_followed_by_ours(text: str) -> None:
    assert shells.is_settled(text)


def test_a_long_line_is_not_searched_as_a_whole() -> None:
    """In all of it the search would take hours: for each word up to the end."""
    assert shells.is_settled("for " * 1_000_000 + "; x")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@given(path=NAME)
def test_quoting_is_read_back(shell: str, path: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    line = shells.submit_line(f"/{path}", shell)
    assert line.isascii() and line.isprintable()
    command = "printf %s" + line[line.index(" . ") + 2 :].removesuffix("; __bpty_over")
    option = "-Nc" if shell == "fish" else "-fc"
    assert subprocess.run([shell, option, command], capture_output=True, check=True).stdout == f"/{path}".encode()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "dash"])
@pytest.mark.parametrize("name", ["a b", "it's", "back\\slash", "-dash", "new\nline", "ünïcödé", '$(x)`x`"', "!"])
def test_directory_is_read_back(tmp_path: Path, shell: str, name: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / name).mkdir()
    staged = tmp_path / "1"
    for cwd in (name, str(tmp_path / name)):
        staged.write_bytes(shells.stage("/bin/pwd", cwd, shell))
        run = subprocess.run([shell, "-c", f". {staged}"], cwd=tmp_path, capture_output=True, check=True)
        assert run.stdout == os.fsencode(tmp_path / name) + b"\n"
    staged.write_bytes(shells.stage("echo reached", "none", shell))
    run = subprocess.run([shell, "-c", f". {staged}"], cwd=tmp_path, capture_output=True, check=False)
    assert (run.stdout, run.returncode != 0) == (b"", True)


def test_stage_forms() -> None:
    assert shells.stage("echo hi") == b"echo hi\n"
    assert shells.stage("echo hi\n") == b"echo hi\n"
    assert shells.stage("") == b"\n"
    assert shells.stage("x", "/it's") == b"\\builtin cd -- '/it'\\''s' || \\builtin return; x\n"
    assert shells.stage("x", "-").startswith(b"\\builtin cd -- './-' ")
    assert shells.stage(os.fsdecode(b"\xff")) == b"\xff\n"
    for arguments in (("a\0b",), ("a", ""), ("a", "\0"), ("\ud800",)):
        with pytest.raises(BadRequest):
            shells.stage(*arguments)


@pytest.mark.parametrize("shell", ["bash", "zsh"])
@pytest.mark.parametrize("cwd", [None, "/"])
@pytest.mark.parametrize(("command", "output"), [
    ("echo a\\", "a\n"),
    ("cat <<E\nhi\nE", "hi\n"),
    ("echo a # comment", "a\n"),
    ("# only a comment", ""),
    ("echo a;", "a\n"),
    ("echo a &\nwait", "a\n"),
    ("if true\nthen echo yes\nfi", "yes\n"),
    ("(echo sub)", "sub\n"),
    ("\n\necho late", "late\n"),
    ("f() { echo in f; }; f", "in f\n"),
    ("! false && echo not", "not\n"),
    ("", ""),
])  # fmt: skip
def test_stage_keeps_the_meaning(tmp_path: Path, shell: str, cwd: str | None, command: str, output: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    staged = tmp_path / "1"
    staged.write_bytes(shells.stage(command, cwd))
    result = subprocess.run([shell, "-fc", f". {staged}"], capture_output=True, text=True, check=False)
    assert (result.stdout, result.stderr) == (output, "")
