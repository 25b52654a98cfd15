"""zsh 5.8 and later: the marks survive everything a person or an agent does to a shell."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from .conftest import NONCE, Run, Terminal, check_cycle, kinds

Open = Callable[..., Terminal]


@pytest.fixture
def zsh(open_terminal: Open) -> Open:
    return partial(open_terminal, "zsh")


def test_first_prompt(zsh: Open) -> None:
    terminal = zsh()
    marks = terminal.start()
    assert kinds(marks) == ["HELLO", "END", "CWD", "PROMPT"]
    hello, end, cwd, prompt = marks
    assert [hello.number(name) for name in "scp"] == [0, 0, 0]
    assert (hello.fields["v"], hello.fields["sh"]) == ("1", "zsh")
    assert {"fd", "eolmark", "lineinit"} <= set(hello.fields["f"].split(","))
    assert [end.number(name) for name in "scx"] == [1, 0, 0]
    assert terminal.reported_directory([cwd]) == os.fsencode(terminal.home)
    assert [prompt.number(name) for name in "scpx"] == [1, 0, 1, 0]


@pytest.mark.parametrize(("command", "output", "status"), [
    ("echo hi", b"hi\r\n", 0),
    ("printf x", b"x", 0),
    ("printf 'a\\nb'", b"a\r\nb", 0),
    ("printf '%100s' x", b" " * 99 + b"x", 0),
    ("false", b"", 1),
    (":", b"", 0),
])  # fmt: skip
def test_output_ends_exactly(zsh: Open, command: str, output: bytes, status: int) -> None:
    terminal = zsh()
    before = terminal.start()[-1]
    run = terminal.run(command)
    check_cycle(run.marks, terminal.pid, before=before)
    assert run.kinds == ["BEGIN", "OUT_END", "END", "PROMPT"]
    assert run.one("OUT_END").number("s") == run.one("BEGIN").number("s")
    assert (run.output, run.status) == (output, status)


@pytest.mark.parametrize("typed", ["", "   "])
def test_empty_line(zsh: Open, typed: str) -> None:
    terminal = zsh()
    terminal.start()
    before = terminal.run("false").prompt
    marks = terminal.line(typed)
    assert kinds(marks) == ["OUT_END", "END", "PROMPT"]
    assert marks[0].fields["s"] == before.fields["s"]
    assert marks[0].fields["p"] == before.fields["p"]
    assert marks[-1].number("s") == before.number("s") + 1
    assert marks[-1].fields["x"] == "1"


def test_comment(zsh: Open) -> None:
    terminal = zsh()
    terminal.start()
    marks = terminal.line("# only a comment")
    assert [kind for kind in kinds(marks) if kind != "OUT_END"] in (["END", "PROMPT"], ["BEGIN", "END", "PROMPT"])
    assert marks[-1].fields["x"] == "0"


def test_syntax_error(zsh: Open) -> None:
    terminal = zsh()
    terminal.start()
    assert "BEGIN" not in kinds(terminal.line("echo )"))
    run = terminal.run("echo one\necho )\necho three")
    assert run.kinds == ["BEGIN", "OUT_END", "END", "PROMPT"]
    assert run.status != 0
    assert b"three" not in run.output


def test_interrupt_at_the_prompt(zsh: Open) -> None:
    terminal = zsh()
    before = terminal.start()[-1]
    terminal.type("some text")
    terminal.until_text(b"text")
    marks = terminal.interrupt()
    assert "BEGIN" not in kinds(marks)
    assert marks[-1].fields["x"] == "130"
    assert marks[-1].number("p") > before.number("p")


@pytest.mark.parametrize("typed", [
    "setopt nounset", "setopt xtrace", "setopt noclobber", "setopt ksh_arrays", "setopt sh_word_split", "emulate sh",
    "emulate ksh", "setopt err_return", "setopt glob_subst", "setopt no_prompt_percent", "setopt prompt_subst",
    "IFS=x;:", "setopt all_export", "bindkey -v", "setopt no_prompt_sp", "setopt no_prompt_cr", "setopt verbose",
    "setopt no_multibyte", "setopt no_match no_glob", "setopt prompt_bang", "setopt extended_glob",
    "setopt warn_create_global", "setopt posix_builtins", "setopt local_options", "trap 'true' DEBUG",
    "setopt ksh_typeset", "setopt c_bases octal_zeroes", "setopt no_unset err_exit",
])  # fmt: skip
def test_shell_options(zsh: Open, typed: str) -> None:
    terminal = zsh()
    terminal.start()
    before = terminal.run(typed).prompt
    run = terminal.run("echo hi; mkdir -p 'a b'; cd 'a b'")
    check_cycle(run.marks, terminal.pid, before=before)
    assert b"hi\r\n" in run.output
    assert terminal.reported_directory(run.marks) == os.fsencode(terminal.home / "a b")
    assert b"__bpty_" not in re.sub(rb"\+__bpty_\w+:\d+>[^\n]*", b"", run.output)
    again = terminal.run(":")
    check_cycle(again.marks, terminal.pid, before=run.prompt)


def test_errexit_dies_of_the_command(zsh: Open) -> None:
    terminal = zsh()
    terminal.start()
    run = terminal.run("set -e")
    check_cycle(terminal.run("cd /").marks, terminal.pid, before=run.prompt)
    terminal.submit("echo last; false; echo never")
    terminal.until("__BEGIN__")
    assert terminal.until_end() == 1
    assert b"never" not in terminal.data


@pytest.mark.parametrize("redirection", ["exec 2>/dev/null", "exec >plain_file 2>&1"])
def test_errors_elsewhere(zsh: Open, redirection: str) -> None:
    terminal = zsh()
    before = terminal.start()[-1]
    run = terminal.run(redirection)
    check_cycle(run.marks, terminal.pid, before=before)
    run2 = terminal.run("(exit 3)")
    check_cycle(run2.marks, terminal.pid, before=run.prompt)
    assert run2.status == 3


def test_closed_descriptor_is_opened_again(zsh: Open) -> None:
    terminal = zsh()
    before = terminal.start()[-1]
    run = terminal.run("exec {__bpty_fd}>&-")
    check_cycle(run.marks, terminal.pid, before=before)


@pytest.mark.parametrize("rc", [
    "precmd() { PS1='new> ' }",
    "precmd_functions=()",
    "precmd_functions=(); autoload -Uz add-zsh-hook; f() { : }; add-zsh-hook precmd f; add-zsh-hook preexec f",
    "zle-line-init() { : }; zle -N zle-line-init",
    "autoload -Uz add-zle-hook-widget; f() { : }; zle -N f; add-zle-hook-widget line-init f",
    "f() { zle-line-init() { : }; zle -N zle-line-init }; precmd_functions+=(f)",
    "f() { autoload -Uz add-zle-hook-widget; g() { : }; add-zle-hook-widget line-init g }; precmd_functions+=(f)",
    "PROMPT_EOL_MARK='%%%%'",
    "setopt prompt_subst; PROMPT_EOL_MARK=''",
    "setopt all_export",
    "setopt no_unset xtrace",
    "emulate ksh",
    "alias print=echo local=echo emulate=echo builtin=echo syswrite=echo",
    "print() { : }; local() { : }; zle() { builtin zle \"$@\" }; printf() { : }",
    "return 3",
    "unsetopt zle",
    "PS1=$'%{\\e[1m%}bold%{\\e[0m%}\\n> '; RPS1=right",
    "setopt transient_rprompt no_prompt_cr",
    "HISTSIZE=0 SAVEHIST=0",
    "TRAPZERR() { : }",
])  # fmt: skip
def test_startup_files(zsh: Open, rc: str) -> None:
    terminal = zsh(rc)
    before = terminal.start()[-1]
    for _ in range(3):
        run = terminal.run("echo hi; (exit 3)")
        check_cycle(run.marks, terminal.pid, before=before)
        assert b"hi\r\n" in run.output
        assert (run.status, run.one("END").fields["x"]) == (3, "3")
        before = run.prompt


def test_first_prompt_after_a_startup_file_that_failed(zsh: Open) -> None:
    assert [mark.fields["x"] for mark in zsh("(exit 5)").start() if "x" in mark.fields] == ["0", "0"]


# Each wraps zle-line-init as a framework does: by alias or by function, in its first precmd or at every prompt.
_WRAP = "zle -A zle-line-init mine; li() { (( ${+widgets[mine]} )) && zle mine }; zle -N zle-line-init li"
_OWN = "own() { print -n '<own>' }; zle -N zle-line-init own\n"


@pytest.mark.parametrize("rc", [
    f"w() {{ precmd_functions=(${{precmd_functions:#w}}); {_WRAP} }}; precmd_functions+=(w)",
    f"w() {{ [[ $widgets[zle-line-init] == user:li ]] || {_WRAP} }}; precmd_functions+=(w)",
    "w() { local f=${widgets[zle-line-init]#user:}; eval \"li() { $f }\"; zle -N zle-line-init li; unset -f w }; "
    "precmd_functions=($precmd_functions w)",
    "w() { zle -D zle-line-init; zle -N zle-line-init own }; precmd_functions+=(w)",
    "other() { : }; w() { autoload -Uz add-zle-hook-widget; zle -N other; add-zle-hook-widget line-init other; "
    f"{_WRAP}; precmd_functions=(${{precmd_functions:#w}}) }}; precmd_functions+=(w)",
], ids=["once", "whenever another is on top", "by function", "deleted and put back", "add-zle-hook-widget, wrapped"])
def test_wrapped_widget(zsh: Open, rc: str) -> None:
    """Whichever wraps last: each prompt is marked once, the user's own widget runs once, nothing recurses."""
    terminal = zsh(_OWN + rc)
    before = terminal.start()[-1]
    for _ in range(4):
        shown = terminal.position
        run = terminal.run("echo hi; (exit 3)")
        check_cycle(run.marks, terminal.pid, before=before)
        assert (run.output, run.status) == (b"hi\r\n", 3)
        assert terminal.data[shown : run.prompt.start].count(b"<own>") == 1
        before = run.prompt
    assert b"nested" not in terminal.data


