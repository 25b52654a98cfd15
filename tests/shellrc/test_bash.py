"""bash 4.4 and later: the marks survive everything a person or an agent does to a shell."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from blockpty.host import shells

from .conftest import NONCE, Run, Terminal, as_string_version, check_cycle, kinds

Open = Callable[..., Terminal]


@pytest.fixture(params=["array", "string"])
def bash(request: pytest.FixtureRequest, open_terminal: Open) -> Open:
    """Open bash with either kind of PROMPT_COMMAND."""

    def open_one(rc: str = "", **options: object) -> Terminal:
        if request.param == "string":
            options["edit"] = as_string_version
        return open_terminal("bash", rc, **options)

    return open_one


def test_first_prompt(bash: Open) -> None:
    terminal = bash()
    hello, end, cwd, prompt = terminal.start()
    assert kinds([hello, end, cwd, prompt]) == ["HELLO", "END", "CWD", "PROMPT"]
    assert [hello.number(name) for name in "scp"] == [0, 0, 0]
    assert (hello.fields["v"], hello.fields["sh"]) == ("1", "bash")
    assert {"ps0", "ps1", "pc"} <= set(hello.fields["f"].split(","))
    assert [end.number(name) for name in "scx"] == [1, 0, 0]
    assert terminal.reported_directory([cwd]) == os.fsencode(terminal.home)
    assert [prompt.number(name) for name in "scpx"] == [1, 0, 1, 0]
    assert terminal.data.endswith(prompt.raw)


def test_command(bash: Open) -> None:
    terminal = bash()
    before = terminal.start()[-1]
    for command, output, status in (("echo hi", b"hi\r\n", 0), ("printf x", b"x", 0), ("false", b"", 1)):
        run = terminal.run(command)
        check_cycle(run.marks, terminal.pid, before=before)
        assert (run.output, run.status, run.one("END").fields["x"]) == (output, status, str(status))
        before = run.prompt


@pytest.mark.parametrize("typed", ["", "   ", "# only a comment"])
def test_nothing_to_run(bash: Open, typed: str) -> None:
    terminal = bash()
    terminal.start()
    before = terminal.run("false").prompt
    marks = terminal.line(typed)
    assert kinds(marks) == ["END", "PROMPT"]
    assert marks[-1].number("s") == before.number("s") + 1
    assert marks[-1].number("c") == before.number("c")
    assert marks[-1].fields["x"] == "1"


def test_syntax_error(bash: Open) -> None:
    terminal = bash()
    terminal.start()
    marks = terminal.line("echo )")
    assert kinds(marks) == ["END", "PROMPT"]
    assert marks[-1].fields["x"] == "2"
    run = terminal.run("echo one\necho )\necho three")
    assert (run.kinds, run.status) == (["BEGIN", "END", "PROMPT"], 2)
    assert b"one\r\n" in run.output
    assert b"three" not in run.output


def test_interrupt_at_the_prompt(bash: Open) -> None:
    terminal = bash()
    terminal.start()
    terminal.type("some text")
    terminal.until_text(b"some text")
    marks = terminal.interrupt()
    assert kinds(marks)[-2:] == ["END", "PROMPT"]
    assert "BEGIN" not in kinds(marks)
    assert marks[-1].fields["x"] == "130"


def test_redraw_repeats_the_count(bash: Open) -> None:
    terminal = bash()
    first = terminal.start()[-1]
    terminal.type("\x0c")
    again = terminal.until("__PROMPT__")
    assert kinds(again) == ["PROMPT"]
    assert again[0].fields == first.fields
    check_cycle(terminal.run(":").marks, terminal.pid, before=first)


@pytest.mark.parametrize("typed", [
    "set -u", "set -x", "set -v", "set -o posix", "set -C", "shopt -s failglob", "IFS=x;:", "set -f",
    "shopt -s nullglob", "shopt -s nocasematch", "set -E; trap 'echo ERR' ERR", "shopt -u promptvars",
    "set -T; trap 'echo -n' DEBUG", "set -a", "set -k", "shopt -s extglob",
    "shopt -u globasciiranges", "set -H", "set -o vi", "unset _", "unset PWD; set -u",
])  # fmt: skip
def test_shell_options(bash: Open, typed: str) -> None:
    terminal = bash()
    terminal.start()
    before = terminal.run(typed).prompt
    run = terminal.run("echo hi; mkdir -p 'a b'; cd 'a b'; false")
    check_cycle(run.marks, terminal.pid, before=before)
    assert b"hi\r\n" in run.output
    assert terminal.reported_directory(run.marks) == os.fsencode(terminal.home / "a b")
    assert run.status == 1
    again = terminal.run("(exit 3)")
    check_cycle(again.marks, terminal.pid, before=run.prompt)
    assert again.status == 3


def test_errexit_lives_through_prompts_and_dies_of_the_command(bash: Open) -> None:
    terminal = bash()
    before = terminal.start()[-1]
    run = terminal.run("set -eu; cd /")
    check_cycle(run.marks, terminal.pid, before=before)
    assert kinds(terminal.line("")) == ["END", "PROMPT"]
    terminal.submit("echo last; false; echo never")
    terminal.until("__BEGIN__")
    assert terminal.until_end() == 1
    assert b"never" not in terminal.data


def test_errexit_and_closed_output(bash: Open) -> None:
    terminal = bash()
    before = terminal.start()[-1]
    run = terminal.run("set -e; exec 1>&-")
    check_cycle(run.marks, terminal.pid, before=before)
    check_cycle(terminal.run(":").marks, terminal.pid, before=run.prompt)


def test_xtrace_shows_nothing_of_ours(bash: Open) -> None:
    terminal = bash()
    terminal.start()
    terminal.run("set -x")
    start = terminal.position
    run = terminal.run("echo hi")
    assert run.output.endswith(b"+ echo hi\r\nhi\r\n")
    assert b"__bpty" not in terminal.data[start:]


@pytest.mark.parametrize("where", ["startup", "command"])
def test_a_trace_in_a_file_does_not_get_the_nonce(bash: Open, where: str) -> None:
    setting = "exec {BASH_XTRACEFD}>~/trace; set -xa"
    terminal = bash(setting if where == "startup" else "")
    before = terminal.start()[-1]
    if where == "command":
        before = terminal.run(setting).prompt
    run = terminal.run("cd /tmp; echo hi; (exit 3)")
    check_cycle(run.marks, terminal.pid, before=before)
    assert (run.output, run.status) == (b"hi\r\n", 3)
    assert terminal.run('echo "$-"').output.count(b"x") == 1
    trace = (terminal.home / "trace").read_text()
    assert "+ echo hi\n" in trace
    assert NONCE not in trace


def test_errors_elsewhere_leaves_the_end(bash: Open) -> None:
    terminal = bash()
    terminal.start()
    terminal.submit("exec 2>/dev/null")
    terminal.until("__END__")
    terminal.submit("echo hi; (exit 4)")
    assert terminal.until("__END__")[-1].fields["x"] == "4"
    terminal.submit("exec 2>/dev/tty")
    terminal.until("__PROMPT__")
    assert terminal.run("echo back").output == b"back\r\n"


@pytest.mark.parametrize("rc", [
    "PROMPT_COMMAND='PS1=\"new> \"'",
    "PROMPT_COMMAND='PS1=\"$PS1 more \"; PS1=${PS1:0-300}'",
    "PROMPT_COMMAND=(':' 'PS1=\"new> \"')",
    "PROMPT_COMMAND='PS1=\"new> \"; PS0=\"\"; PS2=\"\"'",
    "PROMPT_COMMAND='unset PS0; PS1=x;'",
    "PROMPT_COMMAND='x=1 # comment'",
    "PROMPT_COMMAND='\n x=1 ; '",
    "PROMPT_COMMAND='x=$(('",
    "PROMPT_COMMAND='fi'",
    "PROMPT_COMMAND='return 7'",
    "PROMPT_COMMAND='false'",
    "PROMPT_COMMAND='f() { unset -f f; }; f; set -u'",
    "PS0='seen\\n'",
    "export PS0='' PS1='exported> ' PROMPT_COMMAND=:",
    "set -a",
    "set -u",
    "set -x",
    "set -o posix",
    "unset PS1 PS2; set -u",
    "readonly PS2",
    "alias if=echo then=echo local=echo printf=echo builtin=echo '[['=echo",
    "printf() { command echo shadow; }; local() { :; }; return() { :; }; shopt() { :; }; export() { :; }",
    "enable -n local",
    "trap 'true' DEBUG",
    "trap 'echo -n' RETURN; set -o functrace",
    "shopt -s extdebug",
    "IFS=_7; set -o noclobber",
    "return 5",
    "shopt -u promptvars",
    "LC_ALL=C",
])  # fmt: skip
def test_startup_files(bash: Open, rc: str, request: pytest.FixtureRequest) -> None:
    if rc.startswith("PROMPT_COMMAND=(") and request.node.callspec.params["bash"] == "string":
        pytest.skip("before 5.1 an array PROMPT_COMMAND means its first element")
    terminal = bash(rc)
    before = terminal.start()[-1]
    for _ in range(3):
        run = terminal.run("echo hi; (exit 3)")
        check_cycle(run.marks, terminal.pid, before=before)
        assert b"hi\r\n" in run.output
        assert (run.status, run.one("END").fields["x"]) == (3, "3")
        before = run.prompt


@pytest.mark.parametrize("body", [
    "builtin() { echo shadow; }",
    "builtin() { echo shadow; }; printf() { echo shadow; }",
    "builtin() { echo shadow; }; command() { echo shadow; }",
    "builtin() { return 1; }",
    "command() { echo shadow; }",
    "builtin() { command builtin \"$@\"; }",
])  # fmt: skip
def test_functions_with_our_builtins_names(bash: Open, body: str) -> None:
    terminal = bash(body)
    before = terminal.start()[-1]
    for options in (":", "set -eu"):
        terminal.run(options)
        before = terminal.marks()[-1]
        run = terminal.run("cd /tmp; echo hi")
        check_cycle(run.marks, terminal.pid, before=before)
        assert run.output == b"hi\r\n"


def test_disabled_printf_leaves_the_prompt(bash: Open) -> None:
    terminal = bash()
    before = terminal.start()[-1]
    run = terminal.run("enable -n printf")
    assert run.kinds == ["BEGIN", "OUT_END", "PROMPT"]
    assert run.prompt.number("s") == before.number("s") + 2
    assert terminal.run("enable printf").kinds == ["BEGIN", "END", "PROMPT"]


@pytest.mark.parametrize("setting", ["PROMPT_COMMAND='echo \"<$?>\"'", "PROMPT_COMMAND=('echo \"<$?>\"' 'true')"])
def test_prompt_command_sees_the_status(bash: Open, setting: str) -> None:
    terminal = bash(setting)
    terminal.start()
    start = terminal.position
    terminal.run("set -E; trap 'echo ERRTRAP' ERR; set +E")
    terminal.line("(exit 3)")
    assert b"<3>\r\n" in terminal.data[start:]
    assert terminal.data[start:].count(b"ERRTRAP") == 1


@pytest.mark.parametrize("command", [
    "PROMPT_COMMAND='echo mine'",
    "PROMPT_COMMAND=\"$PROMPT_COMMAND; echo mine\"",
    "PROMPT_COMMAND=\"echo mine;$PROMPT_COMMAND\"",
    "PROMPT_COMMAND=(); PROMPT_COMMAND+=('echo mine')",
    "PROMPT_COMMAND+=('echo mine')",
])  # fmt: skip
def test_prompt_command_changed_later(open_terminal: Open, command: str) -> None:
    terminal = open_terminal("bash")
    terminal.start()
    terminal.run(command)
    before = terminal.run(":").prompt
    for _ in range(2):
        start = terminal.position
        run = terminal.run("(exit 6)")
        check_cycle(run.marks, terminal.pid, before=before)
        assert terminal.data[start:].count(b"mine\r\n") == 1
        assert terminal.data.index(b"mine\r\n", start) > run.one("END").start
        assert (run.output, run.status) == (b"", 6)
        before = run.prompt


@pytest.mark.parametrize(("command", "output", "then"), [
    ("PROMPT_COMMAND+=('echo mine')", b"", b""),
    ("PROMPT_COMMAND+='; echo mine'", b"", b""),
    ("PROMPT_COMMAND=\"$PROMPT_COMMAND; echo mine\"", b"", b""),
    ("PROMPT_COMMAND=\"echo mine; $PROMPT_COMMAND\"", b"mine\r\n", b""),
    ("PROMPT_COMMAND='echo mine'", b"mine\r\n\x1b[?2004h", b""),
    ("PROMPT_COMMAND=('echo mine')", b"mine\r\n\x1b[?2004h", b"mine\r\n"),
])  # fmt: skip
def test_command_that_changes_prompt_command(open_terminal: Open, command: str, output: bytes, then: bytes) -> None:
    """What the command puts in front of our element comes before END, once or twice: see "Known limits"."""
    terminal = open_terminal("bash")
    terminal.start()
    run = terminal.run(command)
    assert (run.output, run.status) == (output, 0)
    assert [terminal.run("echo hi").output for _ in range(2)] == [b"hi\r\n" + then, b"hi\r\n"]


@pytest.mark.parametrize(("ps0", "shown"), [
    (r"[PS0]\n", b"[PS0]\r\r\n"),
    (r"$(echo $x; false)\n", b"seen\r\r\n"),
    ("\\\\", b"\\"),
    (r"\\\\\\", b"\\\\"),
    ("$", b"$"),
    (r"\e[0m\[\]", b"\x1b[0m\x01\x02"),
])  # fmt: skip
@pytest.mark.parametrize("where", ["rc", "command", "prompt"])
def test_what_the_users_ps0_prints_is_no_output(bash: Open, ps0: str, shown: bytes, where: str) -> None:
    text = f"x=seen PS0='{ps0}'"
    terminal = bash({"rc": text, "prompt": f"PROMPT_COMMAND={shlex.quote(text)}"}.get(where, ""))
    terminal.start()
    if where == "command":
        assert terminal.run(text).output == b""
    before = terminal.run(":").prompt
    for _ in range(2):
        run = terminal.run("echo hi; (exit 3)")
        check_cycle(run.marks, terminal.pid, before=before)
        assert (run.output, run.status) == (b"hi\r\n", 3)
        line = run.one("LINE")
        assert terminal.data[line.end : run.one("BEGIN").start] == shown + b"\x1b]133;C\x07"
        assert terminal.data[: line.start].endswith(b"\n\x1b[?2004l\r")
        before = run.prompt


@pytest.mark.parametrize("ps0", ["${nope?bad}", "$((1/0))", "`x", "${x"])
def test_a_ps0_that_cannot_be_expanded_is_recognised_by_the_numbers(bash: Open, ps0: str) -> None:
    """bash prints its text as it is, ours included; that a command began is known from the next END."""
    terminal = bash(f"PS0='{ps0}'")
    before = terminal.start()[-1]
    run = terminal.run("(exit 3)")
    assert [mark.kind for mark in run.marks if mark.fields["n"] == NONCE] == ["__END__", "__PROMPT__"]
    assert run.prompt.number("s") == before.number("s") + 2
    assert run.prompt.number("c") == before.number("c") + 1
    assert run.status == 3


@pytest.mark.parametrize("command", [
    "unset PROMPT_COMMAND PS0", "PS0=; PROMPT_COMMAND=", "set -eu; unset PROMPT_COMMAND PS0 PS2",
])  # fmt: skip
def test_removed_hooks_heal(bash: Open, command: str) -> None:
    terminal = bash()
    before = terminal.start()[-1]
    run = terminal.run(command)
    assert run.kinds == ["BEGIN", "OUT_END", "PROMPT"]
    assert run.prompt.number("p") == before.number("p") + 1
    if run.prompt.fields["b"] == "":
        # bash took PS0 before it expanded PS1: one command without __BEGIN__, and the prompt said so.
        unmarked = terminal.run("echo hi")
        assert unmarked.kinds == ["END", "PROMPT"]
        assert unmarked.prompt.fields["b"] == "1"
        before = unmarked.prompt
    else:
        before = run.prompt
    check_cycle(terminal.run("echo hi").marks, terminal.pid, before=before)


@pytest.mark.parametrize("rc", [
    "readonly PROMPT_COMMAND=:", "readonly PROMPT_COMMAND", "readonly PROMPT_COMMAND=(: :)",
])  # fmt: skip
def test_readonly_prompt_command(bash: Open, rc: str) -> None:
    terminal = bash(rc)
    terminal.start()
    before = terminal.marks()[-1]
    run = terminal.run("echo hi; (exit 3)")
    assert run.kinds == ["BEGIN", "OUT_END", "PROMPT"]
    # readline's own sequence stands before the prompt's first byte.
    assert (run.output, run.status) == (b"hi\r\n\x1b[?2004h", 3)
    assert run.prompt.number("c") == before.number("c") + 1


def test_debug_trap_is_left_alone(bash: Open) -> None:
    terminal = bash("trap 'seen=$BASH_COMMAND' DEBUG")
    before = terminal.start()[-1]
    run = Run(terminal, terminal.line("trap -p DEBUG"))
    check_cycle(run.marks, terminal.pid, before=before)
    assert run.output == b"trap -- 'seen=$BASH_COMMAND' DEBUG\r\n"


def test_extdebug_with_a_refusing_trap(bash: Open) -> None:
    terminal = bash()
    before = terminal.start()[-1]
    run = terminal.run("shopt -s extdebug; trap '[[ $BASH_COMMAND == [.e]* ]]' DEBUG")
    assert run.kinds in (["BEGIN", "OUT_END", "PROMPT"], ["BEGIN", "END", "PROMPT"])
    run = terminal.run("echo hi")
    assert run.kinds == ["BEGIN", "OUT_END", "PROMPT"]
    assert run.output.startswith(b"hi\r\n")
    assert run.status == 0
    assert run.prompt.number("c") == before.number("c") + 2


def test_status_underscore_and_pipestatus(bash: Open) -> None:
    terminal = bash("PROMPT_COMMAND=true")
    terminal.start()
    terminal.run("true | false | (exit 3) | true")
    assert terminal.line('echo "<${PIPESTATUS[*]}>"') and b"<0>" in terminal.data
    terminal.line("false | (exit 3) | true")
    start = terminal.position
    terminal.line('echo "<${PIPESTATUS[*]}>"')
    assert b"<1 3 0>\r\n" in terminal.data[start:]
    terminal.line(": last_argument")
    start = terminal.position
    terminal.line('echo "<$_>"')
    assert b"<last_argument>\r\n" in terminal.data[start:]
    terminal.run("(exit 9)")
    assert terminal.run("echo $?").output == b"9\r\n"


def test_the_key_that_only_obeys_a_late_ctrl_c_changes_nothing(open_terminal: Open) -> None:
    terminal = open_terminal("bash")
    if "key" not in terminal.start()[0].fields["f"].split(","):
        pytest.skip("before 5.1 bash is given no keys")
    terminal.line("test x = last_argument")
    start = terminal.position
    terminal.type('echo "<$? $_\x1b[7720~>" # \r')
    terminal.until("__END__")
    assert b"<1 last_argument>\r\n" in terminal.data[start:]


def test_line_numbers_stay_true(bash: Open) -> None:
    terminal = bash()
    terminal.start()
    run = terminal.run("echo $LINENO\n\necho $LINENO", "/tmp")
    assert run.output == b"1\r\n3\r\n"


def test_nested_shell_is_silent(bash: Open) -> None:
    terminal = bash("export PS1='exported> ' PS0 PROMPT_COMMAND\nset -a")
    terminal.start()
    terminal.run("export PS1 PS0 PS2 PROMPT_COMMAND; x=1; set -a")
    before = terminal.run(":").prompt
    terminal.submit("bash --norc --noprofile")
    terminal.until("__BEGIN__")
    terminal.until_text(b"bash-")
    terminal.type("echo in''ner; exit 5\r")
    terminal.until_text(b"inner\r\n")
    end = terminal.until("__PROMPT__")
    assert kinds(end) == ["END", "PROMPT"]
    assert end[-1].fields["x"] == "5"
    assert end[-1].number("c") == before.number("c") + 1


def test_exported_everything_gives_no_valid_mark_in_a_child(bash: Open) -> None:
    terminal = bash()
    terminal.start()
    terminal.submit("export PS1 PS0 PS2 PROMPT_COMMAND; export ${!__bpty_*}; bash --norc --noprofile")
    begin = terminal.until("__BEGIN__")[-1]
    terminal.until_text(b"__PROMPT__")
    terminal.type("exit 5\r")
    terminal.until("__PROMPT__", lambda mark: mark.fields["i"] == begin.fields["i"])
    between = [mark for mark in terminal.marks(begin.end) if mark.fields["i"] != begin.fields["i"]]
    assert between
    assert terminal.marks()[-1].fields["x"] == "5"


def test_history(bash: Open) -> None:
    terminal = bash("export HISTFILE=~/.mine; HISTCONTROL=ignoreboth")
    terminal.start()
    run = terminal.run('echo "$HISTFILE $HISTCONTROL"; env | grep -c HISTFILE; printf "%s\\n" "$-"')
    lines = run.output.split(b"\r\n")
    assert lines[0] == os.fsencode(terminal.directory) + b"/history ignoreboth"
    assert lines[1] == b"0"
    assert b"H" not in lines[2]
    terminal.line("echo remembered")
    terminal.type("exit\r")
    assert terminal.until_end() == 0
    assert "remembered" in (terminal.directory / "history").read_text()
    assert not (terminal.home / ".mine").exists()


def test_history_expansion_cannot_reach_a_staged_command(bash: Open) -> None:
    terminal = bash()
    terminal.start()
    terminal.run("set -H")
    assert terminal.run("echo wow!! !x").output == b"wow!! !x\r\n"
    start = terminal.position
    terminal.run("set +H")
    terminal.line("echo wow!!")
    assert b"\nwow!!\r\n" in terminal.data[start:] or b"\x07wow!!\r\n" in terminal.data[start:]


def test_nonce_is_not_in_the_environment_and_the_file_is_gone(bash: Open) -> None:
    terminal = bash("set -a")
    terminal.start()
    run = terminal.run("env; cat /proc/self/environ /proc/$$/environ | tr '\\0' '\\n'; set -a; env")
    assert NONCE.encode() not in run.output
    assert b"__bpty_n=" not in run.output
    assert NONCE.encode() not in Path(f"/proc/{terminal.pid}/environ").read_bytes()
    assert NONCE.encode() not in Path(f"/proc/{terminal.pid}/cmdline").read_bytes()
    assert not (terminal.directory / "rc" / "1").exists()


def test_no_descriptor_is_left(bash: Open) -> None:
    terminal, plain = bash(), bash(bare=True)
    terminal.start()
    terminal.run(":")
    plain.until_text(b"ready> ")
    plain.type("echo; ls /proc/self/fd; echo done\r")
    plain.until_text(b"\n")
    expected = plain.until_text(b"done\r\n").split()[:-1]
    listed = terminal.run("echo; ls /proc/self/fd; echo done").output.split()[:-1]
    # One more than the plain shell, the file being sourced, is bash's own business and not a descriptor of a child.
    assert len(listed) == len([name for name in expected if name.isdigit()])


def test_closed_descriptors_are_opened_again(bash: Open) -> None:
    terminal = bash()
    terminal.start()
    # 254 is our /dev/null: without it one END is missing, and the prompt closes the block.
    assert terminal.run("exec 254>&-").kinds[-1] == "PROMPT"
    before = terminal.run(":").prompt
    run = terminal.run("echo hi; (exit 3)")
    check_cycle(run.marks, terminal.pid, before=before)
    assert (run.output, run.status) == (b"hi\r\n", 3)


def test_a_users_own_descriptor_is_left_alone(bash: Open) -> None:
    terminal = bash("exec 254>~/mine")
    before = terminal.start()[-1]
    run = terminal.run("echo kept >&254; set -x; (exit 3)")
    check_cycle(run.marks, terminal.pid, before=before)
    run = terminal.run("set +x; cat ~/mine")
    assert run.output.endswith(b"kept\r\n") and b"__bpty" not in run.output


@pytest.mark.parametrize(("files", "expected"), [
    ((".bash_profile", ".bash_login", ".profile"), b".bash_profile"),
    ((".bash_login", ".profile"), b".bash_login"),
    ((".profile",), b".profile"),
])  # fmt: skip
def test_login_profiles(tmp_path: Path, files: tuple[str, ...], expected: bytes) -> None:
    for name in (*files, ".bashrc"):
        (tmp_path / name).write_text(f"came_from={name}\n")
    terminal = Terminal(tmp_path, "bash", login=True)
    try:
        terminal.start()
        assert terminal.run("echo $came_from").output == expected + b"\r\n"
    finally:
        terminal.close()


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
def test_shellcheck() -> None:
    path = shells.shellrc_directory() / "bash" / "blockpty.bash"
    assert subprocess.run(["shellcheck", path], check=False).returncode == 0


def test_an_interrupted_end_keeps_its_number(bash: Open) -> None:
    """Ctrl-C while the mark is made: bash begins its prompt again, and the mark that comes then is still the next."""
    terminal = bash(
        "set -T\n"
        "interrupt() { if [[ $BASH_COMMAND == *__END__* && ${armed-} ]]; then armed=; kill -INT $$; fi; }\n"
        "trap interrupt DEBUG\n"
    )
    before = terminal.start()[-1]
    for _ in range(3):
        run = Run(terminal, terminal.line("armed=1"))
        check_cycle(run.marks, terminal.pid, before=before)
        assert run.status == 130, "the second end came"
        before = run.marks[-1]
    assert Run(terminal, terminal.line("echo next")).output == b"next\r\n"


def test_restricted(tmp_path: Path) -> None:
    program = tmp_path / "rbash"
    program.symlink_to(shutil.which("bash") or "/bin/bash")
    home = tmp_path / "restricted_home"
    home.mkdir()
    terminal = Terminal(home, str(program))
    try:
        before = terminal.start()[-1]
        run = Run(terminal, terminal.line("echo hi; false"))
        check_cycle(run.marks, terminal.pid, before=before)
        assert (run.output, run.status) == (b"hi\r\n", 1)
        assert b"restricted:" not in terminal.data
    finally:
        terminal.close()
