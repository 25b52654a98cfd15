"""How fish is started with our hooks in it."""

from __future__ import annotations

import os

from blockpty.host.shells.plans import Place, ShellPlan, shellrc_directory
from blockpty.host.shells.staging import fish_quote_bytes


def plan(path: str, env: dict[str, str], place: Place) -> ShellPlan:
    """Say how fish is started with our hooks in it: `-C` runs after the user's configuration."""
    name = f"{place.folder}/blockpty.fish"
    header = f"set -gu __bp_n '{place.nonce}'\n".encode()
    content = header + (shellrc_directory() / "fish" / "blockpty.fish").read_bytes()
    source = "source " + os.fsdecode(fish_quote_bytes(os.path.join(place.directory, name)))
    argv = (path, *(("-l",) if place.login else ()), "-i", "-C", source)
    return ShellPlan("fish", argv, env, ((name, content),), (name, place.folder))
