"""How zsh is started with our hooks in it."""

from __future__ import annotations

import os

from blockpty.host.shells.plans import Place, ShellPlan, header, shellrc_directory
from blockpty.host.shells.staging import quote_bytes


def plan(path: str, env: dict[str, str], place: Place) -> ShellPlan:
    """Say how zsh is started with our hooks in it."""
    name = f"{place.folder}/.zshenv"
    head = header(b"-m '__bpty_*'", place.nonce, place.directory)
    if "ZDOTDIR" in env:
        head += b"__bpty_zdotdir=" + quote_bytes(env["ZDOTDIR"]) + b"\n"
    source = shellrc_directory() / "zsh"
    content = head + (source / "blockpty.zsh").read_bytes() + (source / "zshenv").read_bytes()
    argv = (path, "-l", "-i") if place.login else (path, "-i")
    env = {**env, "ZDOTDIR": os.path.join(place.directory, place.folder)}
    return ShellPlan("zsh", argv, env, ((name, content),), (name, place.folder))
