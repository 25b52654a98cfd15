"""Entering a shell that runs already with our hooks: one that replaced ours (`exec`), or one inside of it (ssh, su).

Rules of this file: nothing is typed unless a line editor reads at this moment. The hooks are read from a private file
where the shell can see our files. Elsewhere one line asks the shell what it is, and the hooks follow with echo off;
what the shell says of itself then decides how its commands are handed over. The timeline tells of it first, so that
the marks of the other shell are accepted from there on.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from blockpty.engine.machine_state import MachineState
from blockpty.engine.outcome import is_whole
from blockpty.engine.states import ShellState
from blockpty.errors import BadRequest, NoPrompt
from blockpty.host.injection import (
    HANDED_OVER,
    PASTED,
    answer_in,
    asking_line,
    fed_lines,
    hooks_of,
    read_line,
)
from blockpty.model.results import DoneResult
from blockpty.spool.layout import make_private

if TYPE_CHECKING:
    from blockpty.host.client import Inspected
    from blockpty.runtime.channel import ConversationChannel

TYPE_DEADLINE_MS: Final = 5000
REPAIR_SECONDS: Final = 10.0
CHECK_SECONDS: Final = 0.25


def can_repair(state: MachineState, sample: Inspected) -> bool:
    """Whether the shell that replaced ours can be given our hooks without asking a person.

    It has been silent with its line editor on, nothing has been typed since, and it is one that we have hooks for.
    """
    settled = state.tty is not None and state.tty.get("icanon") is False and state.tty.get("foreground") == "shell"
    return settled and sample.icanon is False and may_repair(state, sample)


def may_repair(state: MachineState, sample: Inspected) -> bool:
    """Whether what replaced our shell is one that we have hooks for; it may still be on its way to its prompt."""
    here = sample.foreground == "shell" and _name(sample) in HANDED_OVER
    return state.hooks_lost and here and not state.inputs


async def enter_shell(channel: ConversationChannel, shell: str | None, seconds: float) -> DoneResult:
    """Give the shell that is at a prompt now our hooks, and wait for its first prompt with marks.

    Raises BadRequest (it has them, or no hooks are known for it), NoPrompt (no line editor reads, or no mark came).
    """
    channel.live.pump()
    sample = await channel.host.inspect(channel.id)
    channel.live.pump()
    state = channel.live.state
    block = state.block
    # What has this terminal is the way to a shell elsewhere, whose command is the other shell.
    inside = state.source is not None and block is not None and not is_whole(state.source, block)
    nested = sample.foreground == "child" or inside
    if not state.hooks_lost and state.shell is not ShellState.RUNNING:
        raise BadRequest(
            f"the shell of {channel.id} has its hooks",
            hint="start the other shell first",
            details={"http_status": 409},  # the request is as it should be; the conversation is not
        )
    name = shell or _name(sample)
    if name not in HANDED_OVER:
        raise BadRequest(
            f"{name!r} is not a shell that can load hooks while it runs",
            hint=f"shell names what is at the prompt: {' or '.join(sorted(HANDED_OVER))}",
        )
    if sample.icanon is not False:
        raise NoPrompt(
            f"no line editor reads in {channel.id}", hint="wait until the other shell shows its prompt"
        )
    nonce = secrets.token_urlsafe(16)
    with _private_file(channel) as path:
        by_file = shell is None and sees_our_files(sample.foreground_pid)
        text = hooks_of(name, directory=str(channel.directory), file=str(path), nonce=nonce)
        path.write_bytes(text)
        how = "file" if by_file else "typed"
        begin = channel.cursor
        if not by_file and await ask(channel, pasted=name in PASTED, seconds=seconds) != name:
            raise _no_hooks(channel, name, begin)
        if not nested:
            await channel.host.adopt(channel.id)
        channel.note({"type": "enter", "nonce": nonce, "shell": name, "nested": nested, "how": how})
        await channel.noted()
        line = read_line(name, str(path)) + b"\r" if by_file else fed_lines(text, name)
        shown = False
        try:
            begin = await type_in(channel, line)
            shown = await shows_a_prompt(channel, seconds)
        finally:
            if not shown:
                # Also when the caller has gone: the marks of the shell before must be accepted again.
                channel.note({"type": "leave", "nonce": nonce})
        if not shown:
            await channel.noted()
            raise _no_hooks(channel, name, begin)
    return DoneResult(channel.cursor, how=how)


def _no_hooks(channel: ConversationChannel, name: str, cursor: int) -> NoPrompt:
    return NoPrompt(
        f"the hooks do not show in {channel.id}",
        hint=f"is it {name} that was at the prompt? read returns what it printed; leave that shell, or reset",
        details={"cursor": cursor},
    )


async def ask(channel: ConversationChannel, *, pasted: bool, seconds: float) -> str | None:
    """Ask the shell that reads now what it is: its name, "" for one without hooks; None where nothing answers in time.

    One that has answered reads what is fed to it, and evaluates that; only another one has to be fed nothing.
    """
    live, loop = channel.live, asyncio.get_running_loop()
    token = secrets.token_hex(8)
    begin = await type_in(channel, asking_line(token, pasted=pasted))
    deadline = loop.time() + seconds
    while (left := deadline - loop.time()) > 0 and live.state.shell is not ShellState.EXITED:
        live.pump()
        answer = answer_in(live.stream.read(begin, max(0, channel.cursor - begin)), token)
        if answer is not None:
            if answer not in HANDED_OVER:
                await type_in(channel, fed_lines(b""))
            return answer
        await live.subscribers.changed(min(left, CHECK_SECONDS))
    return None


async def type_in(channel: ConversationChannel, data: bytes) -> int:
    """Type for the engine itself; return the offset at which that is entered."""
    reply = await channel.host.input(
        channel.id, data, author="engine", req=channel.next_request(), deadline_ms=TYPE_DEADLINE_MS,
        epoch=channel.epoch,
    )  # fmt: skip
    return reply.offset


async def shows_a_prompt(channel: ConversationChannel, seconds: float) -> bool:
    """Return whether a shell that was given hooks shows a prompt with them in time, empty or with a line begun."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while True:
        channel.live.pump()
        shell = channel.live.state.shell
        left = deadline - loop.time()
        shown = shell in (ShellState.IDLE, ShellState.EDITING)
        if shown or left <= 0 or shell is ShellState.EXITED:
            return shown
        await channel.live.subscribers.changed(left)


@contextlib.contextmanager
def _private_file(channel: ConversationChannel) -> Iterator[Path]:
    """Give the path of a file, 0600 in a directory of its own, that is gone afterwards."""
    folder = channel.directory / "rc" / secrets.token_hex(4)
    make_private(folder.parent)
    make_private(folder)
    path = folder / "hooks"
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)
        folder.rmdir()


def _name(sample: Inspected) -> str:
    return str(sample.foreground_name or "").lstrip("-")


def sees_our_files(pid: int | None) -> bool:
    """Whether a process has our root directory, our mounts and our user; where that is not known, it has."""
    if pid is None:
        return False
    try:
        process = Path("/proc") / str(pid)
        if not process.parent.is_dir():
            return True
        return (
            process.stat().st_uid == os.geteuid()
            and os.path.samestat((process / "root").stat(), Path("/").stat())
            and os.readlink(process / "ns" / "mnt") == os.readlink("/proc/self/ns/mnt")
        )
    except OSError:
        return False
