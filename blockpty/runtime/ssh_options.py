"""Arguments of ssh: our keep-alive, where the user's own configuration has none, and the way to a lasting session."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from blockpty.engine.machine_state import MachineState
from blockpty.engine.states import ShellState
from blockpty.host.bridge import FAR_PATH
from blockpty.host.shells import ShellPlan
from blockpty.host.sources import plan_bridge
from blockpty.runtime.tmux_panes import PAUSE_SECONDS

ALIVE: Final = ("-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4")
"""A connection that says nothing for a minute is given up."""
ASKED_SECONDS: Final = 5.0
SILENCE_SECONDS: Final = 15.0
"""A connection that survives is made again when nothing has come over it for so long, though it was asked to answer."""
CONNECTION_NAME: Final = "connection.json"
"""File of a conversation in which the bridge says what the connection does."""
# Whatever the login shell there is. Without blockpty a tmux keeps the shell, if it is one that our bridge can use
# (tmux_panes.py).
FAR_COMMAND: Final = (
    f"exec sh -c '{FAR_PATH}; "
    "command -v blockpty >/dev/null && exec blockpty proxy --session; "
    "case \"$(tmux -V 2>/dev/null)\" in \"tmux 3.\"[2-9]*|\"tmux \"[4-9]*|\"tmux next\"*) "
    'tmux new-session -d -P -F "blockpty-tmux #{{session_id}} #{{pane_id}}" -s {name} -x {cols} -y {rows} '
    '"sleep 1000000" \\; set-option -t {name} destroy-unattached off '
    '\\; set-option -w -t {name} remain-on-exit off;; '
    "esac; exit 127'"
)


async def kept_alive(plan: ShellPlan) -> ShellPlan:
    """Return the plan of an ssh with our keep-alive, unless the configuration that ssh itself reports has one."""
    program, *rest = plan.argv
    if _interval(await _reported([program, "-G", *rest], plan)) != "0":
        return plan
    return replace(plan, argv=(program, *ALIVE, *rest))


def resumed(
    plan: ShellPlan, conversation_id: str, directory: str, instance: int, nonce: str, size: tuple[int, int], *,
    only: bool,
) -> ShellPlan:  # fmt: skip
    """Return the plan of the bridge to a session of the far host, which a lost connection does not end.

    `only`: without blockpty or tmux over there it fails; otherwise the plan itself takes its place. `nonce`: of the
    marks that say where the picture of a pane of tmux begins; `size`: columns and rows that it has at first.
    """
    unique = secrets.token_hex(6)
    command = FAR_COMMAND.format(name=f"blockpty-{unique}", cols=size[0], rows=size[1])
    locale = {key: value for key, value in plan.env.items() if key == "LANG" or key.startswith("LC_")}
    settings = {
        "ssh": ["-T" if one == "-tt" else one for one in plan.argv], "command": command,
        "plain": [] if only else [*plan.argv], "state": str(Path(directory) / CONNECTION_NAME), "instance": instance,
        "silence_seconds": float(plan.env.get("BLOCKPTY_SSH_SILENCE", SILENCE_SECONDS)),
        "session": {"conversation": f"{conversation_id[:96]}.{unique}", "env": locale},
        "tmux": {"nonce": nonce, "pause_after": PAUSE_SECONDS},
    }  # fmt: skip
    return plan_bridge(plan, "ssh_bridge", settings, directory, instance)


def connection_of(directory: Path, state: MachineState) -> dict[str, Any] | None:
    """Return what the bridge of an ssh source that runs says of its connection; None where there is none."""
    if state.source is None or state.source["kind"] != "ssh" or state.shell is ShellState.EXITED:
        return None
    try:
        said = json.loads((directory / CONNECTION_NAME).read_bytes())
        if said["instance"] != state.instance:
            return None
        return {"state": str(said["state"]), "reason": said["reason"], "connections": int(said["connections"])}
    except (OSError, ValueError, TypeError, KeyError):
        return None


async def _reported(argv: Sequence[str], plan: ShellPlan) -> str:
    with contextlib.suppress(OSError, TimeoutError):
        process = await asyncio.create_subprocess_exec(
            *argv, env=plan.env, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        try:
            async with asyncio.timeout(ASKED_SECONDS):
                return (await process.communicate())[0].decode("utf-8", "replace")
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    return ""


def _interval(report: str) -> str | None:
    for line in report.splitlines():
        name, _, value = line.partition(" ")
        if name == "serveraliveinterval":
            return value.strip()
    return None
