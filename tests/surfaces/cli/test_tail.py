"""tail, log and hidden input with a real shell and, where it matters, a real terminal."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import blockpty
from tests.support.async_tests import async_test
from tests.support.cli_terminal import on_terminal, start, unsafe

pytestmark = pytest.mark.needs("bash")

Conversation = blockpty.Conversation


@asynccontextmanager
async def tailing(*arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Start a tail that is following when this gives it, and that must have ended by the end."""
    command = [sys.executable, "-m", "blockpty", "tail", "c1", *arguments]
    process = await asyncio.create_subprocess_exec(*command, stdout=-1, stderr=-1)
    try:
        yield process
        assert await asyncio.wait_for(process.wait(), 30) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def until(process: asyncio.subprocess.Process, text: bytes) -> bytes:
    """Return what a tail prints, up to and with some text."""
    assert process.stdout is not None
    return await asyncio.wait_for(process.stdout.readuntil(text), 30)


async def rest(process: asyncio.subprocess.Process) -> bytes:
    assert process.stdout is not None
    return await asyncio.wait_for(process.stdout.read(), 30)


def in_a_conversation(test: Callable[[Conversation], Awaitable[None]]) -> Callable[[Path], None]:
    @async_test
    async def run(home: Path) -> None:
        async with blockpty.Engine(home) as engine:
            await test(await engine.open("c1", shell="bash", cwd="/"))

    run.__name__ = test.__name__
    return run


# tail


@in_a_conversation
async def test_tail_is_live(conversation: Conversation) -> None:
    await conversation.run("echo before")
    await conversation.exec_block("echo begun; read answer; echo \"<$answer>\"; read answer; printf 'no newline'")
    await conversation.wait_for("begun")
    async with tailing() as process:
        # What the running block has printed already, and nothing of those before.
        assert await until(process, b"begun\n") == b"begun\n"
        await conversation.send("one\n")
        assert await until(process, b"<one>\n") == b"one\n<one>\n"
        await conversation.send("two\n")
        await until(process, b"no newline")
        await conversation.wait_for({"token": "PROMPT"})
        await conversation.run("printf '\\033[2J\\377'; exit 5")
        # Into a pipe it goes as it is; what is no UTF-8 is replaced.
        assert await rest(process) == "\x1b[2J\ufffdexit\n".encode()
        assert process.stderr is not None
        assert b"has ended (exit status 5)" in await process.stderr.read()


@in_a_conversation
async def test_tail_of_blocks(conversation: Conversation) -> None:
    await conversation.run("echo one; (exit 3)")
    await conversation.exec_block("read -r x; true")
    async with tailing("--from-cursor", "0", "--blocks") as process:
        await until(process, b"==> b2 $ read -r x; true\n")
        await conversation.send("x\n")
        # The end of a block comes without the beginning of another.
        assert (await until(process, b"<== b2 exit 0, ")).startswith(b"x\n")
        await until(process, b"\n")
        await conversation.run("printf tail; kill -9 $$")
        shown = (await rest(process)).decode().splitlines()
    assert shown == ["==> b3 $ printf tail; kill -9 $$", "tail", shown[-1]]
    assert shown[-1].startswith("<== b3 ")


@in_a_conversation
async def test_tail_from_a_cursor(conversation: Conversation) -> None:
    for word in ("one", "two", "three"):
        await conversation.run(f"echo {word}")
    begin, _ = (await conversation.block("b2")).block.span
    await conversation.close()
    for arguments, expected in (
        (["--from-cursor", str(begin)], b"two\nthree\n"),
        (["--from-cursor", str(begin + 1)], b"wo\nthree\n"),
        (["--from-cursor", "0"], b"one\ntwo\nthree\n"),
        ([], b""),
    ):
        async with tailing(*arguments) as process:
            assert await rest(process) == expected
    async with tailing("--from-cursor", str(begin), "--blocks") as process:
        lines = (await rest(process)).decode().splitlines()
        assert [line.split()[:2] for line in lines if line.startswith(("==>", "<=="))] == [
            ["==>", "b2"], ["<==", "b2"], ["==>", "b3"], ["<==", "b3"],
        ]  # fmt: skip


@in_a_conversation
async def test_tail_raw_is_the_stream(conversation: Conversation) -> None:
    async with tailing("--raw", "--from-cursor", "0") as process:
        await conversation.run("printf '\\033[2J\\377\\0'")
        await until(process, b"\x1b[2J\xff\x00")
        await conversation.close()
        found = await rest(process)
    assert b"7717" in found and b"__END__" in found


