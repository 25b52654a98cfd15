"""Command `blockpty attach`: a conversation's live screen on this terminal, and what is typed here sent to it.

What the program prints is drawn on an emulator of our own, and of that only cells and colours reach the terminal, as
with `replay`: no program can reach the terminal of the person who looks at it. The modes that decide what keys send
(arrow keys, bracketed paste, the mouse) are set on the terminal as the program has set them, and reset on leaving.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

import click

from blockpty.surfaces.cli.completion import offer_conversations
from blockpty.surfaces.cli.invocation import Invocation, anywhere, finished

if TYPE_CHECKING:
    from blockpty.surfaces.cli.picture import Picture
    from blockpty.surfaces.cli.prefix_keys import PrefixKeys
    from blockpty.surfaces.live_socket import ConnectionChange

TERMINAL_GONE: Final = "the terminal has gone"
"""What `Attachment.run` returns when its own terminal is no more."""
_LEAST_SECONDS: Final = 1 / 60
_SAID_SECONDS: Final = 3.0
_REJOIN_SECONDS: Final = 10.0
_REJOIN_PAUSE_SECONDS: Final = 0.25
_READ_BYTES: Final = 16 * 1024
_HELP: Final = (
    "d: detach  t: take or ask for control  h: hand back  k: keep it  a: answer questions  s: stop everything  "
    "{key}: send it"
)
_FRAMES: Final = {"t": "ask_control", "h": "release_control", "k": "keep_control"}
_CONTROL: Final = {
    "user": "you have control: no agent can type", "agent": "agents may type", "shared": "you and agents may type",
}  # fmt: skip

_DOC: Final = """Show the live screen of a conversation on this terminal, and type into it.

The program goes on when you leave. Keys go to the program; after the prefix key (Ctrl+] unless --keys names another)
d detaches, t takes control so that no agent can type, or asks another person for it, h hands it back, k keeps it from a
person who asks, a shows what waits for your answer, s stops the agent and the program, ? lists these keys, and the
prefix key again sends itself. With --read-only nothing is typed.

