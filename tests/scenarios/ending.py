"""Scenarios 21 to 35: ways to end the shell, and modes in which hooks have a hard time."""

from __future__ import annotations

import shlex
from typing import Any

from blockpty.model.block import Block
from tests.scenarios.stage import EOF, PROMPT, TIMEOUT_MS, Stage

STOPPABLE = "sh -c 'echo started; exec sleep 1000'"


async def _ending(stage: Stage, command: str) -> dict[str, Any]:
    """Run a command that ends the shell."""
    result = await stage.run(command)
    status = await stage.conversation.status()
    return {
        "done": stage.outcome(result.block),
        "signal": result.block.signal,
        "reason": result.reason,
        "mode": status.mode,
        "exit": status.exit,
        "events": [event.type for event in await stage.events("shell_exit", "eof")],
    }


async def exit_with_status(stage: Stage) -> Any:
    facts = await _ending(stage, "exit 5")
    conversation = stage.conversation
    calls = {
        "exec_block": conversation.exec_block("true"),
        "exec_interactive": conversation.exec_interactive("true"),
        "run": conversation.run("true"),
        "send": conversation.send("x"),
        "ctrl_c": conversation.ctrl_c(),
        "interrupt": conversation.interrupt(),
        "resize": conversation.resize(100, 30),
    }
    facts["later"] = {name: await stage.refusal(call) for name, call in calls.items()}
    waited = await conversation.wait_for(PROMPT, timeout_ms=TIMEOUT_MS)
    facts["later wait"] = (waited.matched, waited.reason)
    return facts


async def errexit(stage: Stage) -> Any:
    await stage.run("set -e")
    facts = await _ending(stage, "false")
    facts["later"] = await stage.refusal(stage.conversation.exec_block("true"))
    before = (await stage.conversation.status()).cursor
    opened = await stage.conversation.reset()
    facts["respawned"] = (opened.mode, opened.cursor >= before)
    facts["fresh"] = await stage.done("case $- in *e*) echo errexit;; *) echo fresh;; esac")
    return facts


async def unset_name(stage: Stage) -> Any:
    await stage.run("set -u")
    alone = await stage.done('echo "[$BLOCKPTY_TEST_UNSET]"')
    alive = await stage.done("echo alive")
    await stage.run("set -euo pipefail")
    facts = await _ending(stage, 'echo "[$BLOCKPTY_TEST_UNSET]"')
    return {
        "alone": (alone.exit_status, alone.state, b"BLOCKPTY_TEST_UNSET" in alone.output),
        "alive": alive,
        "all": (facts["done"].exit_status, facts["done"].state, facts["reason"], facts["mode"]),
    }


async def closed_stdout(stage: Stage) -> Any:
    done = [await stage.done(command) for command in ("set -e; exec 1>&-", "true", "echo seen >&2", ":")]
    return done, (await stage.conversation.status()).mode


async def trace(stage: Stage) -> Any:
    done = [await stage.done(command) for command in ("set -x", "echo hi", "set +x", "set -x; echo hi; set +x")]
    return {
        "endings": [(one.exit_status, one.state) for one in done],
        "hi": [one.output.split(b"\n").count(b"hi") for one in done],
        "blocks": len(await stage.blocks()),
        "doubts": await stage.doubts(),
    }


async def options(stage: Stage) -> Any:
    commands = {
        "bash": (
            "set -n",
            "set -o posix",
            "set -C",
            "IFS=:",
            "set -f",
            "set -u",
            "shopt -s nullglob",
            "set -v; set +v",
        ),
        "zsh": (
            *("set -n", "setopt posix_builtins", "setopt no_clobber", "IFS=:", "setopt ksh_arrays", "setopt no_unset"),
            *("setopt sh_word_split", "setopt warn_create_global", "emulate sh"),
        ),
    }[stage.shell]
    wrong: list[Any] = []
    statuses = []
    for command in commands:
        statuses.append((await stage.done(command)).exit_status)
        after = [await stage.done("echo ok"), await stage.done("(exit 3)")]
        if after != [(0, "ended", b"ok\n"), (3, "ended", b"")]:
            wrong.append((command, after))
    status = await stage.conversation.status()
    return {"statuses": statuses, "wrong": wrong, "integrity": status.integrity, "doubts": await stage.doubts()}


