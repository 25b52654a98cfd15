"""Scenarios 47 to 63: programs that ask, read, draw and nest.

Rules of this file: the programs are our own, so that a row runs everywhere; what depends on a program that may not be
installed is a row of its own with the same number (`variant`).
"""

from __future__ import annotations

import asyncio
import shlex
import sys
from pathlib import Path
from typing import Any

from blockpty.model.results import SessionResult
from tests.scenarios.stage import PROMPT, SHORT_MS, TIMEOUT_MS, Done, Stage

SECRET = "hunter2-so-secret"
PYTHON = shlex.quote(sys.executable)
# A session's REPL must look the same in every version: no colours, no editor of its own.
REPL = f"PYTHON_BASIC_REPL=1 PYTHONSTARTUP= {PYTHON} -q -E"

# Puts the terminal into raw mode and shows each byte it gets in hex; `q` ends it.
KEYS = """
import os, sys, termios, tty
before = termios.tcgetattr(0)
tty.setraw(0, termios.TCSANOW)
os.write(1, b"ready\\r\\n")
try:
    while (key := os.read(0, 1)) != b"q":
        os.write(1, b"<%02x>" % key[0])
finally:
    termios.tcsetattr(0, termios.TCSANOW, before)
"""
# What a full-screen program does: alternate screen, raw mode, a size that follows SIGWINCH, `q` to leave.
SCREEN = """
import os, select, signal, termios, tty
wake, woken = os.pipe()
os.set_blocking(woken, False)
signal.set_wakeup_fd(woken)
signal.signal(signal.SIGWINCH, lambda *_: None)
def draw():
    size = os.get_terminal_size(1)
    os.write(1, b"\\x1b[H\\x1b[2Jsize %dx%d." % (size.columns, size.lines))
before = termios.tcgetattr(0)
tty.setraw(0, termios.TCSANOW)
os.write(1, b"\\x1b[?1049h\\x1b[?25l")
draw()
typed = b""
while not typed.endswith(b"q"):
    ready = select.select([0, wake], [], [])[0]
    if wake in ready:
        os.read(wake, 100)
        draw()
    if 0 in ready:
        typed += os.read(0, 100)
termios.tcsetattr(0, termios.TCSANOW, before)
os.write(1, b"\\x1b[?25h\\x1b[?1049l")
"""


def program(stage: Stage, name: str, text: str) -> str:
    """Write a Python program; return the shell text that runs it."""
    path = stage.folder / f"{name}.py"
    path.write_text(text)
    return f"{PYTHON} -E {shlex.quote(str(path))}"


async def closed(stage: Stage, session: SessionResult, cursor: int) -> Any:
    """Wait for the end of a session; return how it ended."""
    await stage.wait(PROMPT, cursor)
    return stage.outcome(await stage.block(session.block_id))


def ask(stage: Stage, text: str, name: str, options: str = "") -> str:
    """Return the shell's own way to ask: bash gives the question with -p, fish with -P, zsh behind a question mark."""
    if stage.shell == "bash":
        return f"read {options} -p {shlex.quote(text)} {name}"
    if stage.shell == "fish":
        return f"read {options} -P {shlex.quote(text)} {name}"
    return f"read {options} {shlex.quote(f'{name}?{text}')}"


def reading(stage: Stage, text: str) -> str:
    """Return shell text that reads a line of the terminal; `read` of fish is its line editor, so there `sh` does it."""
    return f"sh -c {shlex.quote(text)}" if stage.shell == "fish" else text


def drawn(stage: Stage, done: Done) -> Any:
    """Return what a block gave without what fish's own `read` draws up to the last line of it."""
    last = done.output.splitlines(keepends=True)[-1].removeprefix(b"\x1b[K")
    return done._replace(output=last) if stage.shell == "fish" else done


