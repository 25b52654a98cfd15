"""Scenarios 1 to 20: what a command is, and that it is one block."""

from __future__ import annotations

import base64
import itertools
import os
import shlex
import sys
from typing import Any

from blockpty.host.shells.staging import fish_quote_bytes
from tests.scenarios.stage import PROMPT, Stage

HARD_NAMES = (
    "a b",
    "new\nline",
    "ünïcödé-目录-🙂",
    "per%cent%41",
    "semi;colon",
    "esc\x1b[31m",
    "quo'te\"s`$(id)`",
    "-dash",
    "trailing\n",
    "x" * 200 + "/" + "ö" * 100 + "/" + "y" * 200,
)


async def true_and_false(stage: Stage) -> Any:
    done = [await stage.done(command) for command in ("true", "false")]
    return done, [block.cmd for block in await stage.blocks()]


async def no_newline(stage: Stage) -> Any:
    result = await stage.run("printf x")
    return stage.outcome(result.block), result.output


async def newlines(stage: Stage) -> Any:
    return await stage.done(r"printf '\n\nx\n\n\n'")


async def nothing_typed(stage: Stage) -> Any:
    await stage.run("false")
    seen = []
    for line in ("", "   ", "# note"):
        assert await stage.type_line(line) is None
        status = await stage.conversation.status()
        seen.append((status.mode, status.tty))
    ends = [event.fields["block_id"] for event in await stage.events("agent_block_end")]
    return seen, [block.cmd for block in await stage.blocks()], ends


async def open_parenthesis(stage: Stage) -> Any:
    submitted = await stage.done("(a")
    after = await stage.done("echo usable")
    cursor = await stage.type(b"(a\r")
    waited = await stage.conversation.wait_for(PROMPT, from_cursor=cursor)
    status = await stage.conversation.status()
    again = await stage.done("echo usable")  # the engine clears the line first
    # bash may lose a Ctrl-C that comes while it draws; the engine then types another.
    cleared = [event.fields["author"] for event in await stage.events("input") if "submit" not in event.fields]
    return {
        "submitted": (submitted.exit_status, submitted.state, b"error" in submitted.output),
        "after": after,
        "typed": (waited.matched, waited.reason, status.tty),
        "after typed": again,
        "cleared by": [author for author, _ in itertools.groupby(cleared)],
        "blocks": [block.cmd for block in await stage.blocks()],
    }


async def stray_parenthesis(stage: Stage) -> Any:
    submitted = await stage.done(")")
    return submitted.exit_status, submitted.state, b"error near" in submitted.output, await stage.done("echo next")


async def unclosed_quote(stage: Stage) -> Any:
    submitted = await stage.done("echo 'unclosed")
    cursor = await stage.type(b"echo 'unclosed\r")
    # Without the detection this would take the default 30 s.
    waited = await stage.conversation.wait_for(PROMPT, from_cursor=cursor)
    tty = (await stage.conversation.status()).tty
    block = await stage.type_line("closed'")
    assert block is not None
    return {
        "submitted": (submitted.exit_status, submitted.state),
        "typed": (waited.matched, waited.reason, tty),
        "completed": (block.kind, stage.outcome(block)),
    }


async def compound(stage: Stage) -> Any:
    done = [
        await stage.done(command) for command in ("echo a; echo b; echo c", "echo a && echo b", "echo a | cat; false")
    ]
    return done, [(block.cmd, block.parts) for block in await stage.blocks()]


async def three_lines(stage: Stage) -> Any:
    block = (await stage.run("echo one\necho two >&2\necho three")).block
    return stage.outcome(block), len(await stage.blocks()), block.cmd


async def function_definition(stage: Stage) -> Any:
    head = "function greet\n  set -l name $argv[1]" if stage.shell == "fish" else "greet() {\n  local name=$1"
    tail = "end" if stage.shell == "fish" else "}"
    defined = await stage.done(f'{head}\n  echo "hi $name"\n  return 4\n{tail}')
    return defined, await stage.done("greet Bob")


async def heredocs(stage: Stage) -> Any:
    text = "cat >quoted <<'END'\n\tA $VAR `x` \\\\n\n\t\tend\nEND\ncat >plain <<END\n\tA $VAR\\$\nEND\n"
    done = await stage.done(f"VAR=value\n{text}")
    return done, (stage.folder / "quoted").read_bytes(), (stage.folder / "plain").read_bytes()


