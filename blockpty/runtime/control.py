"""Control of one conversation, as its owner keeps it: taken, handed back, leased, halted, and asked for by an agent.

A change holds from the moment it is made here, and is recorded as a note right after; who reads the record only sees
it then. What an agent is typing when it loses control is cut at a byte, before the change is reported as made.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from blockpty.control.principals import ENGINE, Principal
from blockpty.control.state import A_PERSON, ControlState, halted_by
from blockpty.errors import BadRequest, BlockptyError, Exited, Forbidden, UserInControl

if TYPE_CHECKING:
    from blockpty.runtime.controlled import ControlledTerminal
    from blockpty.runtime.gate import Gate

LEASE_SECONDS: Final = 30.0
"""How long control stays with a person whose connection is gone."""
DONE: Final = "done"
CANCELLED: Final = "cancelled"


class ConversationControl:
    """Control of one conversation: who may type.

    Attributes:
        gate: what the home allows agents; None: everything.
    """

    def __init__(self, channel: ControlledTerminal) -> None:
        self._channel = channel
        self.gate: Gate | None = None
        # A change that is made, and not yet in the record as far as it was read.
        self._made: ControlState | None = None
        self._lease: asyncio.TimerHandle | None = None
        # How many connections count for each person who has had control, by principal.
        self._connections: Counter[str | None] = Counter()
        self._numbers = itertools.count(1)
        self._request: tuple[str, asyncio.Future[str]] | None = None

    @property
    def state(self) -> ControlState:
        """Who may type now."""
        recorded = ControlState.from_record(self._channel.live.state.control)
        if self._made is None:
            return recorded
        if replace(recorded, since=None) == replace(self._made, since=None):
            self._made = None
            return recorded
        return self._made

    def check(self, principal: Principal, author: str) -> None:
        """Raise Halted or UserInControl unless this principal may type now, as this author."""
        if self._made is not None or self._channel.live.state.control is not None:
            self.state.check(principal, author)

    async def take(self, principal: Principal, who: str | None, *, shared: bool, lease: bool) -> ControlState:
        """Give control to a person; raises UserInControl when another one has it."""
        _needs_person(principal, "take control")
        # Who has control is looked at after this, which may take a while: another one may have taken it meanwhile.
        await self._channel.own(stopping=True)
        name = who or principal.name
        if self.state.who is not None and (self.state.who, self.state.holder) != (name, principal.name):
            raise self.state.refusal()
        self._keep_lease(None)
        found = replace(self.state, state="shared" if shared else "user", who=name, holder=principal.name, lease=lease)
        await self._set(found, "taken", principal, UserInControl(f"{name} has taken control"))
        return self.state

    async def release(self, principal: Principal, outcome: str = DONE) -> ControlState:
        """Hand control back to agents; any person may, not only the one who holds it."""
        _needs_person(principal, "hand control back")
        await self._release(principal, "released", outcome)
        return self.state

    async def _release(self, principal: Principal, reason: str, outcome: str) -> None:
        self._keep_lease(None)
        if self.state.state != "agent" or self.state.who is not None:
            await self._channel.own(stopping=True)
            await self._set(replace(self.state, state="agent", who=None, holder=None, lease=False), reason, principal)
        self._answer(outcome)

    async def halt(self, principal: Principal) -> None:
        """Have agents type nothing from now on."""
        await self._channel.own(stopping=True)
        found = replace(self.state, halted=principal.name)
        await self._set(found, "halted", principal, halted_by(principal.name))

    async def resume(self, principal: Principal) -> None:
        """Let agents type again."""
        _needs_person(principal, "release what was halted")
        if self.state.halted is not None:
            await self._channel.own(stopping=True)
            await self._set(replace(self.state, halted=None), "resumed", principal)

    async def cut(self, why: BlockptyError) -> None:
        """Stop what an agent is typing."""
        channel = self._channel
        # Of a shell that has ended nothing is typed any more.
        with contextlib.suppress(Exited):
            await channel.host.cut(channel.id, "agent", code=why.code, message=why.message, epoch=channel.epoch)

    def connect(self, holder: str) -> None:
        """Keep control with a person, while that person has it, as long as one of its connections is there."""
        self._connections[holder] += 1
        if self.state.holder == holder:
            self._keep_lease(None)

    def disconnect(self, holder: str) -> None:
        """Begin the lease when the last of these connections is gone."""
        self._connections[holder] -= 1
        if self.state.holder == holder:
            self.begin_lease()

    def begin_lease(self) -> None:
        """Have control go back in a while, unless a connection of the person who has it is there, or comes."""
        if self.state.lease and not self._connections[self.state.holder]:
            self._keep_lease(LEASE_SECONDS)

    def _keep_lease(self, seconds: float | None) -> None:
        if self._lease is not None:
            self._lease.cancel()
        self._lease = None
        if seconds is not None:
            self._lease = asyncio.get_running_loop().call_later(seconds, self._lease_over)

    def _lease_over(self) -> None:
        self._channel.live.tasks.start(self._release(ENGINE, "lease_ended", CANCELLED))

    async def request_input(self, principal: Principal, message: str, seconds: float) -> str:
        """Ask a person to type, and return how that ended: `done`, `cancelled` or `timeout`."""
        if self._request is not None:
            raise BadRequest("a person has been asked to type here already", hint="wait for that call")
        channel = self._channel
        await channel.own()
        name = f"u{channel.epoch}.{next(self._numbers)}"
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._request = name, answer
        outcome = CANCELLED
        try:
            channel.note(
                {
                    "type": "user_input_requested", "request_id": name, "message": message,
                    "timeout_ms": round(seconds * 1000), "principal": principal.name,
                }
            )  # fmt: skip
            if self.state.state == "agent":
                asked = replace(self.state, state="user", who=None)
                await self._set(asked, "requested", principal, UserInControl(f"{A_PERSON} was asked to type"))
            done, _ = await asyncio.wait((answer,), timeout=seconds)
            outcome = answer.result() if done else "timeout"
        finally:
            self._request = None
            channel.note(
                {"type": "user_input_done", "request_id": name, "outcome": outcome, "principal": principal.name}
            )
            if self.state.state == "user" and self.state.who is None:
                self._change(replace(self.state, state="agent"), "released", ENGINE)
        await channel.noted()
        return outcome

    def _answer(self, outcome: str) -> None:
        if self._request is not None and not self._request[1].done():
            self._request[1].set_result(outcome)

    def close(self) -> None:
        """Forget timers; the record keeps who has control."""
        self._keep_lease(None)

    def attached(self) -> None:
        """End what an engine that is gone had asked persons, and begin the lease anew of one who has control."""
        self._made = None
        for name, digest in self._channel.live.state.requests.items():
            self._channel.note(_ended(name, digest))
        if self.state.state == "user" and self.state.who is None:
            # The call that asked for a person is gone with its engine.
            self._change(replace(self.state, state="agent"), "released", ENGINE)
        else:
            self.begin_lease()

    def _change(self, state: ControlState, reason: str, principal: Principal) -> None:
        self._made = state
        if self.gate is not None:
            self.gate.note_control(self._channel.id, principal, state, reason)
        self._channel.note(
            {
                "type": "control", "state": state.state, "who": state.who, "holder": state.holder,
                "halted": state.halted, "lease": state.lease, "reason": reason, "principal": principal.name,
            }
        )  # fmt: skip

    async def _set(
        self, state: ControlState, reason: str, principal: Principal, why: BlockptyError | None = None
    ) -> None:
        """Change who may type, from now on, in what this engine owns; with `why`, agents are cut off."""
        self._change(state, reason, principal)
        if why is not None:
            await self.cut(why)
        await self._channel.noted()


def _ended(name: str, digest: str) -> dict[str, Any]:
    """Return the note that ends a question whose caller is gone."""
    if name.startswith("u"):
        return {"type": "user_input_done", "request_id": name, "outcome": CANCELLED, "principal": ENGINE.name}
    return {
        "type": "approval_decided", "approval_id": name, "verdict": "withdrawn", "scope": None, "digest": digest,
        "reason": "the engine that asked is gone", "principal": ENGINE.name,
    }  # fmt: skip


def _needs_person(principal: Principal, what: str) -> None:
    if not principal.is_person and principal.types_as != "engine":
        raise Forbidden(
            f"only a person may {what}; {principal.name} types as an agent",
            hint="use a token that was made with --types-as user",
        )
