"""The commands that move a file: they run in every shell there is, with what programs a machine has."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from blockpty.host.file_commands import ANSWER, FINISH, GET, PREPARE, file_command, typed_chunk

SHELLS = ("sh", "bash", "zsh", "fish")
NAMES = ("plain", "a b", "it's", "back\\slash", "\n", "-n", "$HOME*", "é")
needs_shells = pytest.mark.needs("bash", "zsh", "fish")


def said(shell: str, script: Sequence[str], *arguments: str, cwd: Path, path: str | None = None) -> list[list[str]]:
    """Run a command in a shell; return its answers, each in words."""
    found = subprocess.run(
        [shutil.which(shell) or shell, "-c", file_command(shell, script, *arguments)], cwd=cwd,
        env={**os.environ, **({"PATH": path} if path is not None else {})}, capture_output=True, check=True,
    )  # fmt: skip
    return [[answer[1].decode(), *answer[2].decode().split()] for answer in ANSWER.finditer(found.stdout)]


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("shell", SHELLS)
@needs_shells
def test_names_mean_the_same_in_every_shell(tmp_path: Path, shell: str) -> None:
    for name in NAMES:
        content, digest = name.encode(), digest_of(name.encode())
        assert said(shell, PREPARE, name, "part", "", cwd=tmp_path) == [["PART", "0", digest_of(b""), "-"]]
        (tmp_path / ".blockpty-part.part").write_bytes(content)
        assert said(shell, PREPARE, name, "part", "", cwd=tmp_path)[0][:3] == ["PART", str(len(content)), digest]
        assert said(shell, FINISH, name, "part", digest, "640", cwd=tmp_path) == [["DONE", digest]]
        assert (tmp_path / name).read_bytes() == content and (tmp_path / name).stat().st_mode & 0o777 == 0o640
        assert said(shell, GET, name, "99", cwd=tmp_path)[-1] == ["DONE", digest, "-"]
    assert sorted(os.listdir(tmp_path)) == sorted(NAMES)


def test_a_part_of_another_content_is_dropped(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("old")
    part = tmp_path / ".blockpty-part.part"
    part.write_bytes(b"wrong")
    assert said("sh", FINISH, "x", "part", digest_of(b"right"), "", cwd=tmp_path) == [["DIGEST", digest_of(b"wrong")]]
    assert (tmp_path / "x").read_text() == "old" and not part.exists()
    part.write_bytes(b"wrong")
    assert said("sh", PREPARE, "x", "part", "yes", cwd=tmp_path)[0][:2] == ["PART", "0"]


def test_the_mode_of_the_file_that_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "x").touch(0o600)
    (tmp_path / "x").chmod(0o751)
    (tmp_path / "link").symlink_to("x")
    said("sh", PREPARE, "link", "part", "", cwd=tmp_path)
    assert said("sh", FINISH, "link", "part", digest_of(b""), "", cwd=tmp_path)[0][0] == "DONE"
    assert (tmp_path / "link").is_symlink() and (tmp_path / "x").stat().st_mode & 0o777 == 0o751


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "long").write_bytes(b"123")
    for name, put, get in (
        (".", "EISDIR", "EISDIR"), ("fifo", "EINVAL", "EINVAL"), ("no/x", "ENOENT", "ENOENT"),
        ("dangling", "LINK", "ENOENT"), ("new/", "EISDIR", "ENOENT"),
    ):  # fmt: skip
        assert said("sh", PREPARE, name, "part", "", cwd=tmp_path) == [[put]]
        assert said("sh", GET, name, "9", cwd=tmp_path) == [[get]]
    assert said("sh", GET, "long", "2", cwd=tmp_path) == [["EFBIG", "3"]]
    (tmp_path / ".blockpty-part.part").symlink_to("long")
    assert said("sh", PREPARE, "x", "part", "", cwd=tmp_path) == [["EINVAL"]]


def test_another_program_that_does_the_same_will_do(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "x").write_bytes(b"\0\xff content")
    for program in ("sh", "wc", "head"):
        (tmp_path / "bin" / program).symlink_to(shutil.which(program) or program)
    path = str(tmp_path / "bin")
    digesting = ("sha256sum", "shasum", "openssl", "python3")
    for program in digesting:
        found = os.path.realpath(sys.executable) if program == "python3" else shutil.which(program)
        if found is None:
            continue
        (tmp_path / "bin" / program).symlink_to(found)
        answers = said("sh", GET, "x", "99", cwd=tmp_path, path=path)
        if program in ("openssl", "python3"):
            assert [answers[0], answers[-1][:2]] == [["DATA"], ["DONE", digest_of(b"\0\xff content")]]
        else:
            assert answers == [["TOOL", "base64", "openssl", "python3"]]
        (tmp_path / "bin" / program).unlink()
    assert said("sh", GET, "x", "99", cwd=tmp_path, path=path) == [["TOOL", *digesting]]


def test_a_chunk_is_short_lines_with_an_end() -> None:
    data = bytes(range(256)) * 4
    *lines, end, nothing = typed_chunk(data).split(b"\n")
    assert (end, nothing) == (b"-", b"") and max(map(len, lines)) <= 76
    assert base64.b64decode(b"".join(lines)) == data
