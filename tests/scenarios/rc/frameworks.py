"""Startup files as people have them: real frameworks, and the shape of tools that are not at hand.

Rules of this file: the frameworks are read from `../shared/fixtures/startup`, `{0}` in `rc`, and nothing of them is in
this project. Where no folder is named, the text is our own, written after what such a tool does to a shell.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Framework:
    """One startup file.

    Attributes:
        title: what it is.
        shell: "bash", "zsh" or "fish".
        rc: its text; `{0}` stands for the folder of all frameworks.
        folders: those that it needs there.
    """

    title: str
    shell: str
    rc: str
    folders: tuple[str, ...] = ()

    def text(self, place: str) -> str:
        return self.rc.replace("{0}", place)


_PREEXEC = ". {0}/bash-preexec/bash-preexec.sh\n"
# Its daemon would be fetched from the network, and the wizard asks.
_P10K = r"""
POWERLEVEL9K_DISABLE_GITSTATUS=true POWERLEVEL9K_DISABLE_CONFIGURATION_WIZARD=true
. {0}/powerlevel10k/powerlevel10k.zsh-theme
"""
_LEAN = _P10K + ". {0}/powerlevel10k/config/p10k-lean.zsh\nPOWERLEVEL9K_DISABLE_GITSTATUS=true\n"
_INSTANT = r"""
p10k_cache=${XDG_CACHE_HOME:-$HOME/.cache}/p10k-instant-prompt-${(%):-%n}.zsh
[[ -r $p10k_cache ]] && . $p10k_cache
"""
_VI_MODE = ". {0}/zsh-vi-mode/zsh-vi-mode.plugin.zsh\n"
_PURE = "git init -q .\n. {0}/pure/async.zsh\n. {0}/pure/pure.zsh\n"


def _oh_my_zsh(theme: str, plugins: str = "") -> str:
    return (
        f"ZSH={{0}}/ohmyzsh ZSH_THEME={theme} DISABLE_AUTO_UPDATE=true ZSH_DISABLE_COMPFIX=true\n"
        f"ZSH_CACHE_DIR=$HOME/cache ZSH_COMPDUMP=$HOME/dump\nmkdir -p $ZSH_CACHE_DIR\nplugins=({plugins})\n"
        "git init -q .\n. $ZSH/oh-my-zsh.sh\n"
    )


_STARSHIP_BASH = r"""
ship_preexec() { local last=$_; ship_start=$SECONDS; : "$last"; }
ship_precmd() {
    local status=$? pipe=("${PIPESTATUS[@]}") jobs_running
    jobs_running=$(jobs -p | wc -l)
    eval "$ship_user_prompt_command"
    PS1='\n\w '"${pipe[*]} $jobs_running"'\n> '
    return "$status"
}
ship_user_prompt_command=${PROMPT_COMMAND-}
PROMPT_COMMAND=ship_precmd
PS0='${ship_start:$((ship_start=SECONDS, 0)):0}'
"""
_DIRENV_BASH = r"""
env_hook() { local previous=$?; trap -- '' SIGINT; eval "$(true)"; trap - SIGINT; return $previous; }
PROMPT_COMMAND="env_hook${PROMPT_COMMAND:+;$PROMPT_COMMAND}"
"""
_ZOXIDE_BASH = r"""
z_old=$(pwd -L)
z_hook() { local -r status=$?; local now; now=$(pwd -L); [[ $z_old == "$now" ]] || z_old=$now; return "$status"; }
[[ ${PROMPT_COMMAND:=} == *z_hook* ]] || PROMPT_COMMAND="z_hook;${PROMPT_COMMAND#;}"
"""
_LIQUID_BASH = r"""
lp_prompt() { local status=$?; PS1="\[\e[1m\]$(jobs -p | wc -l)\[\e[0m\] [\w] $status \$ "; return $status; }
PROMPT_COMMAND="lp_prompt; ${PROMPT_COMMAND-}; printf '\e]0;%s\a' title"
"""
_POWERLINE_BASH = r"""
pl_prompt() { local last=$?; PS1="$(printf '\001\e[7m\002 %s \001\e[0m\002' "$last")"; PS2='. '; return $last; }
PROMPT_COMMAND=$'pl_prompt\n'"${PROMPT_COMMAND-}"
trap 'pl_last=$BASH_COMMAND' DEBUG
"""
_ZSH_HOOKS = r"""
autoload -Uz add-zsh-hook
setopt prompt_subst
ship_preexec() { ship_start=$SECONDS }
ship_precmd() { ship_status=$? ship_pipe=($pipestatus); ship_jobs=$(jobs -p | wc -l) }
add-zsh-hook precmd ship_precmd
add-zsh-hook preexec ship_preexec
ship_keymap() { zle reset-prompt }
ship_line_init() { (( ${+widgets[ship-saved]} )) && zle ship-saved; zle reset-prompt }
zle -A zle-line-init ship-saved 2>/dev/null
zle -N zle-keymap-select ship_keymap
zle -N zle-line-init ship_line_init
PROMPT=$'\n%~ ${ship_status} ${(j:,:)ship_pipe}\n> '
RPROMPT='$(print right)'
"""
_DIRENV_ZSH = r"""
env_hook() { trap -- '' SIGINT; eval "$(true)"; trap - SIGINT }
typeset -ag precmd_functions chpwd_functions
(( ${precmd_functions[(I)env_hook]} )) || precmd_functions=(env_hook $precmd_functions)
(( ${chpwd_functions[(I)env_hook]} )) || chpwd_functions=(env_hook $chpwd_functions)
z_hook() { : "$(pwd -L)" }
(( ${precmd_functions[(I)z_hook]} )) || chpwd_functions+=(z_hook)
"""
_LIQUID_ZSH = r"""
lp_prompt() { local status_=$?; PS1="%B$(jobs -p | wc -l)%b [%~] $status_ %# "; print -n '\e]0;title\a' }
precmd_functions+=(lp_prompt)
pl_update() { pl_text=$(print -n ' %n '); zle && zle reset-prompt }
pl_precmd() { pl_update; [[ $widgets[zle-line-init] == user:pl_init ]] || zle -N zle-line-init pl_init }
pl_init() { zle .reset-prompt }
precmd_functions+=(pl_precmd)
"""
_CLOCK = r"""
setopt prompt_subst
PROMPT=$'%D{%T}\n> '
TMOUT=1
TRAPALRM() { zle && zle reset-prompt }
"""
_REPLACED = r"""
zle-line-init() { :; }
each() { zle -N zle-line-init; }
last() { precmd_functions=(${precmd_functions:#last} last); zle -D zle-line-init; zle -N zle-line-init; }
precmd_functions+=(each last)
"""
# Another process computes the prompt and tells when it has; the handler of its signal has it drawn again.
_TIDE = r"""
function tide_refresh --on-signal USR1
    set -g tide_text new
    commandline -f repaint
end
function tide_start --on-event fish_prompt
    set -g tide_text old
    command sh -c "sleep 0.1; kill -USR1 $fish_pid" &
    disown 2>/dev/null
end
function fish_prompt
    printf '%s\n%s\n> ' (prompt_pwd) "$tide_text"
end
"""
_STARSHIP_FISH = r"""
function fish_prompt
    set -g ship_status $status
    set -g ship_pipe $pipestatus
    set -g ship_jobs (count (jobs -p))
    printf '\n%s %s\n> ' (prompt_pwd) "$ship_pipe"
end
function fish_right_prompt
    printf '%s' (date +%H:%M)
end
function ship_transient
    commandline -f execute
end
bind \cx ship_transient
set -g VIRTUAL_ENV_DISABLE_PROMPT 1
"""
_DONE_FISH = r"""
function done_begin --on-event fish_preexec
    set -g done_window (string length -- $argv[1])
end
function done_end --on-event fish_postexec
    set -l exit_status $status
    set -q CMD_DURATION; and test $CMD_DURATION -gt 60000; and printf '\a'
    set -g done_last $exit_status
end
function fzf_search
    commandline -f repaint
end
bind \cr fzf_search
bind -M insert \cr fzf_search
function env_hook --on-event fish_prompt
    eval (true)
end
function z_hook --on-variable PWD
    set -g z_last $PWD
end
"""

FRAMEWORKS = (
    Framework("bash-preexec", "bash", _PREEXEC, ("bash-preexec",)),
    Framework("bash-preexec, both functions print", "bash",
              _PREEXEC + 'precmd() { echo after; }\npreexec() { echo "before $1"; }\n', ("bash-preexec",)),
    Framework("bash-preexec, arrays of functions", "bash",
              _PREEXEC + "f() { false; }; precmd_functions+=(f); preexec_functions+=(f)\n", ("bash-preexec",)),
    Framework("bash-preexec, PROMPT_COMMAND as a string", "bash",
              "PROMPT_COMMAND='echo prompt; false'\n" + _PREEXEC, ("bash-preexec",)),
    Framework("bash-preexec, PROMPT_COMMAND as an array", "bash",
              "PROMPT_COMMAND=('echo one' 'false')\n" + _PREEXEC, ("bash-preexec",)),
    Framework("PS0 with a line end", "bash", r"PS0='[\t]\n'"),
    Framework("starship-like", "bash", _STARSHIP_BASH),
    Framework("direnv-like and zoxide-like", "bash", _DIRENV_BASH + _ZOXIDE_BASH),
    Framework("liquidprompt-like", "bash", _LIQUID_BASH),
    Framework("powerline-like", "bash", _POWERLINE_BASH),
    Framework("all of them", "bash",
              _STARSHIP_BASH + _DIRENV_BASH + _ZOXIDE_BASH + _LIQUID_BASH + _POWERLINE_BASH + _PREEXEC
              + "PS0='[PS0]\\n'\nset -o vi\nHISTCONTROL=ignoreboth\nprecmd() { history -a; }\n", ("bash-preexec",)),
    Framework("powerlevel10k", "zsh", _P10K, ("powerlevel10k",)),
    Framework("powerlevel10k, lean, instant prompt", "zsh", _INSTANT + _LEAN, ("powerlevel10k",)),
    Framework("powerlevel10k, transient prompt", "zsh",
              _LEAN + "POWERLEVEL9K_TRANSIENT_PROMPT=always\n", ("powerlevel10k",)),
    Framework("powerlevel10k, shell integration", "zsh",
              _LEAN + "POWERLEVEL9K_TERM_SHELL_INTEGRATION=true\n", ("powerlevel10k",)),
    Framework("zsh-vi-mode", "zsh", _VI_MODE, ("zsh-vi-mode",)),
    Framework("pure", "zsh", _PURE, ("pure",)),
    Framework("oh-my-zsh", "zsh", _oh_my_zsh("robbyrussell"), ("ohmyzsh",)),
    Framework("oh-my-zsh, agnoster", "zsh", _oh_my_zsh("agnoster", "git"), ("ohmyzsh",)),
    Framework("oh-my-zsh, vi-mode", "zsh", _oh_my_zsh("robbyrussell", "vi-mode"), ("ohmyzsh",)),
    Framework("oh-my-zsh, plugins", "zsh",
              _oh_my_zsh("bira", "git fancy-ctrl-z last-working-dir command-not-found"), ("ohmyzsh",)),
    Framework("starship-like", "zsh", _ZSH_HOOKS),
    Framework("direnv-like and zoxide-like", "zsh", _DIRENV_ZSH),
    Framework("liquidprompt-like and powerline-like", "zsh", _LIQUID_ZSH),
    Framework("a clock in a prompt of two lines", "zsh", _CLOCK),
    Framework("zle-line-init deleted and replaced at every prompt", "zsh", _REPLACED),
    Framework("all of them", "zsh",
              _oh_my_zsh("bira", "git vi-mode fancy-ctrl-z command-not-found") + _DIRENV_ZSH + _ZSH_HOOKS + _VI_MODE
              + _LEAN + _REPLACED, ("ohmyzsh", "zsh-vi-mode", "powerlevel10k")),
    Framework("tide-like: another process has the prompt drawn again", "fish", _TIDE),
    Framework("starship-like", "fish", _STARSHIP_FISH),
    Framework("done-like, fzf-like, direnv-like", "fish", _DONE_FISH),
    Framework("all of them", "fish", _DONE_FISH + _STARSHIP_FISH + _TIDE),
)  # fmt: skip