def files_with(stage: Stage, needle: str) -> list[str]:
    """Return the files of the conversation that hold a text."""
    found = [path for path in stage.conversation.directory.rglob("*") if path.is_file()]
    return [path.name for path in found if needle.encode() in path.read_bytes()]


async def question(stage: Stage) -> Any:
    session = await stage.conversation.exec_interactive(f'{ask(stage, "Name: ", "n")}; echo "hi $n"')
    asked = await stage.wait("Name: ", session.cursor)
    status = await stage.conversation.status()
    sent = await stage.conversation.send("Bob\r", session_id=session.session_id)
    return (asked.reason, status.mode), drawn(stage, await closed(stage, session, sent.cursor))


async def secret(stage: Stage) -> Any:
    ask_bash = "read -s -p 'Password: ' p"
    programs = {
        "read -s": f'{ask(stage, "Password: ", "p", "-s")}; echo; echo "${{#p}} characters"',
        "getpass": f"""{PYTHON} -Ec 'import getpass; print(len(getpass.getpass()), "characters")'""",
    }
    if stage.shell == "fish":
        programs["read -s"] = f"bash -c {shlex.quote(ask_bash + '; echo; echo ${#p} characters')}"
    results: dict[str, Any] = {}
    for name, command in programs.items():
        session = await stage.conversation.exec_interactive(command)
        await stage.wait("Password: ", session.cursor)
        # It cannot match; that a password is asked for ends the wait.
        asked = await stage.conversation.wait_for("\x00never", from_cursor=session.cursor, timeout_ms=TIMEOUT_MS)
        tty = (await stage.conversation.status()).tty
        sent = await stage.conversation.send(f"{SECRET}\r", session_id=session.session_id)
        done = await closed(stage, session, sent.cursor)
        typed = [event.fields for event in await stage.events("input") if event.fields.get("redacted")]
        results[name] = (asked.reason, tty, done, len(typed) > 0)
    return results, files_with(stage, SECRET)


async def secret_asked_early(stage: Stage) -> Any:
    gate = stage.gate()
    session = await stage.conversation.exec_interactive(
        reading(
            stage,
            f"printf 'Password: '; {gate.child}; stty -echo; printf '> '; read -r p; stty echo; echo \"${{#p}}\"",
        )
    )
    await stage.wait("Password: ", session.cursor)
    early = await stage.absent("never", session.cursor)
    tty = (await stage.conversation.status()).tty
    gate.release()
    asked = await stage.conversation.wait_for("never", from_cursor=session.cursor, timeout_ms=TIMEOUT_MS)
    sent = await stage.conversation.send(f"{SECRET}\r")
    return (early, tty), asked.reason, await closed(stage, session, sent.cursor), files_with(stage, SECRET)


async def repl(stage: Stage) -> Any:
    conversation = stage.conversation
    session = await conversation.exec_interactive(REPL)
    ready = await stage.wait(">>> ", session.cursor)
    await conversation.send("1+1\r")
    answer = await stage.wait({"regex": r"^2$"}, ready.cursor)
    running = await conversation.status()
    await conversation.send("exit()\r")
    done = await closed(stage, session, answer.cursor)
    block = await stage.block(session.block_id)
    return {
        "answer": answer.match_text,
        "running": (running.mode, running.active_block_id == session.block_id),
        "done": (done.exit_status, done.state, block.kind, block.parts),
        "blocks": len(await stage.blocks()),
    }


async def repl_lines(stage: Stage) -> Any:
    conversation = stage.conversation
    session = await conversation.exec_interactive(REPL)
    cursor = (await stage.wait(">>> ", session.cursor)).cursor
    for line, answer in (("def f(x):", "... "), ("    y = x + 1", "... "), ("    return y * 2", "... "), ("", ">>> ")):
        await conversation.send(f"{line}\r")
        cursor = (await stage.wait(answer, cursor)).cursor
    await conversation.send("f(20)\r")
    by_line = await stage.wait({"regex": r"^42$"}, cursor)
    # What a REPL makes of a paste is its own business: an expression over several lines all of them take.
    await conversation.paste("print(\n    'pasted',\n    6 * 7,\n)\n", session_id=session.session_id)
    await conversation.enter()
    pasted = await stage.wait({"regex": r"^pasted 42$"}, by_line.cursor)
    await conversation.send("exit()\r")
    done = await closed(stage, session, pasted.cursor)
    return by_line.match_text, pasted.match_text, done[:2], len(await stage.blocks())