async def long_heredoc(stage: Stage) -> Any:
    lines = [f"{number:04d}\t" + "0123456789 $HOME 'quote' \"double\" \\ " * 2 + "." * 19 for number in range(2000)]
    text = "".join(f"{line}\n" for line in lines)
    assert len(text) >= 200_000 - 8000
    write = f"cat >copy <<'END OF TEXT'\n{text}END OF TEXT\n"
    if stage.shell == "fish":  # it has no here-documents: as many lines between quotes
        write = f"printf %s {fish_quote_bytes(text).decode()} >copy\n"
    done = await stage.done(f"{write}wc -l <copy | tr -d ' '")
    return done, (stage.folder / "copy").read_text() == text


async def tests_and_arrays(stage: Stage) -> Any:
    if stage.shell == "fish":
        return await stage.done("test '[a]' = '[a]'"), await stage.done("set A; false")
    return await stage.done("[[ $env == $env ]]"), await stage.done("A=(); false")


async def python_heredoc(stage: Stage) -> Any:
    program = """print("it's", 'a "quote"', '''\\t''', "\\\\")"""
    if stage.shell == "fish":
        return await stage.done(f"printf %s {fish_quote_bytes(program).decode()} | {shlex.quote(sys.executable)} -")
    return await stage.done(f"{shlex.quote(sys.executable)} - <<'END'\n{program}\nEND")


async def exclamation_marks(stage: Stage) -> Any:
    commands = ('echo "A!B"', "echo wow!!", "echo !echo", "echo '!!'")
    submitted = [await stage.done(command) for command in commands]
    typed = [await stage.type_line(command) for command in commands]
    return submitted, [stage.typed_outcome(block) for block in typed if block is not None]


async def directories(stage: Stage) -> Any:
    """Every name must be reported exactly; returns those that were not."""
    wrong: list[Any] = []
    for name in HARD_NAMES:
        path = stage.folder / name
        path.mkdir(parents=True)
        moved = await stage.done(f"cd -- {shlex.quote(str(path))}")
        by_status = (await stage.conversation.status()).cwd
        result = await stage.run("pwd")
        block = result.block
        exact = base64.b64decode(block.cwd_b64 or "")
        actual = (moved.exit_status, stage.outcome(block).output, block.cwd, exact, by_status)
        expected = (0, os.fsencode(path) + b"\n", str(path), os.fsencode(path), str(path))
        if actual != expected:
            wrong.append((actual, expected))
        await stage.run("cd /")
        elsewhere = await stage.done("pwd", cwd=str(path))
        if elsewhere != (0, "ended", os.fsencode(path) + b"\n"):
            wrong.append((elsewhere, name))
    return wrong, (await stage.done("cd /tmp && pwd")).output


async def exported(stage: Stage) -> Any:
    assign = "set -gx A 1; set -g B 2" if stage.shell == "fish" else "export A=1; B=2"
    return await stage.done(assign), await stage.done('echo "$A$B"; env | grep -c "^[AB]="')


def _pipe_status(stage: Stage) -> str:
    if stage.shell == "fish":
        return "echo $pipestatus"
    return "echo ${PIPESTATUS[*]}" if stage.shell == "bash" else "echo ${pipestatus[*]}"


async def pipe_status(stage: Stage) -> Any:
    show = _pipe_status(stage)
    await stage.type_line("false | true")
    typed = await stage.type_line(show)
    assert typed is not None
    return {
        "typed": stage.typed_outcome(typed),
        "one block": await stage.done(f"false | true; {show}"),
        "two blocks": [await stage.done("false | true"), await stage.done(show)],
    }


async def last_argument(stage: Stage) -> Any:
    await stage.type_line("echo last")
    typed = await stage.type_line("echo $_")
    assert typed is not None
    one = await stage.done("echo last; echo $_")
    await stage.done("echo first other")
    two = await stage.done("echo $_")
    await stage.done("echo one\necho two three")
    lines = await stage.done("echo $_")
    return {"typed": stage.outcome(typed), "one block": one, "two blocks": two, "behind lines": lines}


async def negation(stage: Stage) -> Any:
    show = "echo $status" if stage.shell == "fish" else "echo $?"
    return await stage.done(f"! true; {show}"), await stage.done("! true"), await stage.done(show)
