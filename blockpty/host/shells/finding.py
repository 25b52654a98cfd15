"""Which program is the shell that was asked for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

from blockpty.errors import SpawnFailed
from blockpty.host.shells.families import is_supported

DEFAULTS: Final = ("bash", "zsh", "fish")
"""What is looked for, in this order, when nobody asks for a shell and $SHELL is none with full support."""


def find_shell(shell: str | None, env: Mapping[str, str]) -> str:
    """Return the absolute path of a shell given by name, by path, or not at all; raises SpawnFailed."""
    if shell is None:
        own = env.get("SHELL", "")
        if is_supported(own) and os.path.isabs(own) and _is_program(own):
            return own
        for name in DEFAULTS:
            found = _on_path(name, env["PATH"])
            if found is not None:
                return found
        raise SpawnFailed("neither bash nor zsh nor fish was found on PATH", hint="name a shell by its absolute path")
    if os.path.isabs(shell):
        if not _is_program(shell):
            raise SpawnFailed(
                f"the shell {shell!r} does not exist or cannot be executed",
                hint="give the absolute path of an executable shell, or a name found on PATH",
                details={"shell": shell},
            )
        return shell
    found = None if "/" in shell or not shell else _on_path(shell, env["PATH"])
    if found is None:
        raise SpawnFailed(
            f"no shell {shell!r} was found on PATH",
            hint="install it, or give its absolute path; bash, zsh and fish have full support",
            details={"shell": shell, "path": env["PATH"]},
        )
    return found


def _on_path(name: str, path: str) -> str | None:
    for folder in path.split(os.pathsep):
        candidate = os.path.join(folder, name)
        if os.path.isabs(candidate) and _is_program(candidate):
            return candidate
    return None


def _is_program(path: str) -> bool:
    return "\0" not in path and os.path.isfile(path) and os.access(path, os.X_OK)