async def copier(stage: Stage) -> Any:
    session = await stage.conversation.exec_interactive("cat")
    await stage.conversation.send("hello\r")
    await stage.wait({"regex": r"^hello$"}, session.cursor)
    sent = await stage.conversation.ctrl_d(session_id=session.session_id)
    return await closed(stage, session, sent.cursor)


async def nested(stage: Stage) -> Any:
    conversation = stage.conversation
    session = await conversation.exec_interactive("PS1='inner> ' bash --norc -i; sh -c 'exit 4'")
    cursor = (await stage.wait("inner> ", session.cursor)).cursor
    for command in ("echo one", "(exit 3)"):
        await conversation.send(f"{command}\r")
        cursor = (await stage.wait("inner> ", cursor)).cursor
    reason = await stage.absent(PROMPT, session.cursor)
    status = await conversation.status()
    await conversation.send("exit\r")
    done = await closed(stage, session, cursor)
    return {
        "inside": (reason, status.mode, status.active_session_id == session.session_id, status.foreground),
        "done": (done.exit_status, done.state, b"one\n" in done.output),
        "blocks": [block.block_id for block in await stage.blocks()],
        "doubts": await stage.doubts(),
    }


EXPORTED = {
    # Everything of ours that an environment can carry, and what of it an inner shell runs by itself.
    "bash": "export -f $(compgen -A function __bpty); export $(compgen -v __bpty) PS0 PS1 PS2; "
    "export PROMPT_COMMAND='__bpty_pre; __bpty_post'; bash --norc -i",
    "zsh": "export ${(k)parameters[(I)__bpty*]} 2>/dev/null; export PS1 PS2; zsh -f -i; bash --norc -i",
    "fish": "for one in (set -gn | string match '__bpty*'); set -x $one $$one; end; bash --norc -i",
}


async def nested_with_hooks(stage: Stage) -> Any:
    """The inner shell has our hooks and the nonce; its marks carry another process id."""
    return await _nested_with_hooks(stage, EXPORTED[stage.shell])


async def nested_with_all_hooks(stage: Stage) -> Any:
    """The same where the inner shell puts our hooks into its own PROMPT_COMMAND, and throws its errors away."""
    both = "{ __bpty_end; } >/dev/null 2>&1; { __bpty_post; } 2>/dev/null"
    return await _nested_with_hooks(stage, f"export __bpty_pc_both='{both}' __bpty_w=1; {EXPORTED[stage.shell]}")


async def _nested_with_hooks(stage: Stage, commands: str) -> Any:
    conversation = stage.conversation
    begun = await conversation.exec_block(f"{commands if stage.shell == 'fish' else f'({commands})'}; sh -c 'exit 4'")
    for _ in commands.split(" -i")[1:]:
        await stage.wait({"idle_ms": 200}, (await conversation.status()).cursor)
        await conversation.send("echo in''ner\r")
        await stage.wait("inner\n", begun.cursor)
        reason = await stage.absent(PROMPT, begun.cursor)
        open_ = (await conversation.status()).active_block_id == begun.block_id
        assert (reason, open_) == ("timeout", True)
        await conversation.send("exit\r")
    await stage.wait(PROMPT, begun.cursor)
    reasons = {reason for _, reason in await stage.doubts()}
    done = stage.outcome(await stage.block(begun.block_id))
    nonce = stage.nonce.encode() in done.output
    return done[:2], sorted(reasons), nonce, await stage.done("echo next"), len(await stage.blocks())


