"""Command `blockpty replay`: playback of a conversation in the terminal, and the check that it plays as it was.

What was recorded is drawn on a screen of its own, and of that only cells and colours reach the terminal: a program that
was hostile when it was recorded cannot reach who looks at it. The keys are those of a player; who has no terminal for
input only watches.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from blockpty.surfaces.cli.commands import run_operation
from blockpty.surfaces.cli.completion import offer_conversations
from blockpty.surfaces.cli.invocation import Invocation, anywhere, finished

if TYPE_CHECKING:
    from blockpty.model.replay_frames import Moment
    from blockpty.surfaces.cli.picture import Picture

_DOC: Final = """Play a recorded conversation in the terminal, with the times at which it happened; Ctrl-C ends it.

Keys: space pauses and goes on, n and p go to the next block and the one before, the arrows right and left 5 seconds on
and back, + and - make it faster and slower, q ends it. Only cells and colours reach the terminal, no other control
sequence does. With --verify nothing is played: everything that is derived from the record is compared with it, and the
recorded waits are asked again."""
# Between two pictures, when there is more to show than a person could see.
_LEAST_SECONDS: Final = 1 / 30
_SEEN_SECONDS: Final = 0.02
_JUMP_SECONDS: Final = 5.0


def command() -> click.Command:
    """Return the command."""
    seconds = click.FloatRange(min=0)
    return click.Command(
        "replay",
        params=[
            click.Argument(["conversation_id"], metavar="CONVERSATION_ID", shell_complete=offer_conversations),
            click.Option(
                ["--speed"], type=click.FloatRange(min=0.01), default=1.0, metavar="FACTOR",
                help="How many times as fast as it was. [default: 1]",
            ),
            click.Option(["--idle-limit"], type=seconds, metavar="SECONDS", help="Shorten longer silences to this."),
            click.Option(
                ["--from", "begin"], type=seconds, default=0.0, metavar="SECONDS", help="Begin so long after its begin."
            ),
            click.Option(["--block", "block_id"], metavar="BLOCK_ID", help="Play only this block, such as b7."),
            click.Option(["--step"], is_flag=True, help="Pause where a block begins; space resumes."),
            click.Option(
                ["--verify"], is_flag=True,
                help="Derive everything again, re-run the waits, and report what differs.",
            ),
            *anywhere(),
        ],
        help=_DOC,
        short_help="Play a recorded conversation, or with --verify check it.",
        callback=_replay,
    )  # fmt: skip


@click.pass_obj
def _replay(
    invocation: Invocation, /, conversation_id: str, speed: float, idle_limit: float | None, begin: float,
    block_id: str | None, step: bool, verify: bool,
) -> int:  # fmt: skip
    from blockpty.ops.manifest import manifest

    if verify:
        return finished(run_operation(invocation, manifest()["verify"], {"conversation_id": conversation_id}))
    if invocation.as_json or not sys.stdout.isatty():
        raise click.UsageError("replay plays on a terminal; `blockpty export` gives a recording, --verify compares")
    options = {"speed": speed, "idle_limit": idle_limit, "from_seconds": begin, "block_id": block_id}
    return finished(_played(invocation, conversation_id, options, step))


async def _played(invocation: Invocation, conversation_id: str, options: dict[str, Any], step: bool) -> int:
    async with invocation.open_engine(invocation.home) as engine:
        conversation: Any = await engine.conversation(conversation_id)
        async with conversation.replay(**options) as replay:
            await _TerminalPlayer(replay, step).play()
    return 0


class _TerminalPlayer:
    """A replay on the terminal, and the keys of a player."""

    def __init__(self, replay: Any, step: bool) -> None:
        self._replay = replay
        self._step = step
        self._picture: Picture | None = None
        self._block = ""
        self._drawn = 0.0
        self._undrawn = False
        self._timer: asyncio.TimerHandle | None = None

    async def play(self) -> None:
        from blockpty.surfaces.cli.picture import Picture

        first: Moment = await anext(self._replay)
        loop = asyncio.get_running_loop()
        self._picture = Picture(sys.stdout, first.cols or 80, first.rows or 24)
        try:
            with _keys(loop, self._key):
                last = first
                self._take(first)
                async for moment in self._replay:
                    passed = (moment.at_ms - last.at_ms) / 1000 / (self._replay.speed or 1)
                    if self._undrawn and passed >= _SEEN_SECONDS:
                        # What was seen is shown, however far behind the clock the drawing is.
                        self._draw()
                    self._take(moment)
                    last = moment
                self._draw()
        except _ReplayStopped:
            pass
        finally:
            if self._timer is not None:
                self._timer.cancel()
            self._picture.leave()

    def _take(self, moment: Moment) -> None:
        assert self._picture is not None
        self._picture.take(moment)
        if moment.block is not None:
            self._block = f"{moment.block.block_id} {' '.join(moment.block.cmd.split())}"
            if moment.type == "block_begin" and self._step:
                self._replay.pause()
        self._undrawn = True
        left = self._drawn + _LEAST_SECONDS - asyncio.get_running_loop().time()
        if left <= 0 or moment.type == "screen":
            self._draw()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(left, self._draw)
        if self._replay.paused:
            self._say()

    def _draw(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        assert self._picture is not None
        self._picture.draw()
        self._undrawn, self._drawn = False, asyncio.get_running_loop().time()

    def _say(self) -> None:
        """Say where it stands while it is paused."""
        assert self._picture is not None
        if not self._replay.paused:
            self._picture.say("")
            return
        minutes, seconds = divmod(int(self._replay.position_seconds), 60)
        facts = [" paused", f"{minutes}:{seconds:02}", f"x{self._replay.speed:g}", self._block]
        self._picture.say("  ".join(fact for fact in facts if fact) + " ")

    def _key(self, key: str) -> None:
        replay = self._replay
        if key == " ":
            (replay.resume if replay.paused else replay.pause)()
        elif key in ("n", "p"):
            replay.step(1 if key == "n" else -1)
        elif key in ("\x1b[C", "\x1b[D"):
            replay.seek(max(0.0, replay.position_seconds + (_JUMP_SECONDS if key == "\x1b[C" else -_JUMP_SECONDS)))
        elif key in ("+", "-"):
            replay.speed = min(1024.0, max(1 / 64, (replay.speed or 1) * (2 if key == "+" else 0.5)))
        elif key == "q":
            replay.resume()
            raise _ReplayStopped
        self._say()


class _ReplayStopped(Exception):
    """Who looks has seen enough."""


@contextlib.contextmanager
def _keys(loop: asyncio.AbstractEventLoop, pressed: Any) -> Iterator[None]:
    """Read keys one by one, if there is a terminal to press them on; Ctrl-C stays what it is."""
    import termios
    import tty

    if not sys.stdin.isatty():
        yield
        return
    descriptor, task = sys.stdin.fileno(), asyncio.current_task(loop)
    before = termios.tcgetattr(descriptor)
    ended = False

    def read() -> None:
        nonlocal ended
        data = os.read(descriptor, 64).decode("utf-8", "replace")
        while data:
            key = data[:3] if data.startswith("\x1b[") else data[:1]
            data = data[len(key) :]
            try:
                pressed(key)
            except _ReplayStopped:
                ended = True
                if task is not None:
                    task.cancel()
                return

    tty.setcbreak(descriptor, termios.TCSANOW)
    loop.add_reader(descriptor, read)
    try:
        yield
    except asyncio.CancelledError:
        if not ended:
            raise
        if task is not None:
            task.uncancel()
        raise _ReplayStopped from None
    finally:
        loop.remove_reader(descriptor)
        termios.tcsetattr(descriptor, termios.TCSANOW, before)