@pytest.mark.parametrize("command", [
    "precmd_functions=()", "preexec_functions=()", "precmd_functions=() preexec_functions=()", "zle -D zle-line-init",
    "zle-line-init() { : }; zle -N zle-line-init", "PROMPT_EOL_MARK=x", ". ~/.zshrc",
    "unset precmd_functions preexec_functions", "unset PROMPT_EOL_MARK",
    "autoload -Uz add-zle-hook-widget; g() { : }; zle -N g; add-zle-hook-widget line-init g",
    "unsetopt zle", "unsetopt zle; setopt zle", "exec {__bpty_fd}>&-",
    "autoload -Uz promptinit; promptinit; prompt walters",
])  # fmt: skip
def test_removed_hooks_heal(zsh: Open, command: str) -> None:
    terminal = zsh()
    terminal.start()
    before = terminal.run(command).prompt
    for _ in range(2):
        run = terminal.run("echo hi; (exit 4)")
        check_cycle(run.marks, terminal.pid, before=before)
        assert (run.output[:4], run.status) == (b"hi\r\n", 4)
        before = run.prompt


def test_without_the_line_editor_no_child_inherits_the_mark(zsh: Open) -> None:
    terminal = zsh("export PS1")
    terminal.start()
    terminal.run("unsetopt zle")
    run = terminal.run("env")
    assert NONCE.encode() not in run.output
    assert NONCE.encode() not in terminal.run("setopt zle; env").output


