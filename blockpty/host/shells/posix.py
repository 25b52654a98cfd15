"""How a shell is started of which only the prompt can be marked: dash, busybox ash, ksh93, mksh, and `sh`."""

from __future__ import annotations

import os
import re

from blockpty.errors import BadRequest
from blockpty.host.shells.plans import Place, ShellPlan, shellrc_directory
from blockpty.host.shells.staging import quote_bytes

_CLEAN = re.compile(r"[^0-9A-Za-z._-]")


def plan(path: str, env: dict[str, str], place: Place) -> ShellPlan:
    """Say how the shell is started with ENV naming our file, which gives the user's ENV back.

    It is not started as a login shell even where one is asked for: a profile that sets ENV would take ours away; the
    file reads the profiles instead.

    Raises:
        BadRequest: the shell would expand the file's name.
    """
    name = f"{place.folder}/blockpty.sh"
    file = os.path.join(place.directory, name)
    base = os.path.basename(path)
    if any(character in file for character in "$`\\"):
        raise BadRequest(f"{base} would expand the name {file!r}", hint="use a home without $, ` and backslash")
    header = (
        f"__bpty_n='{place.nonce}'\n__bpty_login={int(place.login)}\n__bpty_sh='{_CLEAN.sub('_', base)}'\n"
        "__bpty_esc='\x1b' __bpty_bel='\x07' __bpty_soh='\x01' __bpty_cr='\r'\n"
    ).encode()
    header += b"__bpty_dir=" + quote_bytes(place.directory) + b"\n"
    if "ENV" in env:
        header += b"__bpty_env=" + quote_bytes(env["ENV"]) + b"\n"
    content = header + (shellrc_directory() / "posix" / "blockpty.sh").read_bytes()
    # busybox is many programs and takes the name of the one it is to be from its arguments.
    argv = (path, "ash", "-i") if base.startswith("busybox") else (path, "-i")
    return ShellPlan(base, argv, {**env, "ENV": file}, ((name, content),), (name, place.folder))
