"""How fish is started with our hooks in it."""

from __future__ import annotations

import os

from blockpty.host.shells.plans import Place, ShellPlan, shellrc_directory
from blockpty.host.shells.staging import fish_quote_bytes


def plan(path: str, env: dict[str, str], place: Place) -> ShellPlan:
    """Say how fish is started with our hooks in it: `-C` runs after the user's configuration."""
    name = f"{place.folder}/blockpty.fish"
    content = hooks(place.nonce, place.directory)
    source = "source " + os.fsdecode(fish_quote_bytes(os.path.join(place.directory, name)))
    argv = (path, *(("-l",) if place.login else ()), "-i", "-C", source)
    return ShellPlan("fish", argv, env, ((name, content),), (name, place.folder))


def hooks(nonce: str, directory: str) -> bytes:
    """Return the hooks of one shell instance, whose conversation lives in `directory`."""
    header = f"set -gu __bpty_n '{nonce}'\nset -gu __bpty_dir ".encode() + fish_quote_bytes(directory) + b"\n"
    return header + (shellrc_directory() / "fish" / "blockpty.fish").read_bytes()
