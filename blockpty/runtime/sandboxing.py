"""Sandboxes of shells: from a profile's name to the boundary that the host sets up.

Rules of this file: what a profile may say stands in control/sandbox.py, how a boundary is made in host/sandbox.py. Here
the paths are resolved and the method is chosen, at each start of a shell. Where no method works, there is no shell.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from blockpty.control.sandbox import (
    HIDDEN,
    SOCKET_VARIABLES,
    SandboxProfile,
    arrange,
    find_profile,
    is_below,
    parse_profiles,
)
from blockpty.errors import BadRequest, SpawnFailed
from blockpty.host import sandbox
from blockpty.host.input_drain import KEPT_NAME
from blockpty.runtime.policy_file import NAME, load_policy
from blockpty.runtime.worker_threads import aside
from blockpty.spool.layout import make_private
from blockpty.spool.storage import open_file

LEAST_HOST: Final = 4
"""The first version of the PTY host that makes sandboxes; an older one that still runs would start a bare shell."""
_TEMPORARY: Final = ("/tmp", "/var/tmp")
_RUN: Final = "/run"
_PROBE_SECONDS: Final = 10
_LANDLOCK_LEAVES: Final = (
    "other processes can be seen in /proc, their memory, environment and files cannot",
    "names in hidden directories can be listed",
    "modes, owners and times of files outside can be changed",
    "limits and priorities of other processes can be changed, System V shared memory can be reached",
    "unix sockets and, without a network, all other sockets are refused altogether",
)
_NO_SCOPES: Final = "other processes of the user can be signalled, abstract sockets reached"
_HINT: Final = "install bubblewrap (apt install bubblewrap), or use Linux 6.2 or later"


class Sandbox(Struct, frozen=True):
    """Boundary of a sandboxed shell, for its start.

    Attributes:
        boundary: for the host.
        facts: what holds, for `status` and the record.
        cwd: the resolved directory in which the shell starts.
        env: variables to add.
    """

    boundary: dict[str, Any]
    facts: dict[str, Any]
    cwd: str
    env: dict[str, str]

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return an environment without what names sockets and directories outside."""
        return {name: value for name, value in env.items() if name not in SOCKET_VARIABLES or name in self.env}


async def prepare(name: str, *, home: Path, directory: Path, cwd: str, host_version: str) -> Sandbox:
    """Return the boundary of a shell; raises BadRequest (no such profile, a path that cannot be), SpawnFailed."""
    if not host_version.isdigit() or int(host_version) < LEAST_HOST:
        raise SpawnFailed(
            "the PTY host that runs is of an older version and makes no sandboxes",
            hint="close its conversations, so that it exits",
        )
    return await aside(lambda pace: _prepared(name, home, directory, cwd), long=False)


def _prepared(name: str, home: Path, directory: Path, cwd: str) -> Sandbox:
    policy = load_policy(home / NAME)
    profile = find_profile(parse_profiles({}) if policy is None else policy.sandboxes, name)
    method, program, disable_userns = choose_method(profile)
    homes = list(dict.fromkeys(map(os.path.realpath, (os.path.expanduser("~"), pwd.getpwuid(os.geteuid()).pw_dir))))
    cwd, homes = os.path.realpath(cwd), [one for one in homes if one != "/"]
    written = [cwd] if profile.cwd == "read_write" else []
    for path in _expanded(profile.read_write, homes[:1]):
        if not os.path.exists(path):
            raise BadRequest(f"the sandbox {name} writes to {path}, which does not exist", hint="create it")
        written.append(path)
    _refuse_links((*profile.read_write, *profile.read_only), homes[:1], written)
    hidden = [one for one in _expanded((*HIDDEN, *profile.hide, _RUN), homes) if os.path.exists(one)]
    fixed = [one for one in _expanded(profile.read_only, homes[:1]) if os.path.exists(one)]
    if profile.cwd == "read_only":
        fixed.append(cwd)
    if profile.network:
        fixed += [one for one in [os.path.realpath("/etc/resolv.conf")] if os.path.exists(one)]
    own = [one for one in map(os.path.realpath, _TEMPORARY) if os.path.isdir(one)]
    real_home, real_directory = os.path.realpath(home), os.path.realpath(directory)
    # A deeper hidden path in a hidden one needs nothing of its own.
    hidden = [one for one in hidden if not any(one != other and is_below(one, other) for other in hidden)]
    mounts = arrange(written, fixed, hidden, own, home=real_home, directory=real_directory, user_homes=homes)
    entries, env = [*mounts.entries, ("rw", _history(directory))], dict(profile.env)
    if method == "landlock":
        temporary = directory / "tmp"
        make_private(temporary)
        entries.append(("rw", os.path.realpath(temporary)))
        entries.append(("rw", _fifo(directory)))
        env.setdefault("TMPDIR", os.path.realpath(temporary))
    facts = {
        "profile": name, "method": method, "network": profile.network,
        "writable": mounts.paths("rw"), "hidden": mounts.paths("hide"), "not_held": _left_open(method, profile),
    }  # fmt: skip
    boundary = {
        "method": method, "program": program, "network": profile.network, "mounts": [[*one] for one in entries],
        "disable_userns": disable_userns,
    }  # fmt: skip
    return Sandbox(boundary, facts, cwd, env)


