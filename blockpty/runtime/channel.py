"""The way into one terminal: who owns it, what is typed, and what is noted in its timeline.

What types, waits and notes for a conversation is given its channel, and knows nothing of the conversation around it.
"""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from blockpty.control.principals import Principal, current
from blockpty.engine.states import ShellState
from blockpty.engine.views import transform
from blockpty.errors import Busy, RequestError
from blockpty.host.client import Subscribed
from blockpty.model.results import SendResult
from blockpty.redact.secret_prompts import ASKED_WITHIN, asks_for_secret
from blockpty.runtime.control import ConversationControl
from blockpty.runtime.follower import RecordFollower, Replies
from blockpty.runtime.note_queue import NoteQueue
from blockpty.runtime.record_reader import Position
from blockpty.runtime.status import mode_of
from blockpty.runtime.transcript import Transcript
from blockpty.spool.layout import Layout
from blockpty.spool.ownership import Ownership

if TYPE_CHECKING:
    from blockpty.host.client import HostClient
    from blockpty.runtime.gate import Gate

SEND_DEADLINE_MS: Final = 5000
# Ctrl-C, Ctrl-backslash and Ctrl-Z: the host types them on a full disk too, where they stop a program.
STOPPING: Final = b"\x03\x1c\x1a"


class ConversationChannel(Transcript):
    """One terminal's record, its host, and this engine's right to write.

    Attributes:
        host: the connection to the host.
        answering: whether programs that ask their terminal something get a reply.
        requested_size: the size of the last `resize`, and where it stands in the stream; None: there was none.
    """

    def __init__(
        self, conversation_id: str, layout: Layout, live: RecordFollower, host: HostClient,
        ownership: Ownership | None, replies: Callable[[ConversationChannel], Replies], allow_uncovered: bool,
    ) -> None:  # fmt: skip
        super().__init__(conversation_id, layout, live, allow_uncovered)
        self.host = host
        self.answering = True
        self.requested_size: tuple[tuple[int, int], int] | None = None
        self._replies = replies
        self._ownership = ownership
        self._notes = NoteQueue(host, conversation_id)
        self._requests = itertools.count(1)
        # Attaches to the record again, while it is suspended.
        self._resume: Callable[[Any], Awaitable[object]] | None = None
        self.control = ConversationControl(self)

    @property
    def conversation_id(self) -> str:
        """Its name, as results call it."""
        return self.id

    @property
    def shell_id(self) -> str:
        """The shell that runs, or ran last, in it; every `reset` starts another."""
        return f"{self.id}.{self.live.state.instance}"

    @property
    def pid(self) -> int | None:
        """Process id of the shell; None when it has ended."""
        state = self.live.state
        return int(state.pid) if state.pid.isdigit() and state.shell is not ShellState.EXITED else None

    @property
    def mode(self) -> str:
        """The mode that `status` gives."""
        return mode_of(self.live.state)

    @property
    def epoch(self) -> int:
        """This engine's epoch for the conversation; 0 while another engine owns it."""
        return self._ownership.epoch if self._ownership is not None else 0

    @property
    def gate(self) -> Gate | None:
        """What the home allows agents; None: everything."""
        return self.control.gate

    def next_request(self) -> str:
        """Return a name for one input, unique in the conversation."""
        return f"{self.epoch}.{next(self._requests)}"

    def note(self, *notes: Mapping[str, Any]) -> None:
        """Have something recorded in the timeline, if this engine owns the conversation."""
        if self._ownership is not None and not self.live.deriver.replaced():
            for note in notes:
                self._notes.add(note, self.epoch)

    async def noted(self) -> None:
        """Return when every note is in the timeline and has been read."""
        await self._notes.written()
        await self.live.drain()

    async def own(self, *, stopping: bool = False) -> None:
        """Make sure that this engine may write; another one may have gone since.

        `stopping`: for what ends a program or the shell, which must not need room on the disk.
        """
        if self._resume is not None:
            await self._resume(self)
        self.live.check_identity()
        if self.live.deriver.problem is not None and not stopping:
            raise self.live.deriver.problem
        if self._ownership is None:
            self._ownership = Ownership.take(self.layout.lock)
            if self._ownership is None:
                raise Busy(
                    f"another engine owns {self.id}", hint="use that engine, or close it; reading and waiting work here"
                )
            self.live.become_owner()
            await self.live.drain()
            await self._listen()
            self.note({"type": "owner", "epoch": self.epoch, "pictures": True, "control": 1})
            self.control.attached()

    async def _listen(self) -> Subscribed:
        """Follow what comes from now on, and reply to what programs ask the terminal."""
        self.live.answers = self._replies(self)
        return await self.host.subscribe(self.id, self.epoch, self.live.notified)

    async def type(
        self, data: bytes, author: str | None = None, secret: bool = False, *, stored: bool = False
    ) -> SendResult:
        """Type bytes whatever the shell does; the verbs above check first.

        `stored`: it is a stored secret, which the gate has allowed, and which is only typed where it does not show.
        `author`: by default that of the call's principal. Raises Halted, UserInControl and ApprovalDenied.
        """
        return (await self.type_at(data, author, secret, stored=stored))[0]

    async def type_at(
        self, data: bytes, author: str | None = None, secret: bool = False, *, stored: bool = False
    ) -> tuple[SendResult, Position]:
        """Type bytes as `type` does, and return as well where the record goes on behind the input."""
        principal = current()
        if author != "engine":
            author = principal.author(author)
        await self.own(stopping=bool(data) and not data.strip(STOPPING))
        if self.gate is not None and not stored:
            await self.gate.input(self, principal, author, data, secret=secret)
        # From the decision of the gate to the input nothing is awaited.
        self.live.pump()
        program = self.live.state.shell is ShellState.RUNNING
        asked = program and not secret and asks_for_secret(self.last_output())
        self.check_control(principal, author)
        reply = await self.host.input(
            self.id, data, author=author, principal=principal.name, req=self.next_request(),
            deadline_ms=SEND_DEADLINE_MS, epoch=self.epoch, program=program,
            secret="always" if secret else "raw" if asked else None, hidden_only=stored,
        )  # fmt: skip
        self.live.pump()
        if reply.accepted < len(data):
            self._refuse_rest(principal, author, SendResult(reply.offset, reply.accepted))
        return SendResult(reply.offset, reply.accepted), Position(reply.offset, reply.timeline)

    def check_control(self, principal: Principal, author: str) -> None:
        """Raise Halted or UserInControl unless this principal may type now; nothing may be awaited before it types."""
        control = self.control
        control.check(principal, author)
        if control.gate is not None:
            control.gate.check_halted(author)

    def _refuse_rest(self, principal: Principal, author: str, sent: SendResult) -> None:
        """Raise what cut an input short, if that was a person."""
        try:
            self.check_control(principal, author)
        except RequestError as problem:
            problem.details.update(accepted_bytes=sent.accepted_bytes, cursor=sent.cursor)
            raise

    def last_output(self) -> bytes:
        end = self.cursor
        begin = max(self.live.stream.begin, end - ASKED_WITHIN)
        return transform("text", self.live.stream.read(begin, end - begin)) if begin < end else b""
