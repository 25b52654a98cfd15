"""Which family a shell belongs to, told by the basename of its program."""

from __future__ import annotations

import os
import re
from typing import Final

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
    """Tell whether our hooks go into this shell, by its basename; a POSIX shell has only its prompt marked."""
    return family_of(shell) in (BASH, ZSH, FISH)