def _expanded(paths: tuple[str, ...], homes: list[str]) -> list[str]:
    found: dict[str, None] = {}
    for path in paths:
        for home in homes if path.startswith("~") else [""]:
            found[os.path.realpath(home + path.removeprefix("~"))] = None
    return [*found]


def _history(directory: Path) -> str:
    """Return the path of the shell's own history file, made if need be: many startup files add to it at each prompt."""
    path = directory / "history"
    os.close(open_file(path, os.O_RDWR | os.O_CREAT))
    return os.path.realpath(path)


def _fifo(directory: Path) -> str:
    """Return the path of the FIFO by which the shell's hooks ask for unread hidden input to be discarded."""
    path = directory / KEPT_NAME
    with contextlib.suppress(FileExistsError):
        os.mkfifo(path, 0o600)
    return os.path.realpath(path)


def _refuse_links(paths: tuple[str, ...], homes: list[str], written: list[str]) -> None:
    """Raise BadRequest for a path through a link that an earlier sandboxed shell could have made."""
    for path in paths:
        for home in homes if path.startswith("~") else [""]:
            plain = os.path.normpath(home + path.removeprefix("~"))
            if plain != os.path.realpath(plain) and any(is_below(plain, one) for one in written):
                raise BadRequest(
                    f"{plain} leads elsewhere, by a link in a directory that the sandbox can write to",
                    hint="remove the link, or name what it leads to",
                )


def _left_open(method: str, profile: SandboxProfile) -> list[str]:
    if method == "landlock":
        scopes = sandbox.landlock_abi() >= 6
        return [*_LANDLOCK_LEAVES, *([] if scopes else [_NO_SCOPES])]
    return ["abstract unix sockets can be reached, because the network can"] if profile.network else []


def choose_method(profile: SandboxProfile) -> tuple[str, str | None, bool]:
    """Return the method, and for bwrap its program and whether it can forbid user namespaces; raises SpawnFailed."""
    why = []
    if profile.method in ("auto", "bwrap"):
        program = shutil.which("bwrap")
        if program is None:
            why.append("bwrap is not installed")
        else:
            works, disable_userns, said = _probe(os.path.realpath(program))
            if works:
                return "bwrap", os.path.realpath(program), disable_userns
            why.append(f"bwrap does not work here ({said})")
    if profile.method in ("auto", "landlock"):
        if sandbox.landlock_abi() >= sandbox.LEAST_LANDLOCK:
            return "landlock", None, False
        why.append("the kernel has no Landlock, or an old one")
    raise SpawnFailed(f"no sandbox can be made: {'; '.join(why)}", hint=_HINT, details={"reasons": why})


@lru_cache(maxsize=8)
def _probe(program: str) -> tuple[bool, bool, str]:
    """Return whether bwrap works here, whether with `--disable-userns`, and else what it said."""
    said = ""
    for more in (["--disable-userns"], []):
        words = [
            program, "--unshare-user", "--unshare-pid", "--unshare-net", *more, "--ro-bind", "/", "/", "--dev", "/dev",
            "--proc", "/proc", "--", "/bin/sh", "-c", ":",
        ]  # fmt: skip
        try:
            ran = subprocess.run(
                words, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PROBE_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as problem:
            return False, False, str(problem)
        if ran.returncode == 0:
            return True, bool(more), ""
        said = ran.stderr.decode("utf-8", "replace").strip()[-200:]
    return False, False, said
