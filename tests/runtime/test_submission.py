"""To the shell, its hooks and everyone who looks, a submitted command is what a person would have typed."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import blockpty
from blockpty.runtime.conversation import Conversation
from tests.support.async_tests import async_test
from tests.support.profile import some_of
from tests.support.versions import FETCHED, OLDEST, numbers, startup

TIMEOUT_MS = 20_000
LONG = "echo " + " ".join(f"word{number}" for number in range(700))

# Each with what it prints where that is short and the same in every shell.
COMMON: tuple[tuple[str, str | None], ...] = (
    ("echo one", "one\n"), (" echo leading blank", "leading blank\n"), ("echo 'single quotes'", "single quotes\n"),
    ('echo "double quotes"', "double quotes\n"), ("echo \"it's\"", "it's\n"), ("echo a\\ b", "a b\n"),
    ("echo 'a;b|c&d'", "a;b|c&d\n"), ("echo a; echo b", "a\nb\n"), ("true && echo yes", "yes\n"),
    ("false || echo no", "no\n"), ("echo one | cat", "one\n"), ("echo é ü ß", "é ü ß\n"), ("echo 日本語", "日本語\n"),
    ("echo 'e\u0301'", "e\u0301\n"), ("echo 👍🏽", "👍🏽\n"), ("echo 'tab\there'", "tab\there\n"), ("echo '!'", "!\n"),
    ("echo 'hi!there'", "hi!there\n"), ("echo '!!'", "!!\n"), ("echo '$HOME'", "$HOME\n"), ("echo '*'", "*\n"),
    ("echo '~'", "~\n"), ("echo '#no comment'", "#no comment\n"), ("echo a # comment", "a\n"), ("echo '%s'", "%s\n"),
    ("printf '%s\\n' x", "x\n"), ("echo '\\n'", None), ("echo --", None), ("cd /", ""), ("pwd", "/\n"),
    ("echo '" + "x" * 200 + "'", "x" * 200 + "\n"), (LONG, None), ("sh -c 'exit 3'", ""), ("echo '^[[A'", "^[[A\n"),
    ("echo '`'", "`\n"), ("echo '{a,b}'", "{a,b}\n"),
)  # fmt: skip
OF_SHELL: dict[str, tuple[tuple[str, str | None], ...]] = {
    "bash": (
        ("for i in 1 2\ndo\n  echo $i\ndone", "1\n2\n"), ("f() {\n  echo \"in f\"\n}\nf", "in f\n"),
        ("cat <<END\nhere $((1 + 1))\nEND", "here 2\n"), ("echo a\necho b", "a\nb\n"),
    ),
    "zsh": (
        ("for i in 1 2\ndo\n  echo $i\ndone", "1\n2\n"), ("f() {\n  echo \"in f\"\n}\nf", "in f\n"),
        ("cat <<END\nhere $((1 + 1))\nEND", "here 2\n"), ("echo a\necho b", "a\nb\n"),
    ),
    "fish": (
        ("for i in 1 2\n  echo $i\nend", "1\n2\n"), ("function f\n  echo \"in f\"\nend\nf", "in f\n"),
        ("begin\n  echo here\nend", "here\n"), ("echo a\necho b", "a\nb\n"),
    ),
}  # fmt: skip
# What a person's startup file adds: a hook that names each command, and a prompt without colours.
STARTUP = {
    "bash": (".bashrc", "PS1='> '; trap 'printf \"%s\\n\" \"$BASH_COMMAND\" >>~/debug' DEBUG\n"),
    "zsh": (
        ".zshrc",
        "PS1='> '; HISTSIZE=1000; setopt combining_chars; preexec() { print -rn -- \"$1\"$'\\0' >>~/preexec }\n",
    ),
    "fish": (
        ".config/fish/config.fish",
        "function fish_prompt; echo -n '> '; end\nfunction fish_title; end\nfunction fish_greeting; end\n"
        "function named --on-event fish_preexec; printf '%s\\0' $argv[1] >>~/preexec; end\n",
    ),
}
HISTORY = {
    "bash": "HISTTIMEFORMAT=; history >~/history; echo done",
    "zsh": "fc -ln 1 >~/history; echo done",
    "fish": "history >~/history; echo done",
}


def programs() -> list[object]:
    found: list[object] = [
        pytest.param(name, name, id=name, marks=pytest.mark.needs(name)) for name in ("bash", "zsh", "fish")
    ]
    for name, version, path in some_of(FETCHED, 4):
        old = numbers(version) < OLDEST[name]
        marks = [pytest.mark.skip(f"{name} {version} is older than what is supported")] if old else []
        found.append(pytest.param(name, str(path), id=f"{name}-{version}", marks=marks))
    return found


@contextlib.asynccontextmanager
async def opened(home: Path, shell: str, program: str, *, hooks: bool = True) -> AsyncIterator[Conversation]:
    name, text = STARTUP[shell] if hooks else (STARTUP[shell][0], "")
    if (needed := startup(shell, Path(program))) is not None:
        (Path.home() / needed[0]).write_text(needed[1])
    (Path.home() / name).parent.mkdir(parents=True, exist_ok=True)
    (Path.home() / name).write_text(text)
    async with blockpty.Engine(home) as engine:
        conversation = await engine.open("c1", shell=program, cols=100, rows=50, cwd=str(Path.home()))
        yield conversation
        assert (await conversation.verify()).clean


async def drawn(conversation: Conversation) -> str:
    """Return everything that was drawn, without the breaks of long lines."""
    text, cursor = "", 0
    while True:
        result = await conversation.read(from_cursor=cursor, view="rendered", max_bytes=1 << 20)
        text += result.data
        if result.cursor == cursor or not result.data:
            return text
        cursor = result.cursor


@pytest.mark.parametrize(("shell", "program"), programs())
@async_test
async def test_hooks_history_and_screen_show_the_command(shell: str, program: str, home: Path) -> None:
    commands = [*COMMON, *OF_SHELL[shell]]
    assert len(commands) == 40
    async with opened(home, shell, program) as conversation:
        for command, expected in commands:
            result = await conversation.run(command, timeout_ms=TIMEOUT_MS)
            assert (result.block.state, result.block.cmd) == ("ended", command)
            if expected is not None:
                assert result.output == expected, command
            shown = (await conversation.screen()).content.replace("\n", "").replace(" ", "").replace("␉", "")
            first = command.split("\n")[0].replace("\t", "").replace(" ", "")
            # A program of 5,000 characters is higher than the screen; what is left of it ends there.
            assert first[-60:] in shown or first[:60] in shown, (command, shown)
            assert "/commands/" not in shown
        await conversation.run(HISTORY[shell], timeout_ms=TIMEOUT_MS)
        history = (Path.home() / "history").read_text()
        for command, _ in commands:
            for line in command.strip().split("\n"):
                if command.startswith(" ") and shell == "fish":
                    continue  # fish keeps what begins with a blank out of its history, as typed
                assert line.strip() in history or line.strip().replace("\t", "\\t") in history, command
        assert "/commands/" not in history
        if shell == "bash":
            named = (Path.home() / "debug").read_text()
            assert all(command in named for command, _ in COMMON if ";" not in command and "|" not in command
                       and "&&" not in command and "#" not in command and not command.startswith(" ")), named
        else:
            recorded = (Path.home() / "preexec").read_text().split("\0")
            assert recorded[: len(commands)] == [command for command, _ in commands]


@pytest.mark.parametrize(("shell", "program"), programs())
@async_test
async def test_last_argument_pipeline_and_traps(shell: str, program: str, home: Path) -> None:
    async with opened(home, shell, program, hooks=False) as conversation:

        async def output(command: str) -> str:
            return (await conversation.run(command, timeout_ms=TIMEOUT_MS)).output

        if shell == "fish":
            await conversation.run("false | true | sh -c 'exit 3'", timeout_ms=TIMEOUT_MS)
            assert await output("echo $pipestatus") == "1 0 3\n"
            return
        await output("echo one two")
        assert await output("echo $_") == "two\n"
        if shell == "bash":
            await output("echo before")
            await output("echo \"it's open")
            assert await output("echo $_") == "before\n"
            await output("echo one\necho two three")
            assert await output("echo $_") == "three\n"
        await output("false | true | (exit 3)")
        assert await output('echo "${PIPESTATUS[@]}"' if shell == "bash" else 'echo "${pipestatus[@]}"') == "1 0 3\n"
        await output("trap 'echo fired' ERR" if shell == "bash" else "TRAPZERR() { echo fired }")
        assert await output("false") == "fired\n"


@pytest.mark.parametrize(("shell", "program"), programs())
@async_test
async def test_a_wrong_text_is_rejected_in_the_words_of_the_shell(shell: str, program: str, home: Path) -> None:
    async with opened(home, shell, program) as conversation:
        # zsh takes a text that ends with an operator for whole, as `zsh -c` does.
        operator = ("echo stale &&", "echo stale |  # of what") if shell == "bash" else ()
        for wrong in ("echo )", "echo 'open", "if true", *operator):
            result = await conversation.run(wrong, timeout_ms=TIMEOUT_MS)
            assert result.block.cmd == wrong and result.block.exit_status not in (0, None), result
            assert result.block.state == "rejected", result
            assert result.output.strip() and (shell == "bash" or "/commands/" not in result.output), result
            assert "stale" not in result.output.splitlines(), result
        assert "/commands/" not in (await conversation.run("echo )", timeout_ms=TIMEOUT_MS)).output
        assert (await conversation.run("echo next", timeout_ms=TIMEOUT_MS)).output == "next\n"
        assert [block.cmd for block in (await conversation.blocks()).blocks][::-1][:3] != []


@pytest.mark.parametrize("shell", [pytest.param(one, marks=pytest.mark.needs(one)) for one in ("bash", "zsh", "fish")])
@async_test
async def test_a_keymap_without_the_key_falls_back(shell: str, home: Path) -> None:
    """The user takes the key away: the command is typed as a line then, once, and all that follow."""
    gone = {
        "bash": "bind -r '\\e[7717~'; bind -r '\\e[7718~'; bind -r '\\e[7719~'",
        "zsh": "bindkey -r '^[[7717~'",
        "fish": "for m in default insert visual; bind -M $m -e \\x1e\\x1e; end",
    }[shell]
    async with opened(home, shell, shell) as conversation:
        await conversation.run(gone, timeout_ms=TIMEOUT_MS)
        for number in range(3):
            result = await conversation.run(f"echo {number} >>~/ran; echo {number}", timeout_ms=TIMEOUT_MS)
            assert (result.block.state, result.output) == ("ended", f"{number}\n")
        assert (Path.home() / "ran").read_text() == "0\n1\n2\n"
        assert "/commands/" not in (await conversation.screen()).content


@pytest.mark.needs("fish")
@pytest.mark.linux
@async_test
async def test_a_prompt_that_takes_a_while_is_waited_for(home: Path) -> None:
    """Where a Ctrl-C has ended the function that draws it, our key has it drawn again; a slow one is not lost."""
    async with opened(home, "fish", "fish") as conversation:
        await conversation.run("function fish_prompt; sleep 0.3; echo '> '; end", timeout_ms=TIMEOUT_MS)
        await conversation.exec_block("true")
        begun = await conversation.exec_block("echo next", queue=True)
        await conversation.wait_for({"token": "PROMPT"}, from_cursor=begun.cursor, timeout_ms=TIMEOUT_MS)
        assert [block.state for block in (await conversation.blocks()).blocks] == ["ended"] * 3
        assert '"author":"engine"' not in conversation.layout.timeline.read_text()


@pytest.mark.parametrize("shell", [pytest.param(one, marks=pytest.mark.needs(one)) for one in ("bash", "zsh")])
@async_test
async def test_long_texts_and_directories(shell: str, home: Path) -> None:
    async with opened(home, shell, shell) as conversation:
        for size in (5_000, 32_000, 100_000, 1_000_000):
            result = await conversation.run(f"x='{'y' * size}'; echo ${{#x}}", timeout_ms=60_000)
            assert result.output == f"{size}\n"
            assert "/commands/" not in (await conversation.screen()).content
        assert (await conversation.run("pwd", cwd="/usr", timeout_ms=TIMEOUT_MS)).output == "/usr\n"
        assert "/commands/" not in (await conversation.screen()).content
        assert (await conversation.run("cat <<END\nno end", timeout_ms=TIMEOUT_MS)).output.endswith("no end\n")


@pytest.mark.parametrize(("shell", "program"), programs())
@async_test
async def test_output_begins_with_the_programs_first_byte(shell: str, program: str, home: Path) -> None:
    """On terminals that know no title, no colours or other names for them; and where the title takes its time."""
    if (needed := startup(shell, Path(program))) is not None:
        (Path.home() / needed[0]).write_text(needed[1])
    async with blockpty.Engine(home) as engine:
        for term in ("dumb", "linux", "vt100", "ansi", "unknown"):
            conversation = await engine.open(f"c-{term}", shell=program, env={"TERM": term}, cwd=str(Path.home()))
            if shell == "fish":
                await conversation.run("function fish_title; sleep 0.1; echo $argv[1]; end", timeout_ms=TIMEOUT_MS)
            result = await conversation.run("printf '\\rone\\n'", timeout_ms=TIMEOUT_MS)
            assert result.output == "\rone\n", term
            await conversation.close()
