"""Start plans of shells: arguments, environment, private startup files; and the staging of commands.

`families` has the shells that are known and how they are found, `environment` what a shell gets of ours, `plans` how
each family is started, and `staging` the text of a staged command and of the line that submits it. Nothing here opens
a terminal, starts a process or writes a file: files are returned as bytes.

The nonce goes into a startup file only. It is never in argv or in the environment, because /proc/PID/environ keeps
what a shell has long unset (../../../shellrc/README.md).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from blockpty.errors import BadRequest
from blockpty.host.shells.environment import (
    KEPT,
    KEPT_PREFIXES,
    NO_PAGERS,
    REFUSED,
    REFUSED_PREFIXES,
    clean_environment,
    kept_of,
)
from blockpty.host.shells.families import BASH, DEFAULTS, FISH, POSIX, ZSH, family_of, find_shell, is_supported
from blockpty.host.shells.plans import (
    Place,
    ShellPlan,
    bash_plan,
    fish_plan,
    posix_plan,
    shellrc_directory,
    zsh_plan,
)
from blockpty.host.shells.staging import (
    KEEP_LAST,
    MAX_LOADED,
    SETTLE,
    clear_keys,
    eval_line,
    is_settled,
    load_line,
    load_text,
    loads,
    stage,
    submit_line,
)

__all__ = [
    "BASH",
    "DEFAULTS",
    "FISH",
    "KEEP_LAST",
    "KEPT",
    "KEPT_PREFIXES",
    "MAX_LOADED",
    "NO_PAGERS",
    "POSIX",
    "REFUSED",
    "REFUSED_PREFIXES",
    "SETTLE",
    "ZSH",
    "ShellPlan",
    "clean_environment",
    "clear_keys",
    "eval_line",
    "family_of",
    "is_settled",
    "is_supported",
    "kept_of",
    "load_line",
    "load_text",
    "loads",
    "plan",
    "shellrc_directory",
    "stage",
    "submit_line",
]  # fmt: skip

_NONCE = re.compile(r"[A-Za-z0-9_-]{16,64}")
_FAMILIES = {BASH: bash_plan, ZSH: zsh_plan, FISH: fish_plan, POSIX: posix_plan}


def plan(
    shell: str | None,
    *,
    directory: str,
    instance: int,
    nonce: str,
    login: bool,
    inherited: Mapping[str, str],
    additions: Mapping[str, str] | None = None,
) -> ShellPlan:
    """Say how to start `shell` in the conversation whose directory is `directory`.

    Args:
        shell: a name looked up on PATH, an absolute path, or None: $SHELL when it is bash, zsh or fish,
            else the first of these on PATH.
        directory: absolute path of the conversation.
        instance: 1 for the first shell of the conversation, and so on; names the private directory `rc/<instance>`.
        nonce: 22 characters of base64url.
        login: read the profile files instead of (bash) or in addition to (zsh) the interactive ones.
        inherited: the environment of the caller; filtered by `clean_environment`.
        additions: names and values the caller asks for explicitly.

    Raises:
        SpawnFailed: the shell does not exist or cannot be executed.
        BadRequest: a parameter or an addition is not acceptable.
    """
    if not os.path.isabs(directory) or "\0" in directory:
        raise BadRequest(f"the conversation directory {directory!r} is not an absolute path")
    if instance < 1:
        raise BadRequest(f"the shell instance {instance} is below 1")
    if not _NONCE.fullmatch(nonce):
        raise BadRequest("the nonce is not 16 to 64 characters of base64url")
    env = clean_environment(inherited, additions)
    path = find_shell(shell, env)
    family = family_of(path)
    if family is not None:
        return _FAMILIES[family](path, env, Place(directory, f"rc/{instance}", nonce, login))
    argv = (path, "-l", "-i") if login else (path, "-i")
    return ShellPlan(name=os.path.basename(path), argv=argv, env=env, files=(), secret_files=())