@in_a_conversation
async def test_tail_as_json(conversation: Conversation) -> None:
    async with tailing("--json", "--from-cursor", "0") as process:
        await conversation.run("echo ü; printf '\\303'")
        await conversation.close()
        lines = [json.loads(line) for line in (await rest(process)).splitlines()]
        assert process.stderr is not None
        assert await process.stderr.read() == b""
    types = [line["type"] for line in lines if line["block_id"] == "b1"]
    assert types[0] == "agent_block_begin" and types[-1] == "agent_block_end"
    assert set(types[1:-1]) == {"agent_block_delta"}
    assert "".join(line.get("data", "") for line in lines if line["block_id"] == "b1") == "ü\n\ufffd"


@in_a_conversation
async def test_ctrl_c_leaves_tail_and_not_the_program(conversation: Conversation) -> None:
    await conversation.exec_block('echo begun; read answer; echo "$answer"')
    await conversation.wait_for("begun")

    def tail_and_leave() -> tuple[int | None, bytes]:
        with start("tail", "c1") as terminal:
            terminal.expect_exact("begun")
            terminal.sendintr()
            shown = terminal.read()
        return terminal.exitstatus, shown

    status, shown = await asyncio.to_thread(tail_and_leave)
    assert status == 130 and b"Traceback" not in shown
    assert (await conversation.status()).mode == "block_running"
    await conversation.send("still here\n")
    await conversation.wait_for({"token": "PROMPT"})
    assert (await conversation.block("b1")).block.exit_status == 0


@in_a_conversation
async def test_a_reader_that_goes_away_ends_tail(conversation: Conversation) -> None:
    await conversation.exec_block('while read -r x; do echo "$x"; done')
    command = f"'{sys.executable}' -m blockpty tail c1 | head -n 1; echo ${{PIPESTATUS[0]}}"
    process = await asyncio.create_subprocess_exec("bash", "-c", command, stdout=-1)
    reading = asyncio.ensure_future(process.communicate())
    while not reading.done():
        # Nobody tells when it follows, or when head has gone: it is written to until both have ended.
        await conversation.send("line\n")
        await asyncio.wait((reading,), timeout=0.1)
    out, _ = await reading
    assert out == b"line\n141\n"
    await conversation.ctrl_c()


@pytest.mark.parametrize("arguments", [["--raw", "--blocks"], ["--raw", "--json"], ["--from-cursor", "-1"]])
def test_tail_refuses_what_makes_no_sense(home: Path, arguments: list[str]) -> None:
    told = subprocess.run(
        [sys.executable, "-m", "blockpty", "tail", "c1", *arguments], capture_output=True, check=False, timeout=60
    )
    assert told.returncode == 2
    assert list(home.iterdir()) == []


# log