async def killed_shell(stage: Stage) -> Any:
    own = "$fish_pid" if stage.shell == "fish" else "$$"
    return await _ending(stage, f"echo last words; kill -9 {own}")


async def _last_typed(stage: Stage) -> Block:
    return [block for block in await stage.blocks() if block.kind == "user"][-1]


async def exit_trap(stage: Stage) -> Any:
    if stage.shell == "fish":
        await stage.run("function bye --on-event fish_exit\n  echo bye\nend")
        cursor = await stage.type(b"exit\r")
        await stage.wait(EOF, cursor)
        block = await _last_typed(stage)
        said = b"bye\r\n" in await stage.raw(block.span[1] or 0)
        status = await stage.conversation.status()
        return {"done": stage.typed_outcome(block), "exit": status.exit, "said behind it": said}
    return await _ending(stage, "trap 'echo bye' EXIT; exit")


async def replaced_shell(stage: Stage) -> Any:
    """Another program takes the shell's place: recognised by silence and command line, and cured by `reset`."""
    seen = []
    own = "exec bash --norc" if stage.shell == "bash" else "exec zsh -f"
    for command in (own, "exec sh"):
        result = await stage.conversation.run(command, timeout_ms=TIMEOUT_MS)
        status = await stage.conversation.status()
        refused = await stage.refusal(stage.conversation.exec_block("true"))
        await stage.conversation.reset()
        state = (await stage.block(result.block.block_id)).state
        again = await stage.done("echo back")
        healthy = (await stage.conversation.status()).integrity
        reason = status.integrity_reason or ""
        seen.append(
            (result.timed_out, result.reason, status.integrity, "exec" in reason, refused, state, again, healthy)
        )
    return seen


async def hooks_unset(stage: Stage) -> Any:
    forget = {
        "bash": ("unset PROMPT_COMMAND PS0", "PROMPT_COMMAND='true'; PS0=", "PROMPT_COMMAND=()", "PS1='$ '"),
        "zsh": (
            "precmd_functions=(); preexec_functions=()",
            "unset precmd_functions",
            "zle -D zle-line-init",
            "PS1='$ '",
        ),
        "fish": (
            "functions -e fish_prompt",
            "function fish_prompt; printf '$ '; end",
            "functions -c fish_prompt kept; function fish_prompt; kept; end",
            "functions -e fish_prompt; functions -c kept fish_prompt",
        ),
    }[stage.shell]
    wrong: list[Any] = []
    for command in forget:
        done = [await stage.done(one) for one in (command, "echo two", "sh -c 'exit 3'", "echo four")]
        # The first command after the loss may have no BEGIN; its output and status are right all the same.
        if done[1:] != [(0, "ended", b"two\n"), (3, "ended", b""), (0, "ended", b"four\n")]:
            wrong.append((command, done))
        lost = next(block for block in reversed(await stage.blocks()) if block.cmd == command)
        if done[0].output and not lost.degraded:
            wrong.append((command, "the prompt is in its output, and nothing says that its end was not seen"))
    last = (await stage.blocks())[-1]
    return {"wrong": wrong, "last": last.degraded, "blocks": len(await stage.blocks())}


