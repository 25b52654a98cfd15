"""Everyday commands that run what is known only at run time, and that are as harmless as their form says.

Rules of this file: data, and pure functions from the words of a command as written. They are for `eval "$(ssh-agent
-s)"`, `source <(kubectl completion bash)`, `exec $SHELL -l`, `$EDITOR notes.txt` and `$(which python) x.py`. Every form
is exact: one word more, and it is not one of these. The caller sees to it that nothing in the text gives the names in
it another meaning.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from blockpty.control.shell_syntax import Parameter, Simple, Substitution, WordNode, unquote

EDITORS: Final = frozenset({"EDITOR", "VISUAL"})
PROGRAM_VARIABLES: Final = EDITORS | {"SHELL"}
"""Variables that people run as a program."""

_SHELL: Final = "(?:bash|zsh|sh)"
_NAME: Final = r"[A-Za-z0-9][\w.-]*"
_HOOKS: Final[dict[str, str]] = {
    "ssh-agent": r"|-s|-k|-s -t \d+[smhdw]?|-t \d+[smhdw]?",
    "gnome-keyring-daemon": r"--start(?: --components=[a-z0-9,]+)?",
    "keychain": r"(?:--quiet |--agents (?:ssh|gpg|ssh,gpg) )*--eval(?: --quiet)?(?: [\w~/.][\w~/.-]*)*",
    **dict.fromkeys(
        ("pyenv", "rbenv", "nodenv", "goenv", "jenv", "plenv", "phpenv", "swiftenv"),
        rf"init -(?: --no-rehash)?(?: {_SHELL})?|init --path|virtualenv-init -",
    ),
    "brew": f"shellenv(?: {_SHELL})?",
    "direnv": f"hook {_SHELL}",
    "starship": f"init {_SHELL}",
    "zoxide": f"init {_SHELL}(?: --cmd cd)?",
    "mcfly": f"init {_SHELL}",
    "atuin": f"init {_SHELL}(?: --disable-up-arrow)?",
    "thefuck": "--alias",
    "hub": "alias -s",
    "navi": f"widget {_SHELL}",
    "mise": f"activate {_SHELL}",
    "fnm": f"env(?: --use-on-cd| --shell {_SHELL}| --shell={_SHELL})*",
    "opam": "env",
    "luarocks": "path(?: --bin)?",
    "conda": rf"shell\.{_SHELL} hook",
    **dict.fromkeys(("mamba", "micromamba"), f"shell hook --shell {_SHELL}"),
    "dircolors": "|-b|-b ~/.dir_?colors|~/.dir_?colors",
    "lesspipe": "",
    "resize": "",
    "minikube": rf"(?:-p {_NAME} )?(?:docker-env|podman-env)(?: -u)?|completion {_SHELL}",
    "docker-machine": rf"env(?: -u| {_NAME})?",
    "register-python-argcomplete": _NAME,
    **dict.fromkeys(
        ("kubectl", "helm", "oc", "kind", "k3d", "docker", "flux", "argocd", "eksctl", "doctl", "hcloud", "op", "deno",
         "istioctl", "podman", "kustomize", "golangci-lint", "glab", "cilium", "tkn", "velero"),
        f"completions? {_SHELL}",
    ),
    "gh": f"completion -s {_SHELL}",
    "npm": "completion",
    "ng": "completion script",
    "pip": "completion --(?:bash|zsh)",
    "pip3": "completion --(?:bash|zsh)",
    "rustup": f"completions {_SHELL}(?: rustup| cargo)?",
    "poetry": f"completions {_SHELL}",
    "uv": f"generate-shell-completion {_SHELL}",
    "just": f"--completions {_SHELL}",
    "stern": f"--completion[ =]{_SHELL}",
    "fzf": "--bash|--zsh",
}  # fmt: skip
"""Programs that document their output as text for `eval` or `source`, and the arguments with which they print it."""
_PLACE: Final = re.compile(r"(?:/usr|/usr/local|/opt/homebrew|/home/\w+/\.linuxbrew)?/bin/")
_LOGIN: Final = frozenset({"-l", "-i", "-il", "-li", "--login"})


def prints_settings(words: Sequence[WordNode]) -> bool:
    """Return whether `eval` or `source` is given only what one program prints for it."""
    if len(words) != 2 or len(words[1].parts) != 1 or not isinstance(words[1].parts[0], Substitution):
        return False
    part = words[1].parts[0]
    if part.kind != ("$" if _literal(words[0]) == "eval" else "<"):
        return False
    printer = _alone(part)
    if printer is None:
        return False
    program, *arguments = printer
    form = _HOOKS.get(_PLACE.sub("", program, count=1) if program.startswith("/") else program)
    return form is not None and re.fullmatch(form, " ".join(arguments)) is not None


def resolved(words: Sequence[WordNode], shell: str) -> tuple[int, str] | None:
    """Return which word is a `$SHELL`, `$EDITOR` or `$(which NAME)` that is run, and as what program it can be read."""
    at = 0
    if len(words[0].parts) == 1 and words[0].parts[0] == "exec":
        at = 2 if len(words) > 1 and _literal(words[1]) == "-l" else 1
    if len(words) <= at or len(words[at].parts) != 1:
        return None
    part, rest = words[at].parts[0], words[at + 1 :]
    program = None
    if isinstance(part, Parameter) and part.plain:
        if part.name == "SHELL" and all(_literal(word) in _LOGIN for word in rest):
            program = shell
        elif part.name in EDITORS and all(_is_file(word) for word in rest):
            program = "editor"
    elif isinstance(part, Substitution) and part.kind == "$":
        program = _looked_up(part)
    return None if program is None else (at, program)


def _looked_up(part: Substitution) -> str | None:
    """Return the name that `$(which NAME)` or `$(command -v NAME)` looks up."""
    asked = _alone(part)
    if asked is None or asked[:-1] not in (["which"], ["command", "-v"]):
        return None
    return asked[-1] if re.fullmatch(_NAME, asked[-1]) else None


def _alone(part: Substitution) -> list[str] | None:
    """Return the words of the one command in a substitution, if they are literal and its output is what it prints."""
    if len(part.body.pipelines) != 1 or len(part.body.pipelines[0][1].commands) != 1:
        return None
    command = part.body.pipelines[0][1].commands[0]
    if not isinstance(command, Simple) or command.assignments or not command.words:
        return None
    if any((one.descriptor + one.operator, _literal(one.target)) != ("2>", "/dev/null") for one in command.redirects):
        return None
    found = [_literal(word) for word in command.words]
    return [word for word in found if word is not None] if None not in found else None


def _literal(word: WordNode) -> str | None:
    """Return the text of a word in which the shell expands nothing but a home directory."""
    if not all(isinstance(part, str) for part in word.parts):
        return None
    raw = "".join(part for part in word.parts if isinstance(part, str))
    return None if re.search(r"[*?\[{]|^~(?!/)|^[=!]", raw) else unquote(raw)


def _is_file(word: WordNode) -> bool:
    """Whether a word is certainly no option of an editor but a number of a line, and no command that it is given."""
    if not all(isinstance(part, str) for part in word.parts):
        return False
    text = unquote("".join(part for part in word.parts if isinstance(part, str)))
    return re.fullmatch(r"\+\d+|[\w./~].*", text, re.DOTALL) is not None