async def _screen(stage: Stage, command: str, ready: Any, keys: tuple[str, ...]) -> Any:
    """Run a full-screen program, type keys once it is there; return what the terminal did and showed, and its end."""
    session = await stage.conversation.exec_interactive(command)
    seen = await stage.wait(ready, session.cursor)
    picture = ready if isinstance(ready, str) else ready["regex"]
    await stage.wait({"screen": picture}, session.cursor)
    shown = [(await stage.conversation.screen()).alt_screen]
    status = await stage.conversation.status()
    for key in keys:
        await stage.conversation.send_keys(key)
    await stage.wait(PROMPT, seen.cursor)
    block = await stage.block(session.block_id)
    after = await stage.conversation.status()
    shown.append((await stage.conversation.screen()).alt_screen)
    assert shown == [True, False], "the picture is there, and gone with its program"
    return (status.mode, status.tty), (block.exit_status, block.state), (after.mode, after.tty)


async def pager_policy(stage: Stage) -> Any:
    own = program(stage, "pager", SCREEN)
    return await _screen(stage, own, "size 80x24.", ("q",)), await stage.done("echo next")


async def git_log(stage: Stage) -> Any:
    setup = "git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m 'the message'"
    await stage.run(setup)
    plain = await stage.done("GIT_PAGER=cat git log --format=%s")
    paged = await _screen(stage, "GIT_PAGER='less -+F -+X' git log --format=%s", "the message", ("q",))
    return plain, paged, await stage.done("echo next")


async def editor(stage: Stage) -> Any:
    own = program(stage, "editor", SCREEN + "open('text', 'wb').write(typed[:-1])\n")
    shown = await _screen(stage, own, "size 80x24.", ("written", "q"))
    return shown, (stage.folder / "text").read_bytes(), await stage.done("echo next")


async def vim(stage: Stage) -> Any:
    command = "vim -u NONE -N -i NONE text"
    shown = await _screen(stage, command, {"regex": r"text.{0,20}\[New"}, ("iwritten", "[ESC]", ":wq[ENTER]"))
    return shown, (stage.folder / "text").read_bytes(), await stage.done("echo next")


async def resized(stage: Stage) -> Any:
    session = await stage.conversation.exec_interactive(program(stage, "top", SCREEN))
    cursor = (await stage.wait("size 80x24.", session.cursor)).cursor
    await stage.conversation.resize(100, 30)
    cursor = (await stage.wait("size 100x30.", cursor)).cursor
    await stage.wait({"screen": r"\Asize 100x30\.$"}, session.cursor)
    shown = await stage.conversation.screen()
    assert (shown.cols, shown.rows, shown.alt_screen) == (100, 30, True)
    sizes = [(event.fields["cols"], event.fields["rows"]) for event in await stage.events("resize")]
    await stage.conversation.send("q")
    return sizes, (await closed(stage, session, cursor))[:2], await stage.done("echo next")


async def top(stage: Stage) -> Any:
    session = await stage.conversation.exec_interactive("top")
    cursor = (await stage.wait("PID", session.cursor)).cursor
    await stage.conversation.resize(100, 30)
    await stage.wait("PID", cursor)
    await stage.wait({"screen": r"^ *PID +USER"}, cursor)
    shown = await stage.conversation.screen()
    assert (shown.cols, shown.rows) == (100, 30)
    sizes = [(event.fields["cols"], event.fields["rows"]) for event in await stage.events("resize")]
    sent = await stage.conversation.send("q")
    return sizes, (await closed(stage, session, sent.cursor))[:2], await stage.done("echo next")