async def disguised_printf(stage: Stage) -> Any:
    facts: dict[str, Any] = {}
    own = "function printf; end" if stage.shell == "fish" else "printf() { :; }"
    for command in ("alias printf=false", own):
        done = [await stage.done(one) for one in (command, "echo two", "sh -c 'exit 3'")]
        facts[command] = ([one[:2] for one in done], done[1].output, (await stage.conversation.status()).integrity)
        forget = "unalias printf 2>/dev/null || unset -f printf"
        await stage.run("functions -e printf" if stage.shell == "fish" else forget)
    if stage.shell == "fish":  # its builtins cannot be switched off
        return facts
    disable = "enable -n printf" if stage.shell == "bash" else "disable printf print"
    await stage.run(disable)
    done = [await stage.done(one) for one in ("echo two", "(exit 3)")]
    # Without a mark at its end a block reaches into the prompt, and must say so.
    uncertain = [bool(block.degraded) for block in (await stage.blocks())[-2:]]
    facts["disabled"] = (
        [one[:2] for one in done],
        done[0].output[:4],
        uncertain,
        (await stage.conversation.status()).integrity,
    )
    return facts


async def redirected(stage: Stage) -> Any:
    facts: dict[str, Any] = {}
    for name, away, back in (
        ("out", "exec >/dev/null", "exec >/dev/tty"),
        ("err", "exec 2>/dev/null", "exec 2>/dev/tty"),
    ):
        facts[name] = [
            await stage.done(one) for one in (away, "echo hi", "(exit 3)", "true", back, "echo again; echo err >&2")
        ]
    last = (await stage.blocks())[-1]
    facts["last"] = last.degraded
    facts["blocks"] = len(await stage.blocks())
    return facts


async def _stop_a_job(stage: Stage) -> int | None:
    begun = await stage.conversation.exec_block(STOPPABLE)
    await stage.wait("started", begun.cursor)
    await stage.conversation.send(b"\x1a")
    await stage.wait(PROMPT, begun.cursor)
    return (await stage.block(begun.block_id)).exit_status


async def stopped_job(stage: Stage) -> Any:
    facts: dict[str, Any] = {"stopped": await _stop_a_job(stage)}
    refused = await stage.type_line("exit")
    assert refused is not None
    notice = stage.outcome(refused)
    # fish warns when the command is over, behind its end.
    warned = b"jobs" in await stage.raw(refused.span[0])
    facts["first exit"] = (notice.exit_status, notice.state, warned)
    cursor = await stage.type(b"exit\r")
    facts["second exit"] = (await stage.wait(EOF, cursor)).reason
    await stage.conversation.reset()
    facts["stopped again"] = await _stop_a_job(stage)
    facts["submitted"] = []
    for _ in range(2):
        if (await stage.conversation.status()).mode == "idle":
            done = await stage.done("exit")
            facts["submitted"].append((done.exit_status, done.state, b"jobs" in done.output))
    return facts


async def ctrl_d(stage: Stage) -> Any:
    sent = await stage.conversation.ctrl_d()
    waited = await stage.wait(EOF, sent.cursor)
    status = await stage.conversation.status()
    return waited.reason, status.mode, status.exit, len(await stage.blocks())


async def late_output(stage: Stage) -> Any:
    """A child that ignores the hang-up writes after the shell has gone."""
    gate = stage.gate()
    if stage.shell == "fish":  # in a submitted text `exit` ends only that in fish 3
        late = shlex.quote(f"trap '' HUP; {gate.child}; echo LATE")
        await stage.run(f"sh -c {late} & disown")
        cursor, block_id = await stage.type(b"exit 3\r"), ""
    else:
        begun = await stage.conversation.exec_block(f"(trap '' HUP; {gate.child}; echo LATE) & disown; exit 3")
        cursor, block_id = begun.cursor, begun.block_id
    waited = await stage.wait(EOF, cursor)
    status = await stage.conversation.status()
    before = [event.type for event in await stage.events("shell_exit", "eof")]
    gate.release()
    await stage.event("eof")
    block = await stage.block(block_id) if block_id else await _last_typed(stage)
    return {
        "exit": (waited.reason, status.mode, status.exit, before),
        "block": (block.exit_status, block.state),
        "late": b"LATE" in await stage.raw(),
        "end": [event.type for event in await stage.events("shell_exit", "eof")],
    }
