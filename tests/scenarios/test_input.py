"""Which programs wait for input, decided by the terminal and its processes alone: right in all, early in none."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

import blockpty
from tests.scenarios.stage import PROMPT, Stage, in_every_shell, open_stage
from tests.support.async_tests import async_test
from tests.support.profile import some_of
from tests.support.terminal_readers import skip_where_unknown

pytestmark = skip_where_unknown()

INPUT: Final = {"token": "INPUT"}
KEYS: Final = frozenset({"raw", "alt_screen"})
LINE: Final = frozenset({"reads_line"})
PASSWORD: Final = frozenset({"password"})
ASK: Final = """\
import time
print("This utility will walk you through it.")
for question in ("name", "version", "licence"):
    time.sleep(0.4)
    print("you said " + input(question + ": "))
"""
NODE_ASK: Final = """\
const rl = require("readline").createInterface({ input: process.stdin, output: process.stdout });
rl.question("name: ", (name) => setTimeout(() => { rl.write(null, { ctrl: true, name: "u" });
  rl.question("version of " + name + ": ", (version) => { console.log("you said " + version); rl.close(); }); }, 150));
"""
JAVA_ASK: Final = """\
public class Ask { public static void main(String[] a) {
  System.out.print("name: ");
  System.out.println("you said " + new java.util.Scanner(System.in).nextLine()); } }
