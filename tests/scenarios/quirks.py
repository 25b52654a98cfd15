"""Plays for the catalogue of edge cases of shell integration: what people type and set at a prompt."""

from __future__ import annotations

from typing import Any

from tests.scenarios.stage import PROMPT, TIMEOUT_MS, Stage


def by_shell(stage: Stage, bash: str, zsh: str, fish: str = "") -> str:
    return {"bash": bash, "zsh": zsh, "fish": fish}[stage.shell]


async def health(stage: Stage) -> Any:
    """Two commands that must go right after whatever was done; and what the machine found strange."""
    after = [await stage.done("echo ok"), await stage.done("printf x; sh -c 'exit 3'")]
    integrity = (await stage.conversation.status()).integrity
    return after == [(0, "ended", b"ok\n"), (3, "ended", b"x")] or after, integrity, await stage.doubts()


async def setting(stage: Stage, command: str) -> Any:
    """Run a command that changes the shell's set-up; return its status and the health afterwards."""
    done = await stage.done(command)
    return done.exit_status, done.state, await health(stage)


async def typed_at_prompt(stage: Stage, data: bytes) -> bytes:
    """Type something; return all that the terminal shows until it is silent."""
    cursor = await stage.type(data)
    await silence(stage, cursor)
    return await stage.raw(cursor)


async def silence(stage: Stage, cursor: int) -> None:
    """Wait until the terminal is silent; a prompt that comes meanwhile ends a wait, but not the silence."""
    while True:
        result = await stage.conversation.wait_for({"idle_ms": 150}, from_cursor=cursor, timeout_ms=TIMEOUT_MS)
        if result.matched:
            return
        assert result.reason == "prompt", result
        cursor = result.cursor


async def typed_syntax_error(stage: Stage) -> Any:
    block = await stage.type_line("echo a; )")
    return block, await health(stage), len(await stage.blocks())


async def typed_event(stage: Stage) -> Any:
    """History expansion, switched on by hand: a typed line with an unknown event, and a submitted one."""
    on = await setting(stage, by_shell(stage, "set -H", "setopt banghist"))
    shown = await typed_at_prompt(stage, b"echo !nosuchevent\r")
    submitted = await stage.done("echo !nosuchevent")
    return on, b"event not found" in shown, submitted, await health(stage), len(await stage.blocks())


async def typed_lines(stage: Stage) -> Any:
    """Three lines typed at once, as an unbracketed paste: everything runs, in order, until the last prompt."""
    cursor = await stage.type(b"echo one\recho two\r(exit 3); echo last\r")
    while len(blocks := await stage.blocks()) < 3:
        cursor = (await stage.wait(PROMPT, cursor)).cursor
    output = b"".join(stage.outcome(block).output for block in blocks)
    kinds = {(block.kind, block.state) for block in blocks}
    lines = [line for line in output.split(b"\n") if line in (b"one", b"two", b"last")]
    return lines, kinds, await pasted_lines(stage), await health(stage)


async def pasted_lines(stage: Stage) -> Any:
    """The same in a bracketed paste: the line editor takes it as one."""
    before = len(await stage.blocks())
    await typed_at_prompt(stage, b"\x1b[200~echo one\necho two; echo last\x1b[201~\r")
    return [(block.kind, block.state, stage.outcome(block).output) for block in (await stage.blocks())[before:]]


async def heredoc_and_more(stage: Stage) -> Any:
    done = await stage.done("cat <<'END'\n$HOME\nEND\necho after; (exit 3)")
    return done, len(await stage.blocks())


async def groups(stage: Stage) -> Any:
    """Subshells, groups, functions: each one block with a begin."""
    commands = ("(echo a)", "{ echo a; }", "f() { echo a; }; f", "for i in a; do echo $i; done", "[[ a ]] && (echo a)")
    fish = ("begin; echo a; end", "function f; echo a; end; f", "for i in a; echo $i; end", "test a; and echo a", "f")
    commands = fish if stage.shell == "fish" else commands
    done = [await stage.done(command) for command in commands]
    return set(done), {block.parts for block in await stage.blocks()}, len(await stage.blocks())


async def trap_handler(stage: Stage) -> Any:
    """The handler of a SIGINT trap at the prompt is no command."""
    await stage.run("trap 'echo handled' INT")
    sent = await stage.conversation.ctrl_c()
    await stage.wait(PROMPT, sent.cursor)
    return await health(stage), [block.cmd for block in await stage.blocks()][:2]


