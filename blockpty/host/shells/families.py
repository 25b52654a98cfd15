"""Families of shells by the basename of the program, and the search for the program that was asked for."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final

from blockpty.errors import SpawnFailed

BASH: Final = "bash"
ZSH: Final = "zsh"
FISH: Final = "fish"
POSIX: Final = "posix"
"""Shells of which only the prompt can be marked: dash, busybox ash, ksh93, mksh, and `sh` whatever it is."""

_VERSION = r"(-?[0-9][0-9.]*)?"
_FAMILIES: Final = (
    (re.compile(rf"-?r?bash{_VERSION}"), BASH),
    (re.compile(rf"-?r?zsh{_VERSION}"), ZSH),
    (re.compile(rf"-?fish{_VERSION}"), FISH),
    (re.compile(rf"-?(sh|dash|ash|busybox|r?ksh(93|2020)?u?|mksh|lksh|oksh|loksh){_VERSION}"), POSIX),
)


def family_of(shell: str) -> str | None:
    """Return the family of a shell by its basename, None for one that is not known."""
    base = os.path.basename(shell)
    return next((family for pattern, family in _FAMILIES if pattern.fullmatch(base)), None)


def is_supported(shell: str) -> bool:
    """Whether our hooks go into this shell, by its basename; a POSIX shell has only its prompt marked."""
    return family_of(shell) in (BASH, ZSH, FISH)


DEFAULTS: Final = ("bash", "zsh", "fish")
"""What is looked for, in this order, when no shell is asked for and $SHELL is none with full support."""


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


def find_program(name: str, path: str) -> str | None:
    """Return the absolute path of a program given by name or by absolute path, None where there is none."""
    if os.path.isabs(name):
        return name if _is_program(name) else None
    return None if "/" in name or not name else _on_path(name, path)


def _on_path(name: str, path: str) -> str | None:
    for folder in path.split(os.pathsep):
        candidate = os.path.join(folder, name)
        if os.path.isabs(candidate) and _is_program(candidate):
            return candidate
    return None


def _is_program(path: str) -> bool:
    return "\0" not in path and os.path.isfile(path) and os.access(path, os.X_OK)
