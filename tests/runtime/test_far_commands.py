"""Commands in a shell behind ssh, which sees no file of ours: their text follows our key on the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from blockpty.host.injection import fed_text
from tests.scenarios.stage import TIMEOUT_MS, in_every_shell, open_stage_over_ssh
from tests.support.async_tests import async_test

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
    "printf '%s' '" + "y" * 40_000 + "' | wc -c | tr -d ' '": (0, "ended", b"40000\n"),
}  # fmt: skip


@in_every_shell()
@pytest.mark.needs("sshd")
@async_test(timeout_seconds=100)
async def test_a_command_is_its_text(shell: str, home: Path) -> None:
    async with open_stage_over_ssh(home, shell) as stage:
        for command, expected in COMMANDS.items():
            assert await stage.done(command) == expected, command[:80]
        blocks = await stage.blocks()
        assert [block.cmd for block in blocks] == list(COMMANDS)
        assert await stage.doubts() == []


@in_every_shell()
@pytest.mark.needs("sshd")
@async_test(timeout_seconds=100)
async def test_a_wrong_command_leaves_the_next_one_alone(shell: str, home: Path) -> None:
    """Also one of several lines whose end is missing, which the shell reads as one text."""
    async with open_stage_over_ssh(home, shell) as stage:
        for command in ("(a", "'", "if true; then", ")", "echo one\n'two", "f() {\n  echo"):
            done = await stage.done(command)
            assert done.exit_status not in (0, None), (command, done)
            assert b"7717" not in done.output and b"__bpty" not in done.output, (command, done)
            assert await stage.done("echo next") == (0, "ended", b"next\n"), command
        assert await stage.doubts() == []


@in_every_shell()
@pytest.mark.needs("sshd")
@async_test(timeout_seconds=100)
async def test_the_directory_of_a_command_is_entered_there(shell: str, home: Path) -> None:
    async with open_stage_over_ssh(home, shell) as stage:
        inner = stage.folder / "a b;c"
        inner.mkdir()
        assert await stage.done("pwd", cwd="a b;c") == (0, "ended", f"{inner}\n".encode())
        assert (await stage.done("echo never", cwd="/nonexistent")).exit_status == 1
        assert await stage.done("pwd") == (0, "ended", f"{inner}\n".encode())


@in_every_shell()
@pytest.mark.needs("sshd")
@async_test(timeout_seconds=100)
async def test_the_history_has_what_was_run(shell: str, home: Path) -> None:
    async with open_stage_over_ssh(home, shell) as stage:
        await stage.run("echo one")
        await stage.run("echo two\necho three")
        history = (await stage.done("fc -ln 1 2>/dev/null; true")).output.decode()
        assert "eval $'" not in history and "/dev/fd" not in history, history
        assert history.count("echo one") == 1 and history.count("echo three") == 1, history


@in_every_shell()
@pytest.mark.needs("sshd")
@async_test(timeout_seconds=100)
async def test_where_the_key_is_not_bound_a_command_runs_once(shell: str, home: Path) -> None:
    """The text stays on the command line then, which the engine sees, clears, and types another line."""
    unbind = {
        "bash": "bind -r '\\e[7717~'; bind -r '\\e[7718~'",
        "zsh": "bindkey -r '\\e[7717~'; bindkey -M viins -r '\\e[7717~'",
    }
    async with open_stage_over_ssh(home, shell) as stage:
        await stage.run(unbind[shell])
        for count in range(1, 4):
            assert await stage.done("echo run >>log; cat log") == (0, "ended", b"run\n" * count)
        assert len(await stage.blocks()) == 4
        assert await stage.doubts() == []


@in_every_shell()
@pytest.mark.needs("sshd")
@async_test(timeout_seconds=100)
async def test_half_of_a_text_is_not_run(shell: str, home: Path) -> None:
    whole = fed_text(b"echo half >log; echo whole", "0123456789abcdef")
    async with open_stage_over_ssh(home, shell) as stage:
        before = await stage.conversation.status()
        await stage.type(b"\x1b[7717~" + whole[:30])
        await stage.wait({"idle_ms": 100}, before.cursor)
        cursor = await stage.type(b"\x03")
        # A silence, or the new prompt of bash.
        await stage.conversation.wait_for({"idle_ms": 100}, from_cursor=cursor, timeout_ms=TIMEOUT_MS)
        assert await stage.done("cat log 2>/dev/null; echo next") == (0, "ended", b"next\n")


def test_what_follows_the_key_is_printable_and_has_three_fields() -> None:
    content = bytes(range(1, 256)) + b";\\;"
    for text, history in ((content, None), (content, b""), (b"", content)):
        fed = fed_text(text if history is None else text + b"\0" + history, "0f" * 8)
        assert all(0x20 <= byte < 0x7F for byte in fed)
        tag, first, second = fed.removesuffix(b"!").split(b";")
        assert (tag, fed.count(b"!")) == (b"0f" * 8, 1)
        assert _read(first) == text
        assert second == b"" if history is None else (second[:1] == b"+" and _read(second[1:]) == history)


def _read(field: bytes) -> bytes:
    return field.decode("unicode_escape").encode("latin-1")