async def key_command(stage: Stage) -> Any:
    """A key that runs a command from the line editor makes no block."""
    bind = by_shell(
        stage,
        """bind -x '"\\C-g": echo bound'""",
        "bound() { zle -I; echo bound }; zle -N bound; bindkey '^G' bound",
        "bind \\cg 'echo bound; commandline -f repaint'",
    )
    await stage.run(bind)
    shown = await typed_at_prompt(stage, b"\x07")
    return b"bound" in shown, await health(stage), [block.cmd for block in await stage.blocks()][1:]


async def repeated(stage: Stage) -> Any:
    bash = "HISTCONTROL=erasedups:ignoreboth HISTTIMEFORMAT='%F '"
    await stage.run(by_shell(stage, bash, "setopt histignorealldups", "set -g fish_history ''"))
    done = [(await stage.done(command)).exit_status for command in ("false", "false", "true", "true", "false")]
    fish = "set -q fish_history; and echo kept"
    kept = await stage.done(by_shell(stage, "echo $HISTCONTROL", "[[ -o histignorealldups ]] && echo kept", fish))
    return done, [block.cmd for block in await stage.blocks()][1:6], kept, await health(stage)


async def options_kept(stage: Stage) -> Any:
    """The way in leaves no option and no history file of ours behind."""
    bash = "shopt -q inherit_errexit; echo $?; shopt -qo posix; echo $?"
    show = by_shell(stage, bash, "[[ -o shwordsplit ]]; echo $?; [[ -o posixbuiltins ]]; echo $?")
    history = await stage.done('case $HISTFILE in "$HOME"/*) echo user;; *) echo own;; esac')
    return await stage.done(show), history


async def failglob(stage: Stage) -> Any:
    on = await setting(stage, by_shell(stage, "shopt -s failglob nullglob", "setopt nullglob cshnullglob"))
    return on, (await stage.done("echo /nonexistent/*")).exit_status != 0, await health(stage)


async def prompt_with_code(stage: Stage) -> Any:
    text = by_shell(stage, "PS1='$(echo x)\\n$(printf \"a\\nb\")> '", "setopt promptsubst; PS1='$(echo x)'$'\\n''> '",
                    "function fish_prompt; echo (echo x); printf '%s> ' (printf 'a\\nb'); end")
    return await setting(stage, text)


async def foreign_ps0(stage: Stage) -> Any:
    """A PS0 of the user's is printed before our mark, so it is no output."""
    on = await stage.done("PS0='[mine]'\"$PS0\"")
    output = (await stage.done("echo a")).output
    return on.exit_status, output, (await stage.conversation.status()).integrity


async def rewritten_ps0(stage: Stage) -> Any:
    on = await stage.done("PROMPT_COMMAND+=('PS0=')")
    done = [await stage.done(command) for command in ("echo a", "(exit 3)", "echo b")]
    return on.exit_status, done


async def no_promptvars(stage: Stage) -> Any:
    return await setting(stage, by_shell(stage, "shopt -u promptvars", "unsetopt promptsubst promptpercent"))


async def nounset(stage: Stage) -> Any:
    return await setting(stage, "set -u")


async def rebuilt_prompt(stage: Stage) -> Any:
    bash, zsh = "PROMPT_COMMAND+=('PS1=\"new> \"')", "rebuild() { PS1='new> ' }; precmd_functions+=(rebuild)"
    fish = "function rebuild --on-event fish_prompt; function fish_prompt; echo -n 'new> '; end; end"
    return await setting(stage, by_shell(stage, bash, zsh, fish))


async def line_init(stage: Stage) -> Any:
    return await setting(stage, "zle-line-init() { zle reset-prompt }; zle -N zle-line-init; FUNCNEST=50")


async def foreign_marks(stage: Stage) -> Any:
    marks = r"printf '\033]133;A\007\033]133;D;0\007\033]633;A\007'"
    zsh = f"foreign() {{ {marks} }}; precmd_functions+=(foreign)"
    fish = f"function foreign --on-event fish_prompt; {marks}; end"
    return await setting(stage, by_shell(stage, f'PROMPT_COMMAND+=("{marks}")', zsh, fish))


