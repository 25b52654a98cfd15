"""Real add-ons of shells, where a system has them: where their files lie, and how a person loads them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Package:
    """One add-on.

    Attributes:
        name: of the package.
        shell: "bash" or "zsh".
        places: the file that a startup file names; the first that exists is `{path}` in `rc`.
        rc: text of the startup file.
    """

    name: str
    shell: str
    places: tuple[str, ...]
    rc: str


PACKAGES = (
    Package("bash-completion", "bash", ("/usr/share/bash-completion/bash_completion",), ". {path}"),
    Package("Debian's startup file", "bash", ("/etc/skel/.bashrc",), ". {path}"),
    Package("starship", "bash", ("/usr/bin/starship", "/usr/local/bin/starship"), 'eval "$({path} init bash)"'),
    Package("git-prompt", "bash", ("/usr/lib/git-core/git-sh-prompt", "/etc/bash_completion.d/git-prompt"),
            ". {path}; GIT_PS1_SHOWDIRTYSTATE=1 PROMPT_COMMAND='__git_ps1 \"\\\\u\" \"\\\\$ \"'"),
    Package("bash-preexec", "bash", ("/usr/share/bash-preexec/bash-preexec.sh",),
            ". {path}; preexec_functions+=(true) precmd_functions+=(true)"),
    Package("powerline", "bash", ("/usr/share/powerline/bindings/bash/powerline.sh",), ". {path}"),
    Package("liquidprompt", "bash", ("/usr/share/liquidprompt/liquidprompt",), ". {path}"),
    Package("fzf", "bash", ("/usr/share/doc/fzf/examples/key-bindings.bash",), ". {path}"),
    Package("direnv", "bash", ("/usr/bin/direnv",), 'eval "$({path} hook bash)"'),
    Package("zoxide", "bash", ("/usr/bin/zoxide",), 'eval "$({path} init bash)"'),
    Package("vte.sh", "bash", ("/etc/profile.d/vte-2.91.sh",), ". {path}"),
    Package("liquidprompt", "zsh", ("/usr/share/liquidprompt/liquidprompt",), ". {path}"),
    Package("fzf", "zsh", ("/usr/share/doc/fzf/examples/key-bindings.zsh",), ". {path}"),
    Package("direnv", "zsh", ("/usr/bin/direnv",), 'eval "$({path} hook zsh)"'),
    Package("zoxide", "zsh", ("/usr/bin/zoxide",), 'autoload -Uz compinit; compinit -D; eval "$({path} init zsh)"'),
    Package("powerline", "zsh", ("/usr/share/powerline/bindings/zsh/powerline.zsh",), ". {path}"),
    Package("vte.sh", "zsh", ("/etc/profile.d/vte-2.91.sh",), ". {path}"),
    Package("zsh-autosuggestions", "zsh", ("/usr/share/zsh-autosuggestions/zsh-autosuggestions.zsh",), ". {path}"),
    Package("zsh-syntax-highlighting", "zsh",
            ("/usr/share/zsh-syntax-highlighting/zsh-syntax-highlighting.zsh",), ". {path}"),
    Package("zsh's own prompt themes", "zsh", ("/usr/bin/zsh", "/bin/zsh"),
            "autoload -Uz promptinit compinit; promptinit; compinit -D; prompt adam2"),
    Package("vcs_info", "zsh", ("/usr/bin/zsh", "/bin/zsh"),
            "autoload -Uz vcs_info add-zsh-hook; add-zsh-hook precmd vcs_info; setopt prompt_subst; "
            "PROMPT='${{vcs_info_msg_0_}}%# '"),
    Package("starship", "zsh", ("/usr/bin/starship", "/usr/local/bin/starship"), 'eval "$({path} init zsh)"'),
    Package("powerlevel10k", "zsh", ("/usr/share/powerlevel10k/powerlevel10k.zsh-theme",), ". {path}"),
)  # fmt: skip
