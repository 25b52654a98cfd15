"""Start plans: what each family of shells is started with, and where its hooks and its secret are."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from blockpty.errors import BadRequest
from blockpty.host import shells
from tests.shellrc.conftest import NONCE

HOME = {"HOME": "/home/a", "PATH": os.environ["PATH"]}


def make(shell: str | None, **changes: object) -> shells.ShellPlan:
    options: dict[str, object] = {"directory": "/d", "instance": 2, "nonce": NONCE, "login": False, "inherited": HOME}
    return shells.plan(shell, **{**options, **changes})  # type: ignore[arg-type]


def test_bash_plan() -> None:
    plan = make("bash")
    name, content = plan.files[0]
    assert (plan.name, name, plan.secret_files) == ("bash", "rc/2/bashrc", ("rc/2/bashrc", "rc/2"))
    assert plan.argv[1:] == ("--rcfile", "/d/rc/2/bashrc", "-i")
    assert os.path.isabs(plan.argv[0])
    assert f"__bpty_n='{NONCE}'\n".encode() in content
    assert b"__bpty_login=0\n" in content


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_plan() -> None:
    plan = make("zsh", login=True, inherited={**HOME, "ZDOTDIR": "/it's"})
    name, content = plan.files[0]
    assert (plan.name, name, plan.argv[1:]) == ("zsh", "rc/2/.zshenv", ("-l", "-i"))
    assert plan.env["ZDOTDIR"] == "/d/rc/2"
    assert b"__bpty_zdotdir='/it'\\''s'\n" in content
    assert b"__bpty_zdotdir=" not in make("zsh").files[0][1]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "sh", "busybox"])
def test_nonce_only_in_files(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    plan = make(shell)
    assert NONCE not in repr(plan)
    assert NONCE not in repr((plan.argv, plan.env))


def test_other_shell_gets_no_hooks() -> None:
    env = shutil.which("env")
    plan = make(env)
    assert (plan.name, plan.argv, plan.files, plan.secret_files) == ("env", (env, "-i"), (), ())
    assert make("env", login=True).argv[1:] == ("-l", "-i")
    assert shells.family_of("env") is None


def test_fish_plan(tmp_path: Path) -> None:
    program = tmp_path / "fish"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    plan = make(str(program), directory="/it's \\", login=True)
    name, content = plan.files[0]
    assert (plan.name, name, plan.secret_files) == ("fish", "rc/2/blockpty.fish", ("rc/2/blockpty.fish", "rc/2"))
    assert plan.argv[:3] == (str(program), "-l", "-i")
    assert plan.argv[3:] == ("-C", "source '/it\\'s \\\\/rc/2/blockpty.fish'")
    assert content.startswith(f"set -gu __bpty_n '{NONCE}'\n".encode())


def test_posix_plan(tmp_path: Path) -> None:
    plan = make("/bin/sh", login=True, additions={"ENV": "/it's"})
    name, content = plan.files[0]
    assert (plan.name, name, plan.argv) == ("sh", "rc/2/blockpty.sh", ("/bin/sh", "-i"))
    assert plan.secret_files == ("rc/2/blockpty.sh", "rc/2")
    assert plan.env["ENV"] == "/d/rc/2/blockpty.sh"
    assert b"__bpty_env='/it'\\''s'\n" in content and b"__bpty_login=1\n" in content
    assert b"__bpty_env=" not in make("/bin/sh").files[0][1]
    with pytest.raises(BadRequest):
        make("/bin/sh", directory="/of $HOME")
    program = tmp_path / "busybox"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    assert make(str(program)).argv == (str(program), "ash", "-i")


@pytest.mark.parametrize("name", ["bash", "bash-5.1", "rbash", "bash5", "zsh", "zsh-5.9", "fish", "fish-4.0"])
def test_recognised_by_basename(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o700)
    assert make(str(path)).name == next(family for family in ("zsh", "bash", "fish") if family in name)
    assert make(None, inherited={**HOME, "SHELL": str(path)}).argv[0] == str(path)
    assert make(name, inherited={"PATH": str(tmp_path)}).argv[0] == str(path)


@pytest.mark.parametrize("changes", [
    {"directory": "relative"}, {"instance": 0}, {"nonce": "short"}, {"nonce": "x' ; rm ; '" + "y" * 16},
])  # fmt: skip
def test_bad_parameters(changes: dict[str, object]) -> None:
    with pytest.raises(BadRequest):
        make("bash", **changes)


def test_shellrc_is_found() -> None:
    folder = shells.shellrc_directory()
    assert (folder / "bash" / "blockpty.bash").is_file()
    assert (folder / "zsh" / "blockpty.zsh").is_file()
    assert (folder / "zsh" / "zshenv").is_file()
    assert (folder / "fish" / "blockpty.fish").is_file()
    assert (folder / "posix" / "blockpty.sh").is_file()