"""


class Program(NamedTuple):
    """A command, how its terminal is while it waits, inputs after which it waits again, and what ends it."""

    command: str
    tty: frozenset[str]
    end: str
    # What is typed, and what must have been printed when it waits again.
    steps: tuple[tuple[str, str], ...] = ()
    needs: str = "sh"


def python(code: str) -> str:
    return f"{sys.executable} -c '{code}'"


PROGRAMS: Final[dict[str, Program]] = {
    # Lines
    "read": Program("read -r -p 'Name? ' name", LINE, "x\r"),
    "read without a prompt": Program("read -r name", LINE, "x\r"),
    "cat": Program("cat", LINE, "\x04", (("hello\r", "hello"),), "cat"),
    "wizard in shell": Program(
        "for q in a b c; do printf '%s: ' $q; read -r x; sleep 0.3; done", LINE, "3\r", (("1\r", "b: "), ("2\r", "c: "))
    ),
    "menu in shell": Program("select x in one two; do break; done", LINE, "2\r"),
    "yes or no": Program("sh -c 'printf \"Continue? [y/N] \"; read x'", LINE, "y\r"),
    "ed": Program("ed file", LINE, "q\r", (("1p\r", "line 1"),), "ed"),
    "awk": Program("awk '{ print $1 }'", LINE, "\x04", (("one two\r", "one"),), "awk"),
    "dash": Program("dash", LINE, "exit\r", (("sleep 0.3; echo a''b\r", "ab"),), "dash"),
    "perl": Program("perl -e 'print \"> \"; $x = <STDIN>'", LINE, "x\r", needs="perl"),
    "java": Program("java Ask.java", LINE, "x\r", needs="java"),
    "tclsh": Program("tclsh", LINE, "exit\r", (("after 300; puts a[list b]\r", "ab"),), "tclsh"),
    "ssh-keygen": Program("ssh-keygen", LINE, "\x03", needs="ssh-keygen"),
    # REPLs and databases
    "python": Program(
        f"{sys.executable} -q", KEYS, "exit()\r",
        (("1+1\r", "2"), ("import time; time.sleep(0.4); print('a'+'b')\r", "ab"))
    ),
    "python wizard": Program(f"{sys.executable} ask.py", LINE, "MIT\r", (("x\r", "version: "), ("1\r", "licence: "))),
    "pdb": Program(f"{sys.executable} -m pdb ask.py", KEYS, "quit\r", (("next\r", "(Pdb)"),)),
    "node": Program("node", KEYS, ".exit\r", (("'a' + 'b'\r", "'ab'"),), "node"),
    "node wizard": Program("node ask.js", KEYS, "2\r", (("mine\r", "version of mine: "),), "node"),
    "npm init": Program("npm init", KEYS, "\x03", (("mine\r", "version:"), ("\r", "description:")), "npm"),
    "bc": Program("bc -q", KEYS, "quit\r", (("6*7\r", "42"),), "bc"),
    "sqlite3": Program("sqlite3", KEYS, ".quit\r", (("select 40+2;\r", "42"),), "sqlite3"),
    "gdb": Program("gdb -q", KEYS, "quit\r", (("print 40+2\r", "42"),), "gdb"),
    "bash": Program("bash --norc --noprofile", KEYS, "exit\r", (("sleep 0.3; echo a''b\r", "ab"),), "bash"),
    "zsh": Program("zsh -f", KEYS, "exit\r", (("sleep 0.3; echo a''b\r", "ab"),), "zsh"),
    "fish": Program("fish --no-config", KEYS, "exit\r", (("sleep 0.3; echo a''b\r", "ab"),), "fish"),
    # Keys
    "one key": Program("bash -c 'read -r -n 1 -p \"Press any key\"'", KEYS, "x"),
    "less": Program("less -+F file", KEYS, "q", ((" ", "line 40"),), "less"),
    "more": Program("more file", KEYS, "q", needs="more"),
    "pager of git": Program("GIT_PAGER='less -+F' git help -a", KEYS, "q", needs="git"),
    "man": Program("MANPAGER='less -+F' man ls", KEYS, "q", needs="man"),
    "vim": Program("vim -u NONE file", KEYS, "\x1b:q!\r", (("Gohello\x1b", "hello"),), "vim"),
    "nano": Program("nano file", KEYS, "\x18", needs="nano"),
    "top": Program("top -d 30", KEYS, "q", needs="top"),
    "whiptail": Program("whiptail --yesno 'Go on?' 8 40", KEYS, "\r", needs="whiptail"),
    "fzf": Program("fzf < file", KEYS, "\x1b", needs="fzf"),
    # Passwords
    "getpass": Program(python("import getpass; getpass.getpass()"), PASSWORD, "secret\r"),
    "openssl": Program("openssl passwd", PASSWORD, "\x03", needs="openssl"),
    "passphrase": Program(
        "ssh-keygen -q -t ed25519 -N secret -f key && ssh-keygen -y -f key", PASSWORD, "secret\r", needs="ssh-keygen"
    ),
}  # fmt: skip
# Programs that compute, print slowly, sleep or wait for others, and never read the terminal.
BUSY: Final[dict[str, str]] = {
    "sleep": "sleep 1.2",
    "computing": python("import time; t = time.time()\nwhile time.time() < t + 1.2: pass"),
    "computing in a thread": python(
        "import threading, time; t = threading.Thread(target=time.sleep, args=(1.2,)); t.start(); t.join()"
    ),
    "computing with echo off": "stty -echo; "
    + python("import time; t = time.time()\nwhile time.time() < t + 1.2: pass")
    + "; stty echo",
    "printing slowly": "for i in 1 2 3 4; do echo $i; sleep 0.4; done",
    "a question without a reader": "printf 'Continue? [y/N] '; sleep 1.2",
    "a prompt that is none": "printf '>>> '; sleep 1.2",
    "waiting for a child": "sh -c 'sleep 1.2; :'",
    "waiting for a job": "sleep 1.2 & wait",
    "a pipeline": "sleep 1.2 | cat | cat",
    "a pager of a slow program": "(sleep 1.2; echo done) | less -E -X -F",
    "reading a file": "tail -f --pid=$$ /dev/null & sleep 1.2; kill %1",
    "polling something else": python("import select, os; r, w = os.pipe(); select.select([r], [], [], 1.2)"),
    "an event loop": python("import asyncio; asyncio.run(asyncio.sleep(1.2))"),
    "node timers": "node -e 'setTimeout(() => 0, 1200)'",
    "input from elsewhere": "(sleep 1.2; echo x) | sh -c 'read x'",
    "raw and computing": "stty raw; sleep 1.2; stty sane",
    "passing a terminal on": f'{sys.executable} -c \'import pty; pty.spawn(["sleep", "1.2"])\'',
    "another terminal recorder": "script -q -c 'sleep 1.2' /dev/null",
}


def prepare(folder: Path) -> None:
    (folder / "file").write_text("".join(f"line {number}\n" for number in range(1, 1001)))
    (folder / "ask.py").write_text(ASK)
    (folder / "ask.js").write_text(NODE_ASK)
    (folder / "Ask.java").write_text(JAVA_ASK)


async def ended(stage: Stage, program: Program) -> None:
    conversation = stage.conversation
    await conversation.send(program.end)
    waited = await conversation.wait_for(PROMPT, timeout_ms=20_000)
    assert waited.matched, waited


@pytest.mark.linux
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.needs(one.needs)) for name, one in some_of(PROGRAMS.items(), 2)]
)
@async_test(timeout_seconds=60)
async def test_a_program_that_waits_for_input(name: str, home: Path) -> None:
    program = PROGRAMS[name]
    async with open_stage(home, "bash") as stage:
        prepare(stage.folder)
        result = await stage.conversation.run(program.command, timeout_ms=30_000)
        assert result.reason == ("password" if program.tty is PASSWORD else "input"), result
        assert result.tty in program.tty
        assert result.hint and result.foreground
        assert not result.timed_out and result.block.state == "running"
        for typed, printed in program.steps:
            sent = await stage.conversation.send(typed)
            waited = await stage.conversation.wait_for(INPUT, from_cursor=sent.cursor, timeout_ms=30_000)
            assert (waited.matched, waited.reason) == (True, "input"), waited
            shown = waited.text if waited.tty != "alt_screen" else (await stage.conversation.screen()).content
            assert printed in shown, (typed, waited)
        await ended(stage, program)


@pytest.mark.linux
@pytest.mark.parametrize("name", some_of(BUSY))
@async_test(timeout_seconds=60)
async def test_a_program_that_only_works(name: str, home: Path) -> None:
    async with open_stage(home, "bash") as stage:
        assert (await stage.conversation.run(BUSY[name], timeout_ms=30_000)).reason == "prompt"
        begun = await stage.conversation.exec_block(BUSY[name])
        waited = await stage.conversation.wait_for(INPUT, from_cursor=begun.cursor, timeout_ms=30_000)
        assert (waited.matched, waited.reason) == (False, "prompt")


@pytest.mark.linux
@in_every_shell()
@async_test(timeout_seconds=60)
async def test_input_in_every_shell(shell: str, home: Path) -> None:
    async with open_stage(home, shell) as stage:
        for command, end in (("cat", b"\x04"), ("sh -c 'read x'", b"x\r")):
            result = await stage.conversation.run(command, timeout_ms=20_000)
            assert (result.reason, result.tty) == ("input", "reads_line")
            assert "asks for a line" in str(result.hint)
            await stage.wait(PROMPT, await stage.type(end))
        assert (await stage.run("sleep 0.5; echo done")).output == "done\n"


@pytest.mark.linux
@async_test(timeout_seconds=60)
async def test_run_waits_on_where_that_is_wanted(home: Path) -> None:
    async with open_stage(home, "bash") as stage:
        result = await stage.conversation.run("cat", stop_at_input=False, timeout_ms=1000)
        assert (result.reason, result.timed_out, result.tty) == ("timeout", True, "reads_line")
        assert result.hint == "cat asks for a line: send_line types it, ctrl_d ends the input"
        await stage.wait(PROMPT, await stage.type(b"\x04"))


@pytest.mark.linux
@async_test(timeout_seconds=60)
async def test_what_a_wait_says_of_a_program_that_works(home: Path) -> None:
    async with open_stage(home, "bash") as stage:
        begun = await stage.conversation.exec_block("sleep 1000")
        waited = await stage.conversation.wait_for(INPUT, from_cursor=begun.cursor, timeout_ms=1500)
        assert (waited.matched, waited.reason, waited.foreground) == (False, "timeout", "sleep")
        assert waited.hint == "sleep runs and has printed nothing for 1 s: keep waiting, or interrupt it"
        await stage.conversation.interrupt()


@pytest.mark.linux
@async_test(timeout_seconds=60)
async def test_a_program_that_reads_again_without_a_word(home: Path) -> None:
    """Nothing is echoed and nothing printed: only the processes tell that it waits again."""
    async with open_stage(home, "bash") as stage:
        result: Any = await stage.conversation.run(
            "stty -echo -icanon; for i in 1 2 3; do head -c1; done >/dev/null; stty sane"
        )
        for _ in range(2):
            assert result.reason == "input"
            sent = await stage.conversation.send("x")
            result = await stage.conversation.wait_for(INPUT, from_cursor=sent.cursor)
        await stage.conversation.send("x")
        await stage.wait(PROMPT, result.cursor)


@async_test
async def test_where_nothing_runs_nothing_waits_for_input(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open(shell="bash")
        waited = await conversation.wait_for([INPUT, PROMPT])
        assert (waited.index, waited.reason) == (1, "prompt")


@pytest.mark.linux
@async_test(timeout_seconds=60)
async def test_a_program_that_waits_for_its_terminal_to_answer(home: Path) -> None:
    """It is the terminal that is asked; the engine answers, however late on a busy machine."""
    code = (
        "import os, tty, sys; tty.setraw(0); os.write(1, b\"\\033[6n\"); "
        "got = os.read(0, 20); os.system(\"stty sane\"); print(len(got) > 4)"
    )
    async with open_stage(home, "bash") as stage:
        stage.conversation.answering = False
        begun = await stage.conversation.exec_block(python(code))
        waited = await stage.conversation.wait_for(INPUT, from_cursor=begun.cursor, timeout_ms=1000)
        assert (waited.matched, waited.reason) == (False, "timeout")
        sent = await stage.conversation.send("\x1b[1;1R", match=PROMPT)
        assert sent.text == "True\n"