def test_status_is_kept(zsh: Open) -> None:
    terminal = zsh()
    terminal.start()
    terminal.run("(exit 9)")
    assert terminal.run("echo $?").output == b"9\r\n"
    terminal.line("false | (exit 3) | true")
    assert Run(terminal, terminal.line('echo "<$pipestatus>"')).output == b"<1 3 0>\r\n"
    terminal.line(": last_argument")
    assert Run(terminal, terminal.line('echo "<$_>"')).output == b"<last_argument>\r\n"


def test_nested_shells_are_silent(zsh: Open) -> None:
    terminal = zsh("setopt all_export; export PS1 PROMPT_EOL_MARK")
    terminal.start()
    before = terminal.run("set -a; export PS1 PROMPT_EOL_MARK").prompt
    for command in ("PS1='inner> ' zsh -f", "PS1='inner> ' bash --norc"):
        terminal.submit(command)
        begin = terminal.until("__BEGIN__")[-1]
        terminal.until_text(b"inner> ")
        terminal.type("echo in''side; exit 5\r")
        terminal.until_text(b"inside\r\n")
        marks = terminal.until("__PROMPT__")
        assert [mark.kind for mark in terminal.marks(begin.end) if mark.fields["i"] != str(terminal.pid)] == []
        assert kinds(marks) == ["OUT_END", "END", "PROMPT"]
        assert marks[-1].fields["x"] == "5"
    assert terminal.marks()[-1].number("c") == before.number("c") + 2


