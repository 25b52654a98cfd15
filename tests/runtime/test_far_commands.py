"""Commands in a shell behind ssh, which sees no file of ours: their text follows our key on the terminal."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from blockpty.errors import NoPrompt
from blockpty.host.injection import fed_text
from tests.scenarios.stage import PROMPT, SHELLS, TIMEOUT_MS, in_every_shell, open_stage_over_ssh
from tests.support.async_tests import AsyncTest, async_test
from tests.support.profile import some_of
from tests.support.versions import FETCHED, numbers

COMMANDS: Final[dict[str, tuple[int, str, bytes]]] = {
    "echo 'a;b' \"c\\\\d\" $'e\\tf' é日🙂": (0, "ended", "a;b c\\d e\tf é日🙂\n".encode()),
    "printf '%s|' $'\\x01' '~' ';;' '\\\\n' | od -An -c | tr -s ' '": (
        0, "ended", b" 001 | ~ | ; ; | \\ \\ n |\n",
    ),
    "echo wow!! !x": (0, "ended", b"wow!! !x\n"),
    "cat <<X\none\n  two $((1+1))\nX": (0, "ended", b"one\n  two 2\n"),
    "echo a\n(exit 4)": (4, "ended", b"a\n"),
    "echo a\n\n# said\n": (0, "ended", b"a\n"),
    "echo a \\": (0, "ended", b"a\n"),
    "# alone": (0, "ended", b""),
    "for i in 1 2; do\n  echo $i\ndone": (0, "ended", b"1\n2\n"),
    "f() {\n  local x=1\n  return 7\n}\nf": (7, "ended", b""),
    "printf '%s' '" + "é; \\" * 5000 + "' | wc -c | tr -d ' '": (0, "ended", b"25000\n"),
    "printf '%s' '" + "漢\n" * 9000 + "' | wc -c | tr -d ' '": (0, "ended", b"36000\n"),
    "printf '%s' '" + "y" * 40_000 + "' | wc -c | tr -d ' '": (0, "ended", b"40000\n"),
}  # fmt: skip


def in_every_far_shell(test: AsyncTest) -> Callable[..., None]:
    """Make a test of a coroutine function, in each shell behind ssh."""
    made: Callable[..., None] = in_every_shell()(pytest.mark.needs("sshd")(async_test(timeout_seconds=100)(test)))
    return made


def programs() -> list[object]:
    """The shells of this machine, and some of the other versions that were fetched and have the key."""
    with_key = [one for one in FETCHED if one[0] in SHELLS and (one[0] != "bash" or numbers(one[1]) >= (5, 1))]
    chosen = [(name, name, "") for name in SHELLS]
    chosen += [(f"{name}-{version}", name, str(path)) for name, version, path in some_of(with_key, 2)]
    return [pytest.param(name, path, id=title, marks=pytest.mark.needs(name)) for title, name, path in chosen]


@pytest.mark.needs("sshd")
@pytest.mark.parametrize(("shell", "program"), programs())
@async_test(timeout_seconds=100)
async def test_a_command_is_its_text(shell: str, program: str, home: Path) -> None:
    async with open_stage_over_ssh(home, shell, program) as stage:
        for command, expected in COMMANDS.items():
            assert await stage.done(command) == expected, command[:80]
        blocks = await stage.blocks()
        assert [block.cmd for block in blocks] == list(COMMANDS)
        assert await stage.doubts() == []


@in_every_far_shell
async def test_a_wrong_command_leaves_the_next_one_alone(shell: str, home: Path) -> None:
    """Also one of several lines whose end is missing, which the shell reads as one text."""
    async with open_stage_over_ssh(home, shell) as stage:
        for command in ("(a", "'", "if true; then", ")", "echo one\n'two", "f() {\n  echo"):
            done = await stage.done(command)
            assert done.exit_status not in (0, None), (command, done)
            assert b"7717" not in done.output and b"__bpty" not in done.output, (command, done)
            assert await stage.done("echo next") == (0, "ended", b"next\n"), command
        # A here-document without its end is only warned of, and has the lines that it has.
        done = await stage.done("cat <<E | od -An -c | tr -s ' '\nfoo\nbar")
        assert done.exit_status == 0 and done.output.endswith(b" f o o \\n b a r \\n\n"), done
        assert await stage.doubts() == []


@in_every_far_shell
async def test_the_directory_of_a_command_is_entered_there(shell: str, home: Path) -> None:
    async with open_stage_over_ssh(home, shell) as stage:
        inner = stage.folder / "a b;c"
        inner.mkdir()
        assert await stage.done("pwd", cwd="a b;c") == (0, "ended", f"{inner}\n".encode())
        assert (await stage.done("echo never", cwd="/nonexistent")).exit_status == 1
        assert await stage.done("pwd") == (0, "ended", f"{inner}\n".encode())


@in_every_far_shell
async def test_the_history_has_what_was_run(shell: str, home: Path) -> None:
    async with open_stage_over_ssh(home, shell) as stage:
        await stage.run("echo one")
        await stage.run("echo two\necho three")
        history = (await stage.done("fc -ln 1 2>/dev/null; true")).output.decode()
        assert "eval $'" not in history and "/dev/fd" not in history, history
        assert history.count("echo one") == 1 and history.count("echo three") == 1, history


UNBIND: Final = {
    "bash": "bind -r '\\e[7717~'; bind -r '\\e[7718~'",
    "zsh": "bindkey -r '\\e[7717~'; bindkey -M viins -r '\\e[7717~'",
}


@in_every_far_shell
async def test_where_the_key_is_not_bound_a_command_runs_once(shell: str, home: Path) -> None:
    """The text stays on the command line then, which the engine sees, clears, and types another line."""
    async with open_stage_over_ssh(home, shell) as stage:
        await stage.run(UNBIND[shell])
        for count in range(1, 4):
            assert await stage.done("echo run >>log; cat log") == (0, "ended", b"run\n" * count)
        assert len(await stage.blocks()) == 4
        assert await stage.doubts() == []


@in_every_far_shell
async def test_that_the_key_is_not_bound_is_seen_at_the_right_edge_too(shell: str, home: Path) -> None:
    async with open_stage_over_ssh(home, shell) as stage:
        await stage.run(UNBIND[shell])
        for columns in range(66, 80):
            await stage.run(f"PS1='{'p' * columns}> '")
        assert await stage.done("echo run >>log; cat log") == (0, "ended", b"run\n")


@pytest.mark.needs("sshd", "bash")
@async_test(timeout_seconds=100)
async def test_descriptors_of_the_user_are_left_alone(home: Path) -> None:
    async with open_stage_over_ssh(home, "bash") as stage:
        for number in (9, 99, 249):
            await stage.run(f"exec {number}>lock{number}")
            done = await stage.done(f"echo one >&{number}\necho two >&{number}")
            assert done == (0, "ended", b""), number
            assert await stage.done(f"cat lock{number}") == (0, "ended", b"one\ntwo\n"), number
        await stage.run("echo one\nexec 98>lock98")
        assert await stage.done("echo two >&98\ncat lock98") == (0, "ended", b"two\n")
        await stage.run("exec 249>&-; ulimit -n 120")
        assert await stage.done("echo one\necho two") == (0, "ended", b"one\ntwo\n")


@in_every_far_shell
async def test_the_shell_of_another_user_reads_its_commands(shell: str, home: Path) -> None:
    """Its terminal belongs to who logged in, and cannot be opened by its own name; and it is left again."""
    async with open_stage_over_ssh(home, shell) as stage:
        conversation = stage.conversation
        user = "nobody"  # words: on the system
        begun = await conversation.exec_interactive(f"cd / && su {user} -s {shutil.which(shell)}")
        await stage.wait({"idle_ms": 300}, begun.cursor)
        await conversation.enter_shell(shell)
        assert await stage.done("id -un; echo two\necho three") == (0, "ended", f"{user}\ntwo\nthree\n".encode())
        left = await conversation.exec_block("exit 3")
        await stage.wait(PROMPT, left.cursor)
        ended = stage.outcome(await stage.block(left.block_id))
        assert ended[:2] == (3, "shell_exited") and ended.output in (b"", b"exit\n"), ended
        assert await stage.done("id -un") == (0, "ended", b"root\n")
        assert await stage.doubts() == []


@pytest.mark.parametrize("key", ["bound", "unbound"])
@in_every_far_shell
async def test_a_ctrl_c_while_the_text_comes_ends_the_call(shell: str, key: str, home: Path) -> None:
    """Whatever it hits: the command did not run, or was interrupted, and the shell is at its prompt again."""
    text = "echo ran >>log; echo '" + "é" * 8000 + "' | wc -c"
    async with open_stage_over_ssh(home, shell) as stage:
        if key == "unbound":
            await stage.run(UNBIND[shell])
            await stage.run("true")
        for _ in range(8):
            seq = (await stage.conversation.status()).next_seq
            running = asyncio.create_task(stage.conversation.run(text, timeout_ms=60_000))
            await stage.event("input", seq)
            await stage.type(b"\x03")
            result = (await asyncio.gather(running, return_exceptions=True))[0]
            assert isinstance(result, NoPrompt) or result.reason == "prompt", result
            assert await stage.done("echo next") == (0, "ended", b"next\n")
        assert (await stage.done("cat log 2>/dev/null | sort | uniq -d | wc -l")).exit_status == 0


@in_every_far_shell
async def test_an_interrupt_is_one_for_a_program_that_takes_its_time(shell: str, home: Path) -> None:
    count = "import signal, time; n = []; signal.signal(2, lambda *_: n.append(1)); print('up', flush=True)"
    wait = "; [time.sleep(0.1) for _ in range(60) if not n]; time.sleep(1)"
    async with open_stage_over_ssh(home, shell) as stage:
        begun = await stage.conversation.exec_block(f"python3 -Sc \"{count}{wait}; print(len(n))\"")
        await stage.wait("up", begun.cursor)
        await stage.wait({"idle_ms": 200}, begun.cursor)
        assert (await stage.conversation.interrupt(grace_ms=10_000)).how == "SIGINT"
        assert stage.outcome(await stage.block(begun.block_id)).output.endswith(b"1\n")


@in_every_far_shell
async def test_half_of_a_text_is_not_run(shell: str, home: Path) -> None:
    whole = fed_text(b"echo half >log; echo whole", "0123456789abcdef")
    async with open_stage_over_ssh(home, shell) as stage:
        # One with a hole in it, as when Ctrl-C takes away what has come and the rest is still on its way.
        before = await stage.conversation.status()
        await stage.type(b"\x1b[7717~" + whole[:25] + whole[28:])
        await stage.wait(PROMPT, before.cursor)
        before = await stage.conversation.status()
        await stage.type(b"\x1b[7717~" + whole[:30])
        await stage.wait({"idle_ms": 100}, before.cursor)
        cursor = await stage.type(b"\x03")
        # A silence, or the new prompt of bash.
        await stage.conversation.wait_for({"idle_ms": 100}, from_cursor=cursor, timeout_ms=TIMEOUT_MS)
        assert await stage.done("cat log 2>/dev/null; echo next") == (0, "ended", b"next\n")


@in_every_far_shell
async def test_what_a_person_types_behind_the_text_is_not_lost(shell: str, home: Path) -> None:
    async with open_stage_over_ssh(home, shell) as stage:
        before = await stage.conversation.status()
        key = b"\x1b[7717~" + fed_text(b"echo first", "0123456789abcdef")
        await stage.type(key + b"echo 'and ''then!'\r")
        first = await stage.event("agent_block_end", before.next_seq)
        await stage.event("agent_block_end", first.seq + 1)
        assert [stage.outcome(block).output for block in await stage.blocks()] == [b"first\n", b"and then!\n"]


def test_what_follows_the_key_is_printable_and_has_three_fields() -> None:
    content = bytes(range(1, 256)) + b";\\;"
    for text, history in ((content, None), (content, b""), (b"", content)):
        fed = fed_text(text if history is None else text + b"\0" + history, "0f" * 8)
        assert all(0x20 <= byte < 0x7F for byte in fed)
        tag, size, first, second = fed.removesuffix(b"!").split(b";")
        assert (tag, fed.count(b"!"), int(size)) == (b"0f" * 8, 1, len(first + second))
        assert _read(first) == text
        assert second == b"" if history is None else (second[:1] == b"+" and _read(second[1:]) == history)


def _read(field: bytes) -> bytes:
    return field.decode("unicode_escape").encode("latin-1")

