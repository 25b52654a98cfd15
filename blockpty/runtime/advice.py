"""Advice on a program that has not ended: what the terminal does, which program has it, and what to do about that.

Rules of this file: it is for the caller that waits, and is no part of the record. It says what is known of now: the
terminal's modes, the processes in its foreground and how long nothing has been printed; never what a program printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from blockpty.engine.states import ShellState
from blockpty.errors import BlockptyError
from blockpty.host.readers import RELAYS
from blockpty.runtime.interruption import KEYS, LINES, plain_name
from blockpty.runtime.status import private_modes, tty_of

if TYPE_CHECKING:
    from blockpty.host.client import Inspected
    from blockpty.runtime.channel import ConversationChannel

# Below this a program counts as one that is printing.
QUIET_MS: Final = 1000
_PAGERS: Final = frozenset({"less", "pager", "more", "most"})
# What ends a full-screen program, in the notation of `send_keys`.
_LEAVES: Final[Mapping[str, str]] = {
    **dict.fromkeys((*_PAGERS, "top", "htop"), "q"),
    **dict.fromkeys((name for name, steps in KEYS.items() if steps[-1:] == (b":qa!\r",)), "[ESC]:qa![ENTER]"),
    **dict.fromkeys((name for name, steps in KEYS.items() if steps[:1] == (b"\x18",)), "^X"),
}


class Standing(NamedTuple):
    """Activity of a program that has not ended: `tty` as in `status`, its name, and what the caller can do."""

    tty: str | None
    foreground: str | None
    hint: str | None


async def standing(channel: ConversationChannel, reason: str) -> Standing:
    """Return what the foreground program is doing now, for a wait that ended with this reason."""
    live = channel.live
    try:
        seen = await channel.host.inspect(channel.id, programs=True)
    except BlockptyError:
        return Standing(tty_of(live.state, live.state.tty), None, None)
    live.pump()
    state, block = live.state, live.state.block
    sample: dict[str, Any] | None = state.tty
    if seen.live and seen.icanon is not None:
        sample = {"icanon": seen.icanon, "echo": seen.echo, "foreground": seen.foreground, "reads": seen.reads}
        sample["wants_input"] = seen.reader is not None
    modes = private_modes(live.stream, block.begin, live.reader.position.offset) if block is not None else frozenset()
    tty = tty_of(state, sample, modes)
    name = seen.reader or seen.foreground_name
    if state.shell is not ShellState.RUNNING:
        return Standing(tty, name, None)
    return Standing(tty, name, advice(seen, tty, reason))


def advice(seen: Inspected, tty: str | None, reason: str) -> str | None:
    """Return what can be done about a program that runs, in one sentence."""
    # The shell itself has it when a builtin reads, which no name of a program says anything about.
    name = (None if seen.foreground == "shell" else seen.reader or seen.foreground_name) or "the command"
    known = plain_name(name)
    asks = seen.reader is not None or reason == "input"
    if tty == "password":
        return f"{name} asks for a password: do not guess it; request_user_input asks a person to type it"
    if tty == "incomplete_input":
        return "the shell waits for the rest of the command: ctrl_c drops it"
    if seen.stopped:
        return f"{name} is stopped: interrupt ends it, `kill -CONT` resumes it"
    if asks and tty in ("reads_line", "running"):
        return f"{name} asks for a line: send_line types it, ctrl_d ends the input"
    if asks and known in _LEAVES:
        return f"{name} waits for a key: send_keys {_LEAVES[known]!r} ends it"
    if asks:
        leave = f"; {LINES[known][0].decode().rstrip()!r} ends it" if known in LINES else ""
        return f"{name} waits for keys: send_line types a line, send_keys keys{leave}"
    if known in RELAYS:
        return (
            f"{name} passes the terminal on, and what waits at its other end is not seen here: "
            "wait for a text, or give its shell hooks with enter_shell"
        )
    if reason == "hooks_lost":
        return None
    quiet = seen.quiet_ms or 0
    if quiet < QUIET_MS:
        return f"{name} runs and prints: keep waiting, or interrupt it"
    return f"{name} runs and has printed nothing for {quiet // 1000} s: keep waiting, or interrupt it"