def test_history(zsh: Open) -> None:
    terminal = zsh(
        "HISTFILE=${ZDOTDIR:-$HOME}/.mine HISTSIZE=100 SAVEHIST=100; export HISTFILE\n"
        'print -r "the user\'s own line" >$HISTFILE'
    )
    terminal.start()
    run = terminal.run('echo "$HISTFILE $SAVEHIST"; env | grep -c HISTFILE; echo wow!! !x')
    lines = run.output.split(b"\r\n")
    assert lines[0] == os.fsencode(terminal.directory) + b"/history 100"
    assert lines[1:3] == [b"0", b"wow!! !x"]
    assert Run(terminal, terminal.line("echo wow!!")).output == b"wow!!\r\n"
    terminal.type("exit\r")
    assert terminal.until_end() == 0
    saved = (terminal.directory / "history").read_text()
    assert "echo wow!!" in saved
    assert "user's own" not in saved
    assert (terminal.home / ".mine").read_text() == "the user's own line\n"


def test_startup_directory_is_the_users(tmp_path: Path, zsh: Open) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / ".zshenv").write_text("order=env\n")
    (elsewhere / ".zprofile").write_text("order+=-profile\n")
    (elsewhere / ".zshrc").write_text("order+=-rc\n")
    (elsewhere / ".zlogin").write_text("order+=-login\n")
    terminal = zsh(additions={"ZDOTDIR": str(elsewhere)}, login=True)
    terminal.start()
    run = terminal.run("echo $order $ZDOTDIR; env | grep ZDOTDIR")
    assert run.output == f"env-profile-rc-login {elsewhere}\r\nZDOTDIR={elsewhere}\r\n".encode()
    terminal = zsh()
    terminal.start()
    assert terminal.run("echo ${ZDOTDIR-unset}; env | grep -c ZDOTDIR").output == b"unset\r\n0\r\n"


def test_nonce_is_not_in_the_environment_and_the_file_is_gone(zsh: Open) -> None:
    terminal = zsh("setopt all_export")
    terminal.start()
    run = terminal.run("env; cat /proc/self/environ /proc/$$/environ | tr '\\0' '\\n'; set -a; env")
    assert NONCE.encode() not in run.output
    assert NONCE.encode() not in terminal.run("cd /tmp; env").output
    assert NONCE.encode() not in Path(f"/proc/{terminal.pid}/environ").read_bytes()
    assert not (terminal.directory / "rc" / "1").exists()


def test_no_descriptor_is_inherited(zsh: Open) -> None:
    terminal, plain = zsh(), zsh(bare=True)
    terminal.start()
    terminal.run(":")
    plain.until_text(b"ready> ")
    plain.type("echo; ls /proc/self/fd; echo do''ne\r")
    plain.until_text(b"\n")
    expected = [name for name in plain.until_text(b"done\r\n").split() if name.isdigit()]
    listed = [name for name in terminal.run("echo; ls /proc/self/fd").output.split() if name.isdigit()]
    assert listed == expected