async def cursor_position(stage: Stage) -> Any:
    conversation = stage.conversation
    asking = KEYS.replace("ready", "\\x1b[3;5H\\x1b[6nready")
    session = await conversation.exec_interactive(program(stage, "keys", asking) + r"; printf 'asked\033[6n'")
    # The engine answers by itself, from the screen at that moment; and what a caller sends arrives as well.
    cursor = (await stage.wait("<1b><5b><33><3b><35><52>", session.cursor)).cursor
    await conversation.send("\x1b[7;9R")
    got = await stage.wait("<52>", cursor)
    await conversation.send("q")
    done = await closed(stage, session, got.cursor)
    # A question whose program has ended leaves nothing on the next command line.
    after = [await stage.done("echo next"), await stage.done(r"printf '\033[6n'"), await stage.done("echo last")]
    return b"<1b><5b><37><3b><39><52>" in done.output, after


DRAIN = """
import os, sys, termios
os.write(1, b"ready\\n")
open(sys.argv[1]).readline()
os.set_blocking(0, False)
try:
    drained = len(os.read(0, 65536))
except BlockingIOError:
    drained = 0
termios.tcflush(0, termios.TCIFLUSH)
os.set_blocking(0, True)
print("drained", drained)
"""


async def drained(stage: Stage) -> Any:
    gate = stage.gate()
    command = f"{program(stage, 'drain', DRAIN)} {shlex.quote(str(gate.path))}"
    first = await stage.conversation.exec_block(command)
    await stage.wait("ready", first.cursor)
    queued = asyncio.create_task(stage.conversation.exec_block("echo queued", queue=True))
    waited = await stage.absent(PROMPT, first.cursor)
    gate.release()
    second = await queued
    await stage.wait(PROMPT, second.cursor)
    return waited, [stage.outcome(block) for block in await stage.blocks()]


async def yes_or_no(stage: Stage) -> Any:
    session = await stage.conversation.exec_interactive(
        reading(stage, "printf 'Proceed? [y/N] '; read -r a; echo \"got $a\"")
    )
    asked = await stage.wait({"regex": r"\[y/N\] $"}, session.cursor)
    sent = await stage.conversation.send("y\r")
    return asked.match_text, await closed(stage, session, sent.cursor)


async def collecting(stage: Stage) -> Any:
    gate = stage.gate()
    begun = await stage.conversation.exec_block(f"printf 'collecting ... '; {gate.child}; echo done")
    await stage.wait("collecting ... ", begun.cursor)
    await stage.wait({"idle_ms": 50}, begun.cursor)
    silent = await stage.conversation.wait_for("never", from_cursor=begun.cursor, timeout_ms=SHORT_MS)
    status = await stage.conversation.status()
    gate.release()
    await stage.wait(PROMPT, begun.cursor)
    return silent.reason, (status.mode, status.tty), stage.outcome(await stage.block(begun.block_id))


async def enter_key(stage: Stage) -> Any:
    conversation = stage.conversation
    session = await conversation.exec_interactive(program(stage, "keys", KEYS))
    cursor = (await stage.wait("ready", session.cursor)).cursor
    await conversation.enter(session_id=session.session_id)
    await stage.wait("<0d>", cursor)
    await conversation.send_keys("[ENTER]a", session_id=session.session_id)
    got = await stage.wait("<61>", cursor)
    await conversation.send("q")
    return b"<0d><0d><61>" in (await closed(stage, session, got.cursor)).output


async def nothing_runs(stage: Stage) -> Any:
    conversation = stage.conversation
    await stage.run("true")
    calls = {
        "send": conversation.send("touch started\r"),
        "send_keys": conversation.send_keys("touch started[ENTER]"),
        "paste": conversation.paste("touch started\n"),
        "enter to a session": conversation.enter(session_id="s1"),
    }
    refused = {name: await stage.refusal(call) for name, call in calls.items()}
    status = await conversation.status()
    after = await stage.done("echo next")
    started = Path(stage.folder / "started").exists()
    return refused, status.mode, after, started, [block.cmd for block in await stage.blocks()]
