"""What host/shells/ hands to a shell: environment, arguments, quoting, staged text."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blockpty.errors import BadRequest, SpawnFailed
from blockpty.host import shells

from .conftest import NONCE, Terminal

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


def test_default_shell() -> None:
    bash = shutil.which("bash")
    assert make(None, inherited={**HOME, "SHELL": "/bin/sh"}).argv[0] == bash
    assert make(None, inherited={**HOME, "SHELL": "/does/not/exist/zsh"}).argv[0] == bash
    with pytest.raises(SpawnFailed):
        make(None, inherited={"PATH": "/does/not/exist"})


@pytest.mark.parametrize("shell", ["none-such", "/no/such/shell", "relative/bash", "", "/etc", "/etc/passwd", "bash\0"])
def test_unknown_shell(shell: str) -> None:
    with pytest.raises(SpawnFailed) as caught:
        make(shell)
    assert caught.value.hint


@pytest.mark.parametrize("changes", [
    {"directory": "relative"}, {"instance": 0}, {"nonce": "short"}, {"nonce": "x' ; rm ; '" + "y" * 16},
])  # fmt: skip
def test_bad_parameters(changes: dict[str, object]) -> None:
    with pytest.raises(BadRequest):
        make("bash", **changes)


def test_environment_is_an_allow_list() -> None:
    names = (
        "LD_PRELOAD LD_LIBRARY_PATH DYLD_INSERT_LIBRARIES BASH_ENV ENV PYTHONPATH PYTHONSTARTUP NODE_OPTIONS "
        "PROMPT_COMMAND PS0 PS1 PS2 PS4 BLOCKPTY_HOME BLOCKPTY_TOKEN SHELLOPTS SECRET_KEY __bpty_n BASH_FUNC_x%% "
        "HISTFILE"
    )
    unwanted = names.split()
    wanted = "HOME PATH USER LANG LC_CTYPE TZ XDG_RUNTIME_DIR SSH_AUTH_SOCK DISPLAY EDITOR TMPDIR".split()  # noqa: SIM905
    env = shells.clean_environment(dict.fromkeys((*unwanted, *wanted, "TERM"), "x"))
    assert env == {**dict.fromkeys(wanted, "x"), "TERM": "xterm-256color", "COLORTERM": "truecolor"}


def test_additions() -> None:
    env = shells.clean_environment(HOME, {"LD_PRELOAD": "/x.so", "BLOCKPTY_HOME": "/h", "TERM": "dumb", "MINE": ""})
    assert (env["LD_PRELOAD"], env["BLOCKPTY_HOME"], env["TERM"], env["MINE"]) == ("/x.so", "/h", "dumb", "")


@pytest.mark.parametrize("name", [*sorted(shells.REFUSED), "__bpty_n", "BASH_FUNC___bpty_pre%%", "", "a=b", "a\0b"])
def test_refused_additions(name: str) -> None:
    with pytest.raises(BadRequest):
        shells.clean_environment(HOME, {name: "x"})


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


NAME = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)


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
@pytest.mark.parametrize("name", ["a b", "it's", "back\\slash", "-dash", "new\nline", "ünïcödé", "$(x)`x`\"", "!"])
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


def test_shellrc_is_found() -> None:
    folder = shells.shellrc_directory()
    assert (folder / "bash" / "blockpty.bash").is_file()
    assert (folder / "zsh" / "blockpty.zsh").is_file()
    assert (folder / "zsh" / "zshenv").is_file()
    assert (folder / "fish" / "blockpty.fish").is_file()
    assert (folder / "posix" / "blockpty.sh").is_file()


@pytest.mark.linux
@pytest.mark.needs("strace")
@pytest.mark.parametrize(
    ("shell", "rc"),
    [("bash", "PROMPT_COMMAND='PS1=\"$PWD> \"'"), ("zsh", ""), ("fish", ""), ("dash", "")],
    ids=["bash", "zsh", "fish", "dash"],
)
def test_a_prompt_forks_nothing(open_terminal: Callable[..., Terminal], shell: str, rc: str, tmp_path: Path) -> None:
    terminal = open_terminal(shell, rc)
    terminal.start()
    trace = tmp_path / "trace"
    calls = "trace=clone,clone3,fork,vfork"
    command = ["strace", "-f", "-p", str(terminal.pid), "-e", calls, "-o", str(trace)]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as tracer:
        assert tracer.stderr is not None
        if b"attached" not in tracer.stderr.readline():
            pytest.skip("this system does not allow tracing")
        terminal.run("cd /tmp")
        terminal.run("/bin/true")
        terminal.run(":")
        tracer.send_signal(signal.SIGINT)
    # A thread of the shell's own is no process.
    made = [line for line in trace.read_text().splitlines() if re.search(r"\b(?:clone3?|v?fork)\(", line)]
    assert len([line for line in made if "CLONE_THREAD" not in line]) == 1, "only /bin/true is a process"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "dash", "ksh93", "mksh"])
def test_a_shell_says_once_who_it_is_and_where(open_terminal: Callable[..., Terminal], shell: str) -> None:
    user, host = pwd.getpwuid(os.getuid()).pw_name, socket.gethostname()
    terminal = open_terminal(shell, additions={"USER": user, "LOGNAME": user})
    hello, *others = terminal.start()
    assert (hello.fields["u"], hello.fields["h"]) == (user, host)
    assert len(hello.raw) <= 512 and not any("u" in mark.fields for mark in others)


@pytest.mark.parametrize("shell", ["dash", "mksh", "ksh93"])
@pytest.mark.parametrize("name", ["K\u00f6nig", "a;x=1", "DOMAIN\\user", "u" * 65, "a b"])
def test_a_name_that_a_mark_cannot_hold_is_left_out(
    open_terminal: Callable[..., Terminal], shell: str, name: str
) -> None:
    terminal = open_terminal(shell, additions={"USER": name, "LOGNAME": name})
    hello = terminal.start()[0]
    assert hello.kind == "__HELLO__" and hello.fields["u"] == "" and "x" not in hello.fields