def log(*arguments: str) -> str:
    told = subprocess.run(
        [sys.executable, "-m", "blockpty", "log", "c1", *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert told.stderr == ""
    return told.stdout


def records(*arguments: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log("--json", *arguments).splitlines()]


@in_a_conversation
async def test_log(conversation: Conversation) -> None:
    for command in ("echo one", "(exit 3)", "seq 1000000\ntrue", "kill -TERM $BASHPID", "printf '\\033[31mred'"):
        await conversation.run(command, timeout_ms=60_000)
    await conversation.exec_block("echo now; read x")
    await conversation.wait_for("now")

    def ids(*arguments: str) -> list[str]:
        return [record["block_id"] for record in records(*arguments)]

    async def check() -> None:
        assert await asyncio.to_thread(ids) == ["b6", "b5", "b4", "b3", "b2", "b1"]
        assert await asyncio.to_thread(ids, "-n", "2") == ["b6", "b5"]
        assert await asyncio.to_thread(ids, "-n", "0") == []
        assert await asyncio.to_thread(ids, "--reverse", "-n", "2") == ["b5", "b6"]
        assert "b2" in (failed := await asyncio.to_thread(ids, "--failed")) and not {"b1", "b3", "b6"} & set(failed)
        by_id = {record["block_id"]: record for record in await asyncio.to_thread(records)}
        assert by_id["b1"] == {
            **(await conversation.block("b1")).block.to_dict(),
            "span": by_id["b1"]["span"],
            "output": "one\n",
            "output_truncated": False,
        }
        assert by_id["b3"]["output"].split() == ["1", "2", "3", "4", "5", *(str(999_996 + n) for n in range(5))]
        assert by_id["b3"]["output_truncated"] is True
        assert by_id["b6"]["state"] == "running" and by_id["b6"]["output"] == "now\n"
        assert "output" not in (await asyncio.to_thread(records, "--no-output"))[0]
        text = await asyncio.to_thread(log)
        assert "\x1b" not in text
        headings = [line for line in text.splitlines() if line.startswith("b")]
        assert [line.split()[0] for line in headings] == ["b6", "b5", "b4", "b3", "b2", "b1"]
        assert "running" in headings[0] and "exit 3" in headings[4]
        assert "$ seq 1000000\n  true\n" in text and "    one\n" in text and "6888896 bytes in all" in text
        assert "one" in await asyncio.to_thread(log, "--lines", "1")
        assert "    one" not in await asyncio.to_thread(log, "--no-output")

    await check()


@in_a_conversation
async def test_log_on_a_terminal_goes_through_the_pager(conversation: Conversation) -> None:
    await conversation.run("printf '\\033[31mred\\033]0;t\\007'; (exit 3)")
    await conversation.run("seq 2000")
    status, shown = await asyncio.to_thread(on_terminal, "log", "c1", PAGER="sed 's/^/PAGED /'")
    assert status == 0 and not unsafe(shown)
    assert "PAGED \x1b[33mb2" in shown and "\x1b[31mred^[]0;t" in shown and "\x1b[31mexit 3" in shown
    for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        status, shown = await asyncio.to_thread(on_terminal, "log", "c1", **variables)
        assert status == 0 and "\x1b" not in shown and "red" in shown
    status, shown = await asyncio.to_thread(on_terminal, "log", "c1", "--no-pager", PAGER="false")
    assert status == 0 and "\x1b[33mb2" in shown
    # Who leaves the pager early has seen enough.
    status, shown = await asyncio.to_thread(on_terminal, "log", "c1", "--lines", "1000", PAGER="head -n 1")
    assert status == 0 and shown.count("\n") == 1


@pytest.mark.needs("less")
@in_a_conversation
async def test_log_in_less(conversation: Conversation) -> None:
    await conversation.run("seq -f %0200g 900; printf '\\033[31mred\\033]0;OW%s\\007' NED")

    def page() -> tuple[int | None, bytes]:
        with start("log", "c1", "--lines", "1000", columns=300, PAGER="less -R", LESS="-R") as terminal:
            # The first screen is full, so less waits for a key; more is to come than a pipe holds.
            terminal.expect_exact(":\x1b[K")
            terminal.sendintr()  # less takes it for itself, and rings
            terminal.expect_exact("\x07")
            terminal.send("GG")  # one key may get lost: less drops it if the Ctrl-C came just before it began to wait
            terminal.expect_exact("OWNED")
            shown = terminal.before
            terminal.send("q")
            terminal.read()
        return terminal.exitstatus, shown

    status, shown = await asyncio.to_thread(page)
    assert status == 0
    assert b"\x1b[31mred" in shown and shown.endswith(b"^[]0;")


# Input


@in_a_conversation
async def test_hidden_input(conversation: Conversation) -> None:
    await conversation.exec_interactive("read -rsp 'Password: ' p; echo; [[ $p == 'se cret\\' ]] && echo right")
    await conversation.wait_for("Password: ")

    def type_hidden() -> tuple[int | None, bytes]:
        with start("--json", "send", "c1", "--hidden") as terminal:
            terminal.expect_exact("for c1, not shown: ")
            terminal.sendline("se cret\\")
            shown = terminal.read()
        return terminal.exitstatus, shown

    # Only the engine that owns it may write, so the command line needs it for itself.
    await conversation.detach()
    status, shown = await asyncio.to_thread(type_hidden)
    assert status == 0, shown
    assert b"cret" not in shown
    waited = await asyncio.to_thread(answered, "wait-for", "c1", "right", "--from-cursor", "0")
    assert waited[0]["matched"] is True
    events = await asyncio.to_thread(answered, "events", "c1", "--no-follow")
    assert [event["author"] for event in events if event["type"] == "input"][-1] == "user"
    await asyncio.to_thread(answered, "close", "c1")


def answered(*arguments: str) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "blockpty", *arguments, "--json"]
    told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return [json.loads(line) for line in told.stdout.splitlines()]


def test_hidden_input_without_a_terminal_is_refused(home: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-m", "blockpty", "send", "c1", "--hidden"],
        input=b"secret\n", capture_output=True, check=False, timeout=60, start_new_session=True,
    )  # fmt: skip
    assert told.returncode == 2 and b"needs a terminal" in told.stderr


@pytest.mark.parametrize(("keys", "status"), [("\x03", 130), ("\x04", 130)])
def test_hidden_input_can_be_left(home: Path, keys: str, status: int) -> None:
    with start("send", "c1", "--hidden") as terminal:
        terminal.expect_exact("not shown: ")
        terminal.send(keys)
        shown = terminal.read()
    assert (terminal.exitstatus, b"Traceback" in shown) == (status, False)


# Completion


@pytest.fixture
def programs(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a command `blockpty` on PATH, and two conversations into the home."""
    (tmp_path / "blockpty").write_text(f"#!/bin/sh\nexec '{sys.executable}' -m blockpty \"$@\"\n")
    (tmp_path / "blockpty").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    asyncio.run(asyncio.wait_for(_two_conversations(home), 60))
    return tmp_path


async def _two_conversations(home: Path) -> None:
    async with blockpty.Engine(home) as engine:
        for name in ("deploy", "develop"):
            conversation = await engine.open(name, shell="bash")
            await conversation.run(": '\x1b]0;x\x07' a:b,c\n\ttrue")
            await conversation.run("make test")
    # An engine that ends lets go of both at the same time.
    for number, name in enumerate(("deploy", "develop")):
        for path in (home / "conversations" / name).rglob("*"):
            os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    (home / "conversations" / "de\x1b]0;x\x07$(touch owned)").mkdir()


def completed(shell: str, words: str) -> list[str]:
    count = len(words.split(" ")) - 1
    current = words.split(" ")[-1] if shell == "fish" else str(count)
    told = subprocess.run(
        [sys.executable, "-m", "blockpty"],
        env={**os.environ, "_BLOCKPTY_COMPLETE": f"{shell}_complete", "COMP_WORDS": words, "COMP_CWORD": current},
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert told.stderr == ""
    return [line for line in told.stdout.splitlines() if line]


def test_what_is_offered(programs: Path, home: Path) -> None:
    assert completed("bash", "blockpty status d") == ["plain,develop", "plain,deploy"]
    assert completed("bash", "blockpty tail dep") == ["plain,deploy"]
    assert completed("bash", "blockpty replay dep") == ["plain,deploy"]
    assert completed("bash", "blockpty open d") == []
    # A shell that ends may say so in a block of its own.
    assert completed("bash", "blockpty block deploy ")[-2:] == ["plain,b2", "plain,b1"]
    assert completed("bash", "blockpty read deploy --block-id b1") == ["plain,b1"]
    assert completed("bash", "blockpty block nothing ") == []
    assert completed("bash", "blockpty block ../conversations/deploy ") == []
    assert completed("bash", "blockpty ta") == ["plain,take-control", "plain,tail"]
    assert completed("bash", "blockpty --home /nowhere status d") == []
    assert completed("bash", f"blockpty --home {home} status dep") == ["plain,deploy"]
    assert completed("bash", "blockpty completion z") == ["plain,zsh"]
    assert completed("bash", "blockpty --home /x") == ["dir,/x"]
    summary = ": '^[]0;x^G' a:b,c↵ true"
    assert completed("fish", "blockpty block deploy b1") == [f"plain,b1\t{summary}"]
    assert completed("zsh", "blockpty block deploy b1") == ["plain", "b1", summary]


def test_offering_loads_no_engine(home: Path) -> None:
    code = (
        "import sys; from blockpty.surfaces.cli.main import main; main([]); "
        "loaded = {'asyncio', 'rich', 'regex', 'blockpty.runtime'} & set(sys.modules); sys.exit(str(loaded or ''))"
    )
    told = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "_BLOCKPTY_COMPLETE": "bash_complete", "COMP_WORDS": "blockpty status ", "COMP_CWORD": "2"},
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert told.stderr.strip() == ""


_ROOT = Path(__file__).parents[3]
_LOAD = {
    "bash": 'eval "$(blockpty completion bash)"',
    "zsh": 'autoload -U compinit; compinit -u -D; eval "$(blockpty completion zsh)"',
    "fish": "blockpty completion fish | source",
}
_START = {"bash": ["--norc", "--noprofile", "-i"], "zsh": ["-f", "-i"], "fish": ["--no-config", "-i"]}


@pytest.mark.parametrize("shell", [pytest.param(name, marks=pytest.mark.needs(name)) for name in _LOAD])
def test_a_shell_completes(programs: Path, shell: str) -> None:
    asyncio.run(asyncio.wait_for(_completes(shell, str(shutil.which(shell))), 60))


async def _completes(shell: str, path: str) -> None:
    async with blockpty.Engine() as engine:
        # A conversation of ours is the terminal that somebody types into; its own name is offered as well.
        conversation = await engine.open("typing", shell=path)
        await conversation.run(f"export BLOCKPTY_HOME='{engine.home}' PYTHONPATH='{_ROOT}'")
        await conversation.exec_interactive(" ".join([path, *_START[shell]]))
        await conversation.wait_for({"idle_ms": 500})
        await conversation.send(f"{_LOAD[shell]}; echo loa''ded\n")
        await conversation.wait_for("loaded")
        await conversation.wait_for({"idle_ms": 500})
        sent = await conversation.send("blockpty status dep\t")
        found = await conversation.wait_for({"regex": "deplo?y?|loy"}, from_cursor=sent.cursor, timeout_ms=20_000)
        await conversation.send("\x15echo over\n")
        assert found.matched, found.text
