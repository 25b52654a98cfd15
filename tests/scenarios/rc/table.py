"""The table of hostile set-ups: the startup file, and what it may change in what the commands leave behind.

Rules of this file: all imitations are our own, written after what the named programs do, not after how they do it.
Where nothing else is said, every block must be the same as under no startup file, and integrity must be ok.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tests.scenarios.rc.commands import EXPECTED, Seen, shown, whole

Change = Callable[[list[Seen]], list[Seen]]


def _same(blocks: list[Seen]) -> list[Seen]:
    return blocks


@dataclass(frozen=True, slots=True)
class Setup:
    """One row.

    Attributes:
        title: what it is.
        shell: "bash" or "zsh".
        rc: text of the startup file, in a home of its own.
        noise: what the set-up prints into the blocks by itself; left out before the comparison.
        change: what must come out, given what comes out under no startup file.
        reason: how `status.integrity_reason` must begin; None for integrity ok.
    """

    title: str
    shell: str
    rc: str
    noise: re.Pattern[bytes] | None = None
    change: Change = _same
    reason: str | None = None

    @property
    def is_harmless(self) -> bool:
        """Whether all must be as under no startup file."""
        return self.change is _same and self.reason is None


def _only(*kept: bytes) -> Change:
    """Of the output, only these are left: the rest goes where standard output leads."""
    return lambda blocks: [block._replace(output=block.output if block.output in kept else b"") for block in blocks]


def _without(*lost: bytes) -> Change:
    """All output but these: they go where standard error leads."""
    return lambda blocks: [block._replace(output=b"" if block.output in lost else block.output) for block in blocks]


ERROR, AFTER_INTERRUPT = b"<syntax error>\n", b"\n"


def _staged(status: int, change: Change = _same) -> Change:
    """A wrong command has a BEGIN there, or nothing tells that it had none: it ends, with this status."""

    def changed(blocks: list[Seen]) -> list[Seen]:
        return change([
            block._replace(state="ended", exit_status=status) if block.state == "rejected" else block
            for block in blocks
        ])

    return changed


def _ends_at_the_prompt(blocks: list[Seen]) -> list[Seen]:
    """No END: what readline prints before the prompt counts as output; and no mark reports the directory."""
    tail = b"\x1b[?2004h"
    return [block._replace(cwd="None", output=shown(whole(block) + tail)) for block in blocks]


def _ends_at(cmd: str) -> Change:
    """The shell ends with this command."""

    def change(blocks: list[Seen]) -> list[Seen]:
        at = next(at for at, block in enumerate(blocks) if block.cmd == cmd)
        return [*blocks[:at], blocks[at]._replace(state="shell_exited")]

    return change


def _closed(*, fails: bool) -> Change:
    """No program can write to standard output; bash calls that a failure of the command, zsh does not."""

    def change(blocks: list[Seen]) -> list[Seen]:
        changed = _only(ERROR, AFTER_INTERRUPT)(blocks)
        return [
            after._replace(exit_status=1)
            if before.output != after.output and before.exit_status == 0 and (fails or before.cmd.startswith("head"))
            else after
            for before, after in zip(blocks, changed, strict=True)
        ]

    return change


CLOSED = re.compile(rb"[^\n]*write error: [Bb]ad file descriptor\n")
VERBOSE = re.compile(
    rb"^(?:%b|\{ __bpty_us=[^\n]*)\n|\{ __bpty_end; \} >(?:&254 2>&254|/dev/null 2>&1)\n"
    % b"|".join(
        re.escape(line.encode()) for blocks in EXPECTED.values() for seen in blocks for line in seen.cmd.splitlines()
    ),
    re.MULTILINE,
)
TRACE = re.compile(rb"^\++[^\n]*\n", re.MULTILINE)


BASH = (
    Setup("no startup file", "bash", ""),
    Setup("starship-like: PS1 and PS0 rebuilt at every prompt", "bash", r"""
prompt_status=0
prompt_build() { prompt_status=$?; PS1='[\w] '"$prompt_status"$'\n''> '; PS2='... '; return $prompt_status; }
PROMPT_COMMAND=prompt_build
PS0='${prompt_time:$((prompt_time=SECONDS, 0)):0}'
"""),
    Setup("bash-preexec-like: DEBUG trap, and PROMPT_COMMAND taken over at the first prompt", "bash", r"""