async def redrawn(stage: Stage) -> Any:
    """Ctrl-L and a new size draw the prompt again; that is no new prompt."""
    await stage.run("true")
    before = len(await stage.events("prompt"))
    cursor = await stage.type(b"\x0c")
    await silence(stage, cursor)
    await stage.conversation.resize(100, 30)
    await stage.conversation.resize(90, 30)
    await silence(stage, cursor)
    status = await stage.conversation.status()
    return len(await stage.events("prompt")) - before, status.mode, await health(stage)


async def reset_prompt(stage: Stage) -> Any:
    await stage.run("again() { zle reset-prompt }; zle -N again; bindkey '^G' again")
    before = len(await stage.events("prompt"))
    cursor = await stage.type(b"\x07\x07")
    await silence(stage, cursor)
    return len(await stage.events("prompt")) - before, await health(stage)


async def no_paste_codes(stage: Stage) -> Any:
    await stage.run("echo a")
    typed = await stage.type_line("echo b")
    assert typed is not None
    return [stage.typed_outcome(block).output for block in await stage.blocks()]


async def alias_of_lines(stage: Stage) -> Any:
    """An alias with a line end in it is several commands for the shell and one for the user who typed it."""
    on = await stage.done("alias two='echo one\necho two'")
    block = await stage.type_line("two")
    assert block is not None
    return on.exit_status, stage.outcome(block).output, await health(stage)


async def exit_trap_waits(stage: Stage) -> Any:
    set_ = await stage.done("trap 'echo bye' EXIT")
    return set_, await health(stage), await stage.done("exit 4")


async def prompt_command_gone(stage: Stage) -> Any:
    first = await stage.done(by_shell(stage, "PROMPT_COMMAND=", "precmd_functions=() preexec_functions=()"))
    done = [await stage.done(command) for command in ("echo a", "(exit 3)", "echo b")]
    return first.exit_status, done


async def vi_leftover(stage: Stage) -> Any:
    """The line editor was left in the command mode of vi, with half a line: a command is typed into a clean line."""
    await stage.run(by_shell(stage, "set -o vi", "bindkey -v", "fish_vi_key_bindings"))
    for typed in (b"echo half\x1b", b"\x1b", b"abc\x1b0dw"):
        await typed_at_prompt(stage, typed)
        if (found := await health(stage))[0] is not True:
            return typed, found
    return await health(stage)


async def clear_screen(stage: Stage) -> Any:
    done = await stage.done(r"printf '\033[H\033[2J\033[3Jtext\033[?1049h\033[H\033[?1049l'; sh -c 'exit 3'")
    return done[:2], await health(stage)


async def _chosen(stage: Stage) -> str:
    """Choose from a `select`; return how a wait for the prompt ended meanwhile."""
    conversation = stage.conversation
    session = await conversation.exec_interactive("PS3='which? '; select x in a b; do echo \"got $x\"; break; done")
    await stage.wait("which? ", session.cursor)
    reason = await stage.absent(PROMPT, session.cursor)
    sent = await conversation.send("2\r")
    await stage.wait("got b", sent.cursor)
    await stage.wait(PROMPT, sent.cursor)
    return reason


async def asks(stage: Stage) -> Any:
    """`select` and a line editor inside a command: the terminal is raw, and there is no prompt."""
    conversation = stage.conversation
    reasons: list[str] = []
    if stage.shell != "fish":
        reasons.append(await _chosen(stage))
    edit = by_shell(stage, "read -e -p 'edit: ' x", "x=; vared -p 'edit: ' x", "read -P 'edit: ' x")
    session = await conversation.exec_interactive(f'{edit}; echo "got $x"')
    await stage.wait("edit: ", session.cursor)
    await stage.wait({"idle_ms": 50}, session.cursor)
    reasons.append(await stage.absent(PROMPT, session.cursor))
    sent = await conversation.send("hello\r")
    found = await conversation.wait_for("got hello", from_cursor=sent.cursor, timeout_ms=TIMEOUT_MS)
    await stage.wait(PROMPT, sent.cursor)
    return reasons, found.matched, len(await stage.blocks()), await health(stage)


async def sudo_alias(stage: Stage) -> Any:
    if stage.shell == "fish":
        return await setting(stage, "alias sudo='sudo '; alias printf='printf '; alias test=false")
    return await setting(stage, "alias sudo='sudo ' printf='printf ' builtin='echo' local='echo'")
