"""Panes of tmux: which one a target means, how the bridge to it is started, and the size that it has.

Rules of this file: tmux is asked, and nothing of it is changed; the window that a session shows stays the one that it
shows, so a client attaches to the session and not to the target.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from blockpty.engine.states import ShellState
from blockpty.errors import BlockptyError, SpawnFailed
from blockpty.host.shells import ShellPlan
from blockpty.host.sources import plan_bridge

if TYPE_CHECKING:
    from blockpty.runtime.channel import ConversationChannel

ASKED_SECONDS: Final = 10.0
# Control mode has flags of its client and pauses since then.
OLDEST: Final = (3, 2)
# How far behind tmux lets us fall before it drops what we have not read; then the seam is redone.
PAUSE_SECONDS: Final = 10

_FIELDS: Final = "#{session_id} #{pane_id} #{pane_width} #{pane_height} #{version} #{pane_pid} #{pane_tty}"
_VERSION: Final = re.compile(r"(\d+)\.(\d+)")


class Pane(NamedTuple):
    """A pane as its server names it, its size, the process that it was made for, and its terminal."""

    session: str
    pane: str
    cols: int
    rows: int
    pid: int
    tty: str


async def find_pane(plan: ShellPlan, target: str) -> Pane:
    """Return the pane that a target means; raises SpawnFailed with what tmux says."""
    # To display a message no pane is needed; a capture fails where there is none.
    argv = (
        plan.argv[0], "capture-pane", "-p", "-S", "0", "-E", "0", "-t", target,
        ";", "display-message", "-p", "-t", target, _FIELDS,
    )  # fmt: skip
    try:
        process = await asyncio.create_subprocess_exec(
            *argv, env=plan.env, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        try:
            async with asyncio.timeout(ASKED_SECONDS):
                said, refused = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    except (OSError, TimeoutError) as problem:
        raise SpawnFailed(f"tmux does not answer: {problem}", hint="is its server stopped?") from None
    words = said.decode("utf-8", "replace").rstrip("\n").rpartition("\n")[2].split()
    if process.returncode or len(words) != 7 or not words[1].startswith("%"):
        reason = refused.decode("utf-8", "replace").strip() or "there is no such pane"
        raise SpawnFailed(
            f"tmux has no pane for {target[:60]!r}: {reason}",
            hint="`tmux list-panes -a` names them; env TMUX_TMPDIR leads to another server",
        )
    version = _VERSION.search(words[4])
    if version is not None and (int(version[1]), int(version[2])) < OLDEST:
        raise SpawnFailed(f"tmux {words[4]} is too old for this", hint="3.2 and newer work")
    return Pane(words[0], words[1], int(words[2]), int(words[3]), int(words[5]), words[6])


def bridged(plan: ShellPlan, pane: Pane, *, directory: str, instance: int, nonce: str) -> ShellPlan:
    """Return the plan of the bridge to a pane; its settings are in a private file, which it removes."""
    settings = {
        "program": plan.argv[0], "session": pane.session, "pane": pane.pane, "nonce": nonce,
        "pause_after": int(plan.env.get("BLOCKPTY_TMUX_PAUSE", PAUSE_SECONDS)),
    }  # fmt: skip
    return plan_bridge(plan, "tmux_bridge", settings, directory, instance)


async def follow_size(channel: ConversationChannel) -> None:
    """Give our terminal the size of the pane, whenever the bridge says that it is another; ends with the source."""
    live, done = channel.live, 0
    while live.state.shell is not ShellState.EXITED:
        seam = live.state.seam
        if seam is not None and seam["number"] != done:
            done, end = seam["number"], live.state.classified
            await _resize(channel, seam["cols"], seam["rows"])
            # A size that was asked for behind the mark may have been undone by this one before the bridge saw it, so it
            # comes once more. What was asked for before the mark the bridge has seen.
            if (asked := channel.requested_size) is not None and asked[1] >= end:
                channel.requested_size = None
                await _resize(channel, *asked[0])
            continue
        await live.subscribers.changed()


async def _resize(channel: ConversationChannel, cols: int, rows: int) -> None:
    if (cols, rows) != channel.live.state.size:
        try:
            await channel.host.resize(channel.id, cols, rows, author="engine", epoch=channel.epoch)
        except BlockptyError:
            # It has ended, another engine has it now, or the disk is full.
            pass
        channel.live.pump()