A screen that is larger than this terminal is shown in part, around the cursor. With --fit the program gets the size of
this terminal, now and whenever it changes."""


def command() -> click.Command:
    """Return the command."""
    return click.Command(
        "attach",
        params=[
            click.Argument(["conversation_id"], metavar="CONVERSATION_ID", shell_complete=offer_conversations),
            click.Option(["--fit"], is_flag=True, help="Give the program the size of this terminal."),
            click.Option(
                ["--keys", "prefix"], default="^]", metavar="KEY", show_default=True,
                help="The prefix key: ^ and a letter or one of @[\\]^_.",
            ),
            *anywhere(),
        ],
        help=_DOC,
        short_help="Show a conversation's live screen, and type into it.",
        callback=_attach,
    )  # fmt: skip


@click.pass_obj
def _attach(invocation: Invocation, /, conversation_id: str, fit: bool, prefix: str) -> int:
    from blockpty.ops.table import find
    from blockpty.surfaces.cli.prefix_keys import control_key

    key = control_key(prefix)
    if key is None:
        raise click.UsageError(f"--keys {prefix}: not ^ and a letter or one of @[\\]^_")
    if invocation.as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError("attach needs a terminal; without one, use `tail`, `screen` and `send`")
    if fit:
        invocation.check(find("resize"))
    find("status").parse({"conversation_id": conversation_id})
    return finished(_attached(invocation, conversation_id, fit, key))


async def _attached(invocation: Invocation, conversation_id: str, fit: bool, key: bytes) -> int:
    async with invocation.open_engine(invocation.home) as engine:
        attachment = Attachment(invocation, engine, conversation_id, key, fit=fit)
        said = await attachment.run()
    invocation.screen().note(f"blockpty: {said}")
    return 0


class Attachment:
    """One terminal that shows a conversation.

    Args:
        invocation: says whether it may type, and shows the questions of agents.
        engine: a client of the server.
        conversation_id: what is shown.
        prefix: the byte after which a key is for us.
        fit: whether the program gets the size of this terminal.
    """

    def __init__(
        self, invocation: Invocation, engine: Any, conversation_id: str, prefix: bytes, *, fit: bool
    ) -> None:  # fmt: skip
        from blockpty.surfaces.cli.prefix_keys import PrefixKeys
        from blockpty.surfaces.live_socket import LiveSocket, conversation_target

        self._invocation = invocation
        self._engine = engine
        self._id = conversation_id
        self._fit = fit
        self._prefix_name = f"^{chr(prefix[0] ^ 0x40)}"
        self._question = f"an agent asks for approval: {self._prefix_name} a answers"
        self._keys: PrefixKeys = PrefixKeys(prefix)
        self._picture: Picture | None = None
        self._socket = LiveSocket(
            engine, lambda: conversation_target(conversation_id), lambda: itertools.repeat(_REJOIN_PAUSE_SECONDS)
        )
        self._lost_at: float | None = None
        self._terminal = _RawTerminal()
        self._drawing: asyncio.TimerHandle | None = None
        self._unsaying: asyncio.TimerHandle | None = None
        # Whether the question of an agent is said while there is nothing else to say.
        self._is_asked = False
        # Who has control, where that is the person at this terminal, up to which event that is known, and who asks.
        self._holder: str | None = None
        self._control_seq = 0
        self._askers: list[str] = []
        self._drawn = 0.0
        self._wanted: asyncio.Queue[bytes | dict[str, Any] | Callable[[], Any]] = asyncio.Queue()
        self._ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def run(self) -> str:
        """Show the conversation until one leaves; return what to say about how that came."""
        loop = asyncio.get_running_loop()
        # Joined before the terminal changes, so that an error is shown as any other.
        await self._socket.open()
        self._joined()
        with self._terminal.raw(), self._signals(loop):
            tasks: list[asyncio.Future[Any]] = [
                asyncio.ensure_future(self._receive()), asyncio.ensure_future(self._send())
            ]
            loop.add_reader(sys.stdin.fileno(), self._typed)
            try:
                await asyncio.wait((*tasks, self._ended), return_when=asyncio.FIRST_COMPLETED)
            finally:
                loop.remove_reader(sys.stdin.fileno())
                for timer in (self._drawing, self._unsaying):
                    if timer is not None:
                        timer.cancel()
                for task in tasks:
                    task.cancel()
                results = await asyncio.gather(*tasks, return_exceptions=True)
                if self._picture is not None:
                    self._picture.leave(keep=False)
                await self._socket.close()
        for problem in results:
            if isinstance(problem, Exception):
                raise problem
        return self._ended.result() if self._ended.done() else "detached"

    @contextlib.contextmanager
    def _signals(self, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
        handlers: dict[int, Callable[[], object]] = {
            signal.SIGWINCH: self._resized,
            signal.SIGTERM: lambda: self._leave("ended by SIGTERM"),
            signal.SIGHUP: lambda: self._leave(TERMINAL_GONE),
        }
        for number, handler in handlers.items():
            loop.add_signal_handler(number, handler)
        try:
            yield
        finally:
            for number in handlers:
                loop.remove_signal_handler(number)

    # -- what is shown ----------------------------------------------------------------------------------------------

    def _joined(self) -> None:
        if self._fit:
            self._wanted.put_nowait(self._size())
        if not self._invocation.read_only:
            self._wanted.put_nowait(self._look_for_questions)

    async def _receive(self) -> None:
        from blockpty.surfaces.live_socket import ConnectionChange

        cursor = 0
        async with contextlib.aclosing(cast("AsyncGenerator[Any, None]", self._socket.frames())) as frames:
            async for frame in frames:
                if isinstance(frame, bytes):
                    assert self._picture is not None
                    self._picture.feed(frame)
                    cursor += len(frame)
                    await self._socket.acknowledge(cursor)
                    self._draw_soon()
                elif isinstance(frame, ConnectionChange):
                    if self._ended.done() or not self._connection(frame):
                        return
                else:
                    self._take(frame)
                    if frame.get("type") == "screen":
                        cursor = frame["cursor"]
                        await self._socket.acknowledge(cursor)
        self._leave("the server has closed the connection")

    def _connection(self, change: ConnectionChange) -> bool:
        """Say what became of the connection; return whether to wait for it, as for a server that was restarted."""
        now = asyncio.get_running_loop().time()
        if change.live:
            self._lost_at = None
            self._joined()
            self._say("connected again")
        elif self._lost_at is None:
            self._lost_at = now
            self._say("the connection is lost; trying again", stays=True)
        elif now > self._lost_at + _REJOIN_SECONDS:
            self._leave(f"the connection is lost: {change.problem}")
            return False
        return True

    def _take(self, content: Mapping[str, Any]) -> None:
        from blockpty.surfaces.cli.picture import Picture

        kind = content.get("type")
        if kind == "screen":
            is_first = self._picture is None
            if self._picture is None:
                self._picture = Picture(sys.stdout, content["cols"], content["rows"])
            self._picture.join(content["cols"], content["rows"], content["data"].encode())
            if is_first:
                # A question may have been found before there was a picture to say it on.
                self._say("")
            self._compare(content["cols"], content["rows"])
        elif kind == "resize" and self._picture is not None:
            self._picture.resize(content["cols"], content["rows"], fresh=False)
            self._compare(content["cols"], content["rows"])
        elif kind == "restart" and self._picture is not None:
            self._picture.feed(content["data"].encode())
        elif kind == "event" and content["event"]["type"] == "approval_requested":
            self._is_asked = True
            self._say("")
        elif kind == "event" and content["event"]["type"] == "approval_decided":
            self._wanted.put_nowait(self._look_for_questions)
        elif kind in ("control", "watchers", "asking") or (kind == "event" and content["event"]["type"] == "control"):
            self._take_control(content)
        elif kind == "error":
            self._say(f"{content['error']['message']} ({content['error']['code']})")
        elif kind == "end":
            self._leave("the shell has ended")
        self._draw_soon()

    def _take_control(self, content: Mapping[str, Any]) -> None:
        """Take what is said of who has control, and of who asks for it."""
        kind = content["type"]
        if kind == "control":
            self._holder, self._control_seq = content["who"], content["seq"]
            self._say(_CONTROL.get(content["control"], content["control"]))
        elif kind == "asking" and content["state"] != "ended":
            does = "has control, and is asked for it" if content["state"] == "waits" else "keeps control"
            self._say(f"{content['who']} {does}")
        elif kind == "watchers" and content["asking"] != self._askers:
            self._askers = content["asking"]
            self._say("")
        elif kind == "event" and content["event"]["state"] == "agent" and content["event"]["seq"] >= self._control_seq:
            # An earlier one has been overtaken by an answer.
            self._holder = None
            self._say("")

    def _compare(self, cols: int, rows: int) -> None:
        """Say when this terminal cannot show the whole screen."""
        columns, lines = os.get_terminal_size(sys.stdout.fileno())
        if not self._fit and (cols > columns or rows > lines):
            self._say(f"the screen is {cols}x{rows}, of which the part around the cursor is shown; --fit changes it")

    def _draw_soon(self) -> None:
        loop = asyncio.get_running_loop()
        left = self._drawn + _LEAST_SECONDS - loop.time()
        if left <= 0:
            self._draw()
        elif self._drawing is None:
            self._drawing = loop.call_later(left, self._draw)

    def _draw(self) -> None:
        if self._drawing is not None:
            self._drawing.cancel()
            self._drawing = None
        if self._picture is not None and not self._terminal.lent:
            self._picture.draw()
            self._terminal.follow(self._picture.modes)
            self._drawn = asyncio.get_running_loop().time()

    def _say(self, text: str, *, stays: bool = False) -> None:
        if self._unsaying is not None:
            self._unsaying.cancel()
            self._unsaying = None
        if self._picture is not None and not self._terminal.lent:
            said = text or self._asks_for_control() or (self._question if self._is_asked else "")
            self._picture.say(f" {said} " if said else "")
            if text and not stays:
                self._unsaying = asyncio.get_running_loop().call_later(_SAID_SECONDS, self._say, "")

    def _asks_for_control(self) -> str:
        names = [name for name in self._askers if name != self._holder]
        if self._holder is None or not names:
            return ""
        return f"{names[0]} asks for control: {self._prefix_name} h hands it over, {self._prefix_name} k keeps it"

    def _resized(self) -> None:
        if self._fit:
            self._wanted.put_nowait(self._size())
        self._draw()

    def _size(self) -> dict[str, Any]:
        columns, lines = os.get_terminal_size(sys.stdout.fileno())
        return {"type": "resize", "cols": columns, "rows": lines}

    def _leave(self, why: str) -> None:
        if not self._ended.done():
            self._ended.set_result(why)

    # -- what is typed ----------------------------------------------------------------------------------------------

    def _typed(self) -> None:
        try:
            data = os.read(sys.stdin.fileno(), _READ_BYTES)
        except OSError:
            data = b""
        if not data:
            self._leave(TERMINAL_GONE)
            return
        for piece in self._keys.take(data):
            if isinstance(piece, bytes):
                self._type(piece)
            elif piece.command == "":
                self._say(_HELP.format(key=self._prefix_name), stays=True)
            else:
                # Who presses a key has seen the question, and may want the row that it covers.
                self._is_asked, self._askers = False, []
                self._say("")
                self._command(piece.command)

    def _type(self, data: bytes) -> None:
        if self._invocation.read_only:
            self._say("read-only: nothing is typed")
        else:
            self._wanted.put_nowait(data)

    def _command(self, key: str) -> None:
        if key == "d":
            self._leave("detached")
        elif key in ("t", "h", "k", "s", "a") and self._invocation.read_only:
            self._say("read-only: it shows, and does nothing else")
        elif key in _FRAMES:
            self._wanted.put_nowait({"type": _FRAMES[key]})
        elif key == "s":
            self._wanted.put_nowait(self._halt)
        elif key == "a":
            self._wanted.put_nowait(self._answer)
        elif key == "?":
            self._say(_HELP.format(key=self._prefix_name), stays=True)

    async def _send(self) -> None:
        from blockpty.errors import BlockptyError

        while True:
            wanted = await self._wanted.get()
            try:
                if callable(wanted):
                    await wanted()
                else:
                    await self._socket.send(wanted)
            except BlockptyError as problem:
                self._say(str(problem))

    async def _halt(self) -> None:
        conversation = await self._engine.conversation(self._id)
        await conversation.halt()
        self._say("halted: agents may not type until `blockpty release` or a page releases it")

    async def _look_for_questions(self) -> None:
        before, self._is_asked = self._is_asked, bool((await self._engine.approvals(self._id)).approvals)
        if self._is_asked != before:
            self._say("")

    async def _answer(self) -> None:
        """Lend the terminal to the questions of agents, as `blockpty answer` asks them."""
        from blockpty.surfaces.cli.answer import Interview

        assert self._picture is not None
        loop = asyncio.get_running_loop()
        loop.remove_reader(sys.stdin.fileno())
        self._picture.leave(keep=False)
        try:
            with self._terminal.cooked():
                interview = Interview(self._engine, self._invocation.screen(), self._id)
                while (question := await interview.next()) is not None and await interview.ask(question):
                    pass
        finally:
            self._picture.enter()
            self._draw()
            loop.add_reader(sys.stdin.fileno(), self._typed)
        await self._look_for_questions()


class _RawTerminal:
    """The terminal that attach runs on: raw, and with the modes of the program that is shown.

    Attributes:
        lent: it is not raw at the moment; something else asks on it.
    """

    def __init__(self) -> None:
        from blockpty.screen.protocol import Modes

        self.lent = False
        self._modes = self._none = Modes()

    @contextlib.contextmanager
    def raw(self) -> Iterator[None]:
        """Have every key come as it is pressed."""
        import termios
        import tty

        descriptor = sys.stdin.fileno()
        before = termios.tcgetattr(descriptor)
        tty.setraw(descriptor, termios.TCSANOW)
        try:
            yield
        finally:
            self.follow(self._none)
            termios.tcsetattr(descriptor, termios.TCSANOW, before)

    @contextlib.contextmanager
    def cooked(self) -> Iterator[None]:
        """Have it for a while as a program without a screen expects it."""
        import termios

        descriptor = sys.stdin.fileno()
        before = termios.tcgetattr(descriptor)
        self.follow(self._none)
        self.lent = True
        cooked = [*before]
        cooked[0] |= termios.ICRNL
        cooked[1] |= termios.OPOST
        cooked[3] |= termios.ICANON | termios.ECHO | termios.ISIG
        termios.tcsetattr(descriptor, termios.TCSANOW, cooked)
        try:
            yield
        finally:
            termios.tcsetattr(descriptor, termios.TCSANOW, before)
            self.lent = False

    def follow(self, modes: Any) -> None:
        """Set the modes that decide what keys send."""
        from blockpty.surfaces.cli.key_modes import change

        if (text := change(self._modes, modes)) != "":
            sys.stdout.write(text)
            sys.stdout.flush()
        self._modes = modes
