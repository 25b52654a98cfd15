"""How bash is started with our hooks in it."""

from __future__ import annotations

import os

from blockpty.host.shells.plans import Place, ShellPlan, header, shellrc_directory


def plan(path: str, env: dict[str, str], place: Place) -> ShellPlan:
    """Say how bash is started with our hooks in it."""
    name = f"{place.folder}/bashrc"
    head = header(b'-v "${!__bpty_@}"', place.nonce, place.directory) + f"__bpty_login={int(place.login)}\n".encode()
    body = (shellrc_directory() / "bash" / "blockpty.bash").read_bytes()
    # Long options must precede short ones.
    argv = (path, "--rcfile", os.path.join(place.directory, name), "-i")
    return ShellPlan("bash", argv, env, ((name, head + body),), (name, place.folder))
