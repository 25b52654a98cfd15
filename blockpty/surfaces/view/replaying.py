"""The replay of one conversation: its screen at every moment, with the recorded times, and nothing that can be typed.

Rules of this file: what is shown comes from the server's player, which this asks to pause, seek and step.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from blockpty.errors import BlockptyError
from blockpty.surfaces.live_socket import ConnectionChange, LiveSocket
from blockpty.surfaces.view.keys import replay_bindings
from blockpty.surfaces.view.strips import fitted, safe
from blockpty.surfaces.view.terminal import TerminalView
from blockpty.surfaces.view.words import clock

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from blockpty.surfaces.view.theme import Colours

STEP_SECONDS: Final = 5.0
IDLE_LIMIT_SECONDS: Final = 1.0
SPEEDS: Final = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)


async def _no_acknowledgement(cursor: int) -> None:
    """A player sends at the recorded times, not as fast as it is taken."""


class ReplayView(ModalScreen[None]):
    """A player.

    Args:
        client: a client of the server.
        conversation_id: what is played.
        cursor: where it begins.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        *replay_bindings(),
        Binding("j", "step(1)", "next block"),
        Binding("k", "step(-1)", "previous block"),
        Binding("escape,r,q", "dismiss", "close"),
    ]
    CSS = """
    ReplayView { align: center middle; }
    ReplayView > Vertical { width: 100%; height: 100%; background: $term; padding: 0 1; }
    ReplayView #times { height: 2; background: $surface; color: $muted; }
    """

    def __init__(self, client: Any, conversation_id: str, cursor: int, colours: Colours) -> None:
        super().__init__()
        self.at_ms = 0
        self.duration_ms = 0
        self.playing = True
        self.ended = False
        self.speed = 1.0
        self.cursor = cursor
        self._conversation = conversation_id
        self._colours = colours
        self._ts = 0
        self._block = ""
        self._tag = self._turned = 0
        self._following: asyncio.Task[None] | None = None
        self._socket = LiveSocket(client, self._target)

    def compose(self) -> ComposeResult:
        """Make the parts."""
        with Vertical():
            self.shown = TerminalView(_no_acknowledgement)
            yield self.shown
            self.times = Static("", id="times", markup=False)
            yield self.times

    def on_mount(self) -> None:
        """Begin to play."""
        self.shown.recolour(self._colours)
        self.shown.set_caption(f"Replay of {safe(self._conversation)}")
        self._following = asyncio.create_task(self._follow())

    async def on_unmount(self) -> None:
        """Leave the player."""
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
        await self._socket.close()

    def _target(self) -> str:
        return f"/v1/conversations/{self._conversation}/replay?idle_limit={IDLE_LIMIT_SECONDS:g}&speed={self.speed:g}"

    async def _follow(self) -> None:
        try:
            await self._socket.open()
        except BlockptyError as problem:
            self.times.update(safe(str(problem)))
            return
        frames = cast("AsyncGenerator[Any, None]", self._socket.frames())
        async with contextlib.aclosing(frames):
            async for frame in frames:
                if isinstance(frame, ConnectionChange):
                    self.times.update("" if frame.live else "The connection is lost; trying again.")
                elif isinstance(frame, Mapping):
                    await self._take(frame)

    async def _take(self, frame: Mapping[str, Any]) -> None:
        kind = frame["type"]
        if kind == "hello":
            self.duration_ms = round(frame["duration_seconds"] * 1000)
            # What an earlier connection was asked for never comes on this one.
            self._turned = self._tag
            if not self.playing:
                await self._socket.send({"type": "pause"})
            if self.cursor:
                await self._seek({"cursor": self.cursor})
        elif kind == "turned":
            self._turned = frame["tag"]
        elif kind == "end" and self._turned >= self._tag:
            # An end from before the last seek says nothing: the player has yet to go there.
            self.ended, self.playing = True, False
            await self._socket.send({"type": "pause"})
        elif kind == "error":
            self.times.update(safe(str(frame["error"]["message"])))
            return
        elif kind != "end" and self._turned >= self._tag:
            self._show(frame)
        self._say()

    def _show(self, moment: Mapping[str, Any]) -> None:
        self.at_ms, self._ts, self.cursor = moment["at_ms"], moment["ts"], moment["cursor"]
        if moment.get("block") is not None:
            self._block = str(moment["block"].get("cmd") or moment["block"].get("kind"))
        data = moment.get("data")
        content = base64.b64decode(moment["data_b64"]) if "data_b64" in moment else str(data or "").encode()
        if moment["type"] == "screen":
            text = content.decode("utf-8", "replace")
            self.shown.take({**moment, "data": text})
        elif moment["type"] == "resize":
            self.shown.take(moment)
        elif moment["type"] == "output":
            self.shown.take(content)

    def _say(self) -> None:
        width = max(20, self.size.width - 4)
        at = min(1.0, self.at_ms / max(1, self.duration_ms))
        line = "━" * round(at * (width - 1)) + "●"
        text = Text(no_wrap=True, overflow="ellipsis", end="")
        text.append(line, self._colours.accent)
        text.append("─" * max(0, width - len(line)), self._colours.line2)
        state = "▶" if self.playing else "■" if self.ended else "‖"
        words = f"\n{state} {_minutes(self.at_ms)} / {_minutes(self.duration_ms)}  {clock(self._ts)}  {self.speed:g}×"
        text.append(f"{words}  cursor {self.cursor:,}  ", self._colours.text)
        text.append(fitted(safe(self._block), 60), self._colours.muted)
        self.times.update(text)

    async def _seek(self, to: Mapping[str, Any]) -> None:
        self.ended = False
        self._tag += 1
        await self._socket.send({"type": "seek", **to, "tag": self._tag})

    async def action_play_pause(self) -> None:
        """Play, or pause; from the end it begins again."""
        if not self.playing and self.ended:
            await self._seek({"seconds": 0})
        self.playing = not self.playing
        await self._socket.send({"type": "resume" if self.playing else "pause"})
        self._say()

    async def action_earlier(self) -> None:
        """Go five seconds back."""
        await self._seek({"seconds": max(0.0, self.at_ms / 1000 - STEP_SECONDS)})

    async def action_later(self) -> None:
        """Go five seconds on."""
        await self._seek({"seconds": min(self.duration_ms / 1000, self.at_ms / 1000 + STEP_SECONDS)})

    async def action_step(self, by: int) -> None:
        """Go to the next block, or to the one before."""
        self.ended = False
        self._tag += 1
        await self._socket.send({"type": "step", "blocks": by, "tag": self._tag})

    async def action_slower(self) -> None:
        """Play at half the speed."""
        await self._change_speed(-1)

    async def action_faster(self) -> None:
        """Play at twice the speed."""
        await self._change_speed(1)

    async def _change_speed(self, by: int) -> None:
        at = SPEEDS.index(self.speed) + by
        if 0 <= at < len(SPEEDS):
            self.speed = SPEEDS[at]
            await self._socket.send({"type": "speed", "speed": self.speed})
            self._say()


def _minutes(ms: int) -> str:
    seconds = ms // 1000
    hours = f"{seconds // 3600}:" if seconds >= 3600 else ""
    return f"{hours}{seconds // 60 % 60:02}:{seconds % 60:02}"