pe_ready=
pe_before() { [[ -n $pe_ready ]] || return 0; pe_ready=; pe_last=$BASH_COMMAND; }
pe_prompt() { local status=$?; PROMPT_COMMAND='pe_prompt
pe_arm'; trap 'pe_before "$_"' DEBUG; return "$status"; }
pe_arm() { pe_ready=1; }
PROMPT_COMMAND=pe_prompt
"""),
    Setup("a DEBUG trap that prints nothing", "bash", "trap 'last_command=$BASH_COMMAND' DEBUG"),
    Setup("extdebug with a DEBUG trap that lets all pass", "bash", "shopt -s extdebug; trap 'true' DEBUG"),
    Setup("PROMPT_COMMAND as a string that prints and fails", "bash", "PROMPT_COMMAND='echo in the prompt; false'"),
    Setup("PROMPT_COMMAND as an array", "bash", "PROMPT_COMMAND=('x=1' 'false' 'PS1=\"now> \"')"),
    Setup("PROMPT_COMMAND readonly", "bash", "PS1='> '; readonly PROMPT_COMMAND=:",
          change=_staged(2, _ends_at_the_prompt),
          reason="end_lost"),
    Setup("PS0 readonly and empty", "bash", "readonly PS0=''", change=_staged(2)),
    Setup("PS0 readonly", "bash", "readonly PS0='mine\\n'", noise=re.compile(rb"\Amine\r*\n"), change=_staged(2)),
    Setup("PS0 and PS1 readonly", "bash", "readonly PS0='' PS1='fixed> '", reason="prompt_lost", change=_staged(2)),
    Setup("set -u", "bash", "set -u"),
    Setup("set -e", "bash", "set -e", change=_ends_at("false")),
    Setup("set -x", "bash", "set -x", noise=TRACE),
    Setup("set -v", "bash", "set -v", noise=VERBOSE),
    Setup("set -x, the trace in a file", "bash", "exec {BASH_XTRACEFD}>~/trace; set -x"),
    Setup("posix mode", "bash", "set -o posix"),
    Setup("exec >/dev/null", "bash", "exec >/dev/null", change=_only(ERROR, AFTER_INTERRUPT)),
    Setup("exec 2>/dev/null", "bash", "exec 2>/dev/null", change=_without(ERROR, AFTER_INTERRUPT),
          reason="prompt_lost"),
    Setup("exec 1>&-", "bash", "exec 1>&-", noise=CLOSED, change=_closed(fails=True)),
    Setup("prints a lot", "bash", "for i in {1..2000}; do echo \"line $i\"; done; printf '\\e]133;A\\a no newline'"),
    Setup("promptvars off", "bash", "shopt -u promptvars"),
    Setup("vi mode", "bash", "set -o vi"),
    Setup("TERM=dumb", "bash", "TERM=dumb"),
    Setup("aliases named like builtins", "bash",
          "alias printf='echo -n' local=echo return=echo builtin=echo command=echo shopt=echo export=echo "
          "if=echo eval=echo read=echo unset=echo set=echo trap=echo"),
    Setup("functions named like builtins", "bash", "".join(
        f"{name}() {{ command {name} \"$@\"; }}\n"
        for name in ("local", "return", "shopt", "export", "unset", "set", "declare", "type", "read", "test", "["))),
    Setup("functions called builtin and command", "bash", "builtin() { :; }; command() { :; }",
          change=_staged(2)),
    Setup("IFS of digits and letters", "bash", "IFS=0123456789abcdefx7"),
    Setup("noclobber", "bash", "set -o noclobber"),
    Setup("failglob", "bash", "shopt -s failglob"),
    Setup("nullglob and dotglob", "bash", "shopt -s nullglob dotglob globstar nocaseglob nocasematch"),
    Setup("PS1 with a command substitution and a newline", "bash", "PS1='$(echo sub; false)\\n\\u@\\h:\\w\\$ '"),
    Setup("trap ERR and trap EXIT", "bash", "set -E; trap 'true err' ERR; trap 'true exit' EXIT"),
    Setup("trap RETURN and DEBUG with functrace", "bash", "set -T; trap 'true' RETURN; trap 'true' DEBUG"),
    Setup("HISTCONTROL and HISTTIMEFORMAT", "bash",
          "HISTCONTROL=ignoreboth:erasedups HISTTIMEFORMAT='%F %T ' HISTIGNORE='*'"),
    Setup("a decimal comma", "bash", "export LC_ALL=de_DE.UTF-8 2>/dev/null; LC_NUMERIC=de_DE.UTF-8"),
    Setup("a startup file that fails", "bash", "false; return 3"),
    Setup("a startup file with a syntax error", "bash", "if true; then fi )"),
    Setup("stty changes", "bash", "stty -echo -icanon -ixon -isig; stty sane; stty -ixon -echoctl"),
    Setup("set -a", "bash", "set -a; PS1='exported> '"),
    Setup("set -k, -f, -h off", "bash", "set -k; set -f; set +h"),
    Setup("no job control", "bash", "set +m"),
    Setup("huponexit, checkjobs, lastpipe, autocd, cdspell", "bash", "shopt -s huponexit checkjobs autocd cdspell"),
    Setup("CDPATH and a cd function that prints", "bash", "CDPATH=/tmp:/; cd() { builtin cd \"$@\"; }"),
    Setup("immediate job notices", "bash", "set -b"),
    Setup("PROMPT_DIRTRIM and a prompt of many columns", "bash", "PROMPT_DIRTRIM=1; PS1=\"$(printf '%0300d' 7)> \""),
    Setup("TMOUT set", "bash", "TMOUT=600"),
    Setup("bash's own descriptor leads to a file", "bash", "exec 255>~/elsewhere"),
    Setup("extglob, histverify, history expansion on", "bash", "shopt -s extglob histverify histreedit; set -H"),
)  # fmt: skip

ZSH = (
    Setup("no startup file", "zsh", ""),
    Setup("powerlevel10k-like: instant prompt, then the real one in precmd", "zsh", r"""
print -n 'instant> '
setopt prompt_sp prompt_cr prompt_subst prompt_percent
theme_render() { PROMPT='%~ ${theme_text}> '; RPROMPT='%?'; theme_text=$'two\nlines' }
precmd_functions=(theme_render)
"""),
    Setup("powerlevel10k-like: transient prompt", "zsh", r"""
PROMPT='long %~ %(?.ok.failed)> '
transient() { PROMPT='> ' RPROMPT= ; zle .reset-prompt }
zle -N zle-line-finish transient
restore() { PROMPT='long %~ %(?.ok.failed)> ' }
precmd_functions+=(restore)
"""),
    Setup("oh-my-zsh-like: zle-line-init put in place after everybody else", "zsh", r"""
zle-line-init() { echoti smkx }
zle-line-finish() { echoti rmkx }
zle -N zle-line-init
zle -N zle-line-finish
reinstall() { zle -N zle-line-init }
precmd_functions+=(reinstall)
"""),
    Setup("a theme that resets the prompt from a timer and from a widget", "zsh", r"""
zle-keymap-select() { zle reset-prompt }
zle -N zle-keymap-select
zle-line-init() { zle reset-prompt }
zle -N zle-line-init
"""),
    Setup("accept-line and self-insert wrapped", "zsh", r"""
wrapped-accept() { zle .accept-line }
wrapped-insert() { zle .self-insert; region_highlight=("0 1 bold") }
zle -N accept-line wrapped-accept
zle -N self-insert wrapped-insert
"""),
    Setup("a DEBUG trap", "zsh", "TRAPDEBUG() { : }"),
    Setup("setopt no_unset", "zsh", "setopt no_unset"),
    Setup("setopt err_exit", "zsh", "setopt err_exit", change=_ends_at("false")),
    Setup("setopt err_return", "zsh", "setopt err_return"),
    Setup("setopt xtrace", "zsh", "setopt xtrace", noise=TRACE),
    Setup("setopt verbose", "zsh", "setopt verbose", noise=VERBOSE),
    Setup("emulate sh", "zsh", "emulate sh"),
    Setup("emulate ksh", "zsh", "emulate ksh"),
    Setup("exec >/dev/null", "zsh", "exec >/dev/null", change=_only(ERROR, AFTER_INTERRUPT)),
    Setup("exec 2>/dev/null", "zsh", "exec 2>/dev/null", change=_without(ERROR)),
    Setup("exec 1>&-", "zsh", "exec 1>&-", noise=CLOSED, change=_closed(fails=False)),
    Setup("prints a lot", "zsh", "for i in {1..2000}; do echo \"line $i\"; done; printf '\\e]133;A\\a no newline'"),
    Setup("unsetopt zle", "zsh", "unsetopt zle", change=_staged(126)),
    Setup("PROMPT_SP forced on, with a mark of its own", "zsh",
          "setopt prompt_sp prompt_cr; PROMPT_EOL_MARK='%B%S%#%s%b'; f() { setopt prompt_sp; PROMPT_EOL_MARK='%%' }; "
          "precmd_functions+=(f)"),
    Setup("PROMPT_SP off", "zsh", "unsetopt prompt_sp"),
    Setup("PROMPT_CR off", "zsh", "unsetopt prompt_cr"),
    Setup("vi mode", "zsh", "bindkey -v; KEYTIMEOUT=1"),
    Setup("TERM=dumb", "zsh", "TERM=dumb"),
    Setup("aliases named like builtins, global ones too", "zsh",
          "alias print=echo local=echo emulate=echo builtin=echo syswrite=echo zle=echo; alias -g G='| grep'"),
    Setup("functions named like builtins", "zsh", "".join(
        f"{name}() {{ builtin {name} \"$@\" }}\n"
        for name in ("print", "printf", "local", "return", "echo", "zle", "zmodload"))),
    Setup("functions called builtin, emulate and syswrite", "zsh",
          "builtin() { : }; emulate() { : }; syswrite() { : }"),
    Setup("IFS of digits and letters", "zsh", "IFS=0123456789abcdefx7"),
    Setup("noclobber", "zsh", "setopt no_clobber"),
    Setup("null_glob, no_match off, glob_subst", "zsh", "setopt null_glob glob_subst extended_glob; unsetopt nomatch"),
    Setup("ksh_arrays and sh_word_split", "zsh", "setopt ksh_arrays sh_word_split"),
    Setup("a prompt of two lines with a command substitution and a right prompt", "zsh",
          "setopt prompt_subst; PROMPT='$(echo sub)'$'\\n''%n@%m:%~%# '; RPROMPT='%D{%H:%M}'"),
    Setup("transient right prompt", "zsh", "RPROMPT=right; setopt transient_rprompt"),
    Setup("precmd and preexec that print and fail", "zsh",
          "f() { echo in precmd; false }; g() { return 1 }; precmd_functions+=(f); preexec_functions+=(g)"),
    Setup("precmd_functions=()", "zsh", "precmd_functions=() preexec_functions=()"),
    Setup("chpwd and periodic hooks", "zsh", "f() { : }; chpwd_functions+=(f); periodic_functions+=(f); PERIOD=1"),
    Setup("trap ZERR and EXIT", "zsh", "TRAPZERR() { : }; TRAPEXIT() { : }"),
    Setup("history options", "zsh",
          "setopt hist_ignore_space hist_ignore_all_dups share_history inc_append_history extended_history"),
    Setup("a decimal comma", "zsh", "export LC_ALL=de_DE.UTF-8 LC_NUMERIC=de_DE.UTF-8"),
    Setup("a startup file that fails", "zsh", "false; return 3"),
    Setup("a startup file with a syntax error", "zsh", "if true; then fi )"),
    Setup("stty changes", "zsh", "stty -echo -icanon -ixon; stty sane; stty -ixon -echoctl; ttyctl -f"),
    Setup("all_export", "zsh", "setopt all_export; PS1='exported> '"),
    Setup("no job control", "zsh", "unsetopt monitor"),
    Setup("prompt_percent and prompt_bang", "zsh", "unsetopt prompt_percent; setopt prompt_bang; PS1='!> '"),
    Setup("PS1 readonly", "zsh", "typeset -r PS1='fixed> '"),
    Setup("autocd, correct, cdable_vars, auto_pushd", "zsh",
          "setopt auto_cd auto_pushd pushd_silent cdable_vars correct correct_all"),
    Setup("bang_hist on, csh_junkie_quotes", "zsh", "setopt bang_hist csh_junkie_history hist_verify"),
    Setup("a history of its own", "zsh", "HISTFILE=~/.mine HISTSIZE=10 SAVEHIST=10; print -s 'older line'"),
)  # fmt: skip

SETUPS = (*BASH, *ZSH)
