"""Offers of our hooks to shells that we have not started, and that look for one: those with `blockpty shell-init`.

    <home>/shells/<pid>         written by such a shell when it starts: its name
    <home>/shells/<pid>.offer   written by an engine, 0600: hooks with a nonce of their own, which that shell takes at
                                its next prompt

Rules of this file: the timeline tells of an offer first; the shell's HELLO, with the nonce of the offer, says that it
was taken. Nothing is typed but a key of our own, and only where the shell itself has its terminal and edits a line.
"""

from __future__ import annotations

import os
import secrets
import termios
from pathlib import Path
from typing import TYPE_CHECKING, Final

from blockpty.engine.states import ShellState
from blockpty.files.replacing import replace_whole
from blockpty.host.injection import INIT_KEYS, offered_hooks
from blockpty.runtime.shell_entry import sees_our_files, shows_a_prompt, type_in
from blockpty.spool.layout import shells_directory

if TYPE_CHECKING:
    from blockpty.runtime.channel import ConversationChannel
    from blockpty.runtime.tmux_panes import Pane

# How long a shell that edits its line may take to show a prompt with marks.
TAKEN_SECONDS: Final = 5.0
_LOCAL_MODES: Final = 3


async def offer_hooks(channel: ConversationChannel, pane: Pane) -> None:
    """Offer our hooks to the shell in a pane that looks for them; return when it has them, or will take them later.

    Cancelling leaves the offer.
    """
    live, state = channel.live, channel.live.state
    instance = state.instance
    while not (state.seam is not None and state.seam["drawn"]):
        # What a shell prints before that is not seen.
        if state.shell is ShellState.EXITED or state.instance != instance:
            return
        await live.subscribers.changed()
        live.pump()
        state = live.state
    directory = shells_directory(channel.layout.directory.parents[1])
    front = _foreground(pane.pid)
    found = [pid for pid in (front, pane.pid) if pid is not None and _known(directory, pid) is not None]
    if not found:
        return
    pid = found[0]
    shell, path = _known(directory, pid) or "", directory / f"{pid}.offer"
    nonce = secrets.token_urlsafe(16)
    channel.note({"type": "offer", "nonce": nonce, "shell": shell, "pid": pid})
    await channel.noted()
    text = offered_hooks(shell, directory=str(channel.directory), file=str(path), nonce=nonce)
    replace_whole(str(path), text, 0o600, 0o077)
    if pid == front and _edits(pane.tty):
        await type_in(channel, INIT_KEYS[shell])
        await shows_a_prompt(channel, TAKEN_SECONDS)
    live.tasks.start(_withdraw(channel, path))


async def _withdraw(channel: ConversationChannel, path: Path) -> None:
    """Remove the file of an offer when it was taken, or when the terminal is gone."""
    live = channel.live
    while live.state.offered is not None and live.state.shell is not ShellState.EXITED:
        await live.subscribers.changed()
        live.pump()
    path.unlink(missing_ok=True)


def _known(directory: Path, pid: int) -> str | None:
    """Return which shell a process is that looks for offers; None where it is none, or not with our files."""
    try:
        name = (directory / str(pid)).read_text("ascii", "replace").strip()
        program = Path(f"/proc/{pid}/comm").read_text("utf-8", "replace").strip()
    except OSError:
        return None
    # The number may be that of another program by now.
    return name if name in INIT_KEYS and name == program and sees_our_files(pid) else None


def _foreground(pid: int) -> int | None:
    """Return the process group that has the terminal of a process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return int(fields[5]) if len(fields) > 5 and fields[5].isdigit() else None


def _edits(terminal: str) -> bool:
    """Whether what reads from a terminal takes keys as they come, and draws them itself."""
    try:
        descriptor = os.open(terminal, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not termios.tcgetattr(descriptor)[_LOCAL_MODES] & (termios.ICANON | termios.ECHO)
    except termios.error:
        return False
    finally:
        os.close(descriptor)
