"""Gate of a home: what agents may do here, by its policy, by the verdicts of persons, and unless they are halted.

A decision is made right before something is typed, with nothing awaited in between, and from what is true then. Where
a person has to allow it, the call waits outside of any turn, and the decision is made again afterwards: if directory or
program have changed meanwhile, what was allowed is not what would happen now.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import secrets
import time
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from blockpty.control.approvals import Approval, digest_of, visible
from blockpty.control.principals import Principal, current
from blockpty.control.state import ControlState, halted_by
from blockpty.errors import ApprovalDenied, ApprovalRequired, BadRequest, BlockptyError
from blockpty.redact.secret_prompts import asks_for_secret
from blockpty.runtime.approvals import Answer, ApprovalBook
from blockpty.runtime.halt_file import HaltFile
from blockpty.runtime.policy_file import PolicyFile
from blockpty.runtime.status import inspect_in_step, tty_of
from blockpty.runtime.stored_secrets import first_line
from blockpty.spool.audit_log import AuditLog, digest_fields

if TYPE_CHECKING:
    from blockpty.control.policy import Policy, Question, Verdict
    from blockpty.runtime.controlled import ControlledTerminal

AGENT: Final = "agent"
# Keys that enter a line, or drop what is there of it.
LINE_KEYS: Final = b"\r\n\x03\x15"
# The same, where they end a line: behind a backslash it goes on.
_LINE_END: Final = re.compile(r"(?<!\\)(?:\\\\)*[\r\n]|[\x03\x15]")
# What stands for the beginning of a line that was too long to be remembered; no command has it in it.
_FORGOTTEN: Final = "\0"
# Of a line that is typed in pieces, so much is remembered.
LONGEST_LINE: Final = 65_536


class ApprovalNeeded(Exception):
    """A person has to allow something first; it never leaves the runtime."""

    def __init__(self, question: Question, verdict: Verdict) -> None:
        super().__init__(verdict.reason)
        self.question = question
        self.verdict = verdict


class Gate:
    """Gate of one home: what agents may do.

    Args:
        home: has `policy.toml`, if there is one.
        audit: gets an entry for each verdict.

    Attributes:
        book: what waits for a person.
    """

    def __init__(self, home: Path, audit: AuditLog) -> None:
        self._policy = PolicyFile(home)
        self._halt = HaltFile(home)
        self._audit = audit
        self.book = ApprovalBook(self._policy.add)
        # What was allowed for a conversation as long as this engine runs, and of what kinds anything was allowed.
        self._allowed: set[tuple[str, str]] = set()
        self._kinds: dict[str, frozenset[str]] = {}
        # What agents have typed of a line that has not been entered.
        self._lines: dict[str, str] = {}
        self._numbers = itertools.count(1)
        # A digest of a secret must not let one guess it.
        self._key = secrets.token_bytes(32)

    @property
    def policy(self) -> Policy | None:
        """The policy that holds now; None without a file. Raises BadRequest for a file that is none."""
        return self._policy.current()

    # -- halted everywhere ----------------------------------------------------------------------------------------

    def check_halted(self, author: str) -> None:
        """Raise Halted for an agent, while agents are halted in all conversations."""
        who = self._halt.who()
        if who is not None and author == AGENT:
            raise halted_by(who, everywhere=True)

    def halt(self, principal: Principal) -> None:
        """Have agents type nothing in any conversation of the home, whichever engine has it, until `release`."""
        self._halt.set(principal.name)
        self._audit.add("control", principal=principal.name, reason="halted", halted=principal.name)

    def release(self, principal: Principal) -> None:
        """Let agents type again, where they are not halted in one conversation."""
        self._halt.clear()
        self._audit.add("control", principal=principal.name, reason="resumed", halted=None)

    @property
    def halted(self) -> str | None:
        """Who halted agents in all conversations; None when they may type."""
        return self._halt.who()

    def note_control(self, conversation_id: str, principal: Principal, state: ControlState, reason: str) -> None:
        """Enter in the audit log who may type from now on."""
        self._audit.add(
            "control", principal=principal.name, conversation_id=conversation_id, reason=reason, state=state.state,
            who=state.who, halted=state.halted,
        )  # fmt: skip

    def forget(self, conversation_id: str) -> None:
        """Drop what was allowed for a conversation that is no more: another one may get its name."""
        self._allowed = {one for one in self._allowed if one[0] != conversation_id}
        self._kinds.pop(conversation_id, None)
        self._lines.pop(conversation_id, None)

    # -- decisions ------------------------------------------------------------------------------------------------

    def check_command(
        self, channel: ControlledTerminal, principal: Principal, author: str, operation: str, command: str,
        cwd: str | None, granted: AbstractSet[Question],
    ) -> None:  # fmt: skip
        """Return when this command may be typed now; raises ApprovalNeeded and ApprovalDenied.

        `granted`: what a person has allowed in this call.
        """
        policy = self._policy.current() if author == AGENT else None
        if policy is None:
            return
        from blockpty.control.policy import Right

        question = self._question(Right.EXEC, channel, principal, author, operation, command)
        if cwd is not None:
            moved = os.path.normpath(os.path.join(question.cwd or "/", cwd))
            question = replace(question, cwd=moved, conversation_cwd=question.cwd)
        self._decide(policy, channel, question, granted)
        self._lines.pop(channel.id, None)

    async def input(
        self, channel: ControlledTerminal, principal: Principal, author: str, data: bytes, *, secret: bool
    ) -> None:  # fmt: skip
        """Return when this input may be typed into what runs now; raises ApprovalDenied, and Halted meanwhile."""
        if author != AGENT or self._policy.current() is None:
            return
        from blockpty.control.policy import may_be_commands

        granted: set[Question] = set()
        while True:
            channel.check_control(principal, author)
            policy = self._policy.current()
            if policy is None:
                return
            question = await self._input_question(channel, principal, author, data, secret=secret)
            try:
                self._decide(policy, channel, question, granted)
            except ApprovalNeeded as needed:
                await self.ask(channel, needed)
                granted.add(question)
                continue
            if question.tty != "password" and may_be_commands(question.foreground, question.tty):
                line = unfinished_line(question.text)
                # What is typed as a secret must not be shown with what follows it.
                self._lines[channel.id] = _FORGOTTEN if line and secret else line
            return

    async def _input_question(
        self, channel: ControlledTerminal, principal: Principal, author: str, data: bytes, *, secret: bool
    ) -> Question:  # fmt: skip
        """Return the question for an input, from what the terminal does now."""
        from blockpty.control.policy import Right

        sample = await inspect_in_step(channel)
        tty = tty_of(channel.live.state, {"icanon": sample.icanon, "echo": sample.echo, "reads": sample.reads})
        asked = sample.echo is False and asks_for_secret(channel.last_output())
        hidden = tty == "password" or asked
        right = Right.PASSWORD if secret or hidden else Right.INPUT
        # A line may come in pieces: each is checked with the line so far. Keys that enter or drop the line add
        # nothing to what was checked.
        adds = not hidden and bool(data.strip(LINE_KEYS))
        text = (self._lines.get(channel.id, "") if adds else "") + data.decode("utf-8", "backslashreplace")
        return replace(
            self._question(right, channel, principal, author, "send", text), tty="password" if hidden else tty,
            foreground=sample.foreground_name,
        )  # fmt: skip

    async def stored_secret(self, channel: ControlledTerminal, principal: Principal, author: str, name: str) -> bytes:
        """Return a stored secret that may be typed into what asks for one now. Raises BadRequest, ApprovalDenied."""
        policy = self._policy.current()
        command = policy.secrets.get(name) if policy is not None else None
        if command is None:
            raise BadRequest(f"no secret is called {name[:40]!r}", hint="policy.toml names them: [secret.NAME]")
        await self._allow_secret(channel, principal, author, name)
        value = await first_line(name, command)
        # What asked for it may be another program by now.
        question = await self._allow_secret(channel, principal, author, name)
        self._record("secret", channel, question, secret=name, foreground=question.foreground)
        return value

    async def _allow_secret(
        self, channel: ControlledTerminal, principal: Principal, author: str, name: str
    ) -> Question:  # fmt: skip
        granted: set[Question] = set()
        while True:
            channel.check_control(principal, author)
            question = await self._input_question(channel, principal, author, b"", secret=True)
            if question.tty != "password":
                raise BadRequest("nothing asks for a secret now", hint="wait until the program asks, with echo off")
            question = replace(question, text="", secret=name)
            try:
                self._decide(self._needed(), channel, question, granted)
            except ApprovalNeeded as needed:
                await self.ask(channel, needed)
                granted.add(question)
                continue
            return question

    def _needed(self) -> Policy:
        policy = self._policy.current()
        if policy is None:
            raise ApprovalDenied("the policy that allowed this is gone", hint="put policy.toml back")
        return policy

    async def operation(
        self, channel: ControlledTerminal, principal: Principal, right: str, operation: str, text: str = ""
    ) -> None:
        """Return when an agent may use an operation that types nothing, such as `kill`; raises as `input` does.

        `right`: its name in the policy.
        """
        author = principal.author()
        if author != AGENT:
            return
        channel.check_control(principal, author)
        policy = self._policy.current()
        if policy is None:
            return
        from blockpty.control.policy import Right

        question = self._question(Right(right), channel, principal, author, operation, text)
        try:
            self._decide(policy, channel, question, frozenset())
        except ApprovalNeeded as needed:
            await self.ask(channel, needed)
            channel.check_control(principal, author)

    @contextmanager
    def audited(self, operation: str, conversation_id: str | None = None, **more: Any) -> Iterator[None]:
        """Enter in the audit log how an operation went by which a shell or a record begins, ends or is changed."""
        outcome = "internal"
        try:
            yield
            outcome = "done"
        except BlockptyError as error:
            outcome = error.code
            raise
        except asyncio.CancelledError:
            outcome = "cancelled"
            raise
        finally:
            self._audit.add(
                "lifecycle", principal=current().name, conversation_id=conversation_id, operation=operation,
                outcome=outcome, **more,
            )  # fmt: skip

    @contextmanager
    def allowed(
        self, operation: str, conversation_id: str | None = None, *, right: str = "lifecycle", text: str = "",
        cwd: str | None = None, **more: Any,
    ) -> Iterator[None]:  # fmt: skip
        """Carry out an operation of no open conversation: raises ApprovalDenied or ApprovalRequired, and audits it.

        There is no record to ask in: what a person has to allow, a person has to do.
        """
        with self.audited(operation, conversation_id, **more):
            principal = current()
            author = principal.author()
            policy = self._policy.current() if author == AGENT else None
            if policy is not None:
                from blockpty.control.policy import Question, Right

                question = Question(
                    Right(right), operation, principal.name, author, conversation_id or "", text, cwd,
                    home=os.environ.get("HOME"),
                )  # fmt: skip
                verdict = policy.decide(question)
                if verdict.action == "deny":
                    raise _denied(verdict)
                if verdict.action == "ask":
                    raise ApprovalRequired(
                        f"a person has to do this: {verdict.reason}", hint="ask the person whose home this is",
                        details={"rule": verdict.rule},
                    )  # fmt: skip
            yield

    def _question(
        self, right: Any, channel: ControlledTerminal, principal: Principal, author: str, operation: str, text: str
    ) -> Question:  # fmt: skip
        from blockpty.control.policy import Question

        state = channel.live.state
        return Question(
            right=right, operation=operation, principal=principal.name, types_as=author, conversation_id=channel.id,
            text=text, cwd=state.current.cwd, tty=None, foreground=None, shell=state.current.name,
            home=os.environ.get("HOME"),
        )  # fmt: skip

    def _decide(
        self, policy: Policy, channel: ControlledTerminal, question: Question, granted: AbstractSet[Question]
    ) -> None:
        kinds = self._kinds.get(channel.id, frozenset())
        verdict = policy.decide(replace(question, approved=kinds), policy.level_of(channel.id))
        if verdict.action == "allow":
            return
        if verdict.action == "deny":
            self._record("denied", channel, question, rule=verdict.rule)
            raise _denied(verdict)
        if question in granted or (channel.id, self._digest(question)) in self._allowed:
            return
        raise ApprovalNeeded(question, verdict)

    # -- approvals ------------------------------------------------------------------------------------------------

    async def ask(self, channel: ControlledTerminal, needed: ApprovalNeeded) -> None:
        """Ask persons, and return when one has approved; raises ApprovalDenied, and Halted where agents are halted."""
        from blockpty.control.policy import allow_rule

        question, verdict = needed.question, needed.verdict
        digest = self._digest(question)
        policy = self._policy.current()
        seconds = policy.approval_timeout_seconds if policy is not None else 0
        now = time.time_ns() // 1_000_000
        hidden = question.right.value == "password"
        approval = Approval(
            approval_id=f"a{channel.epoch}.{next(self._numbers)}", conversation_id=channel.id,
            principal=question.principal, operation=question.operation, sentence=verdict.reason,
            text=None if hidden else visible(question.text), digest=digest, rule=verdict.rule,
            cwd=question.cwd, block_id=channel.live.state.block.block_id if channel.live.state.block else None,
            requested_ts=now, expires_ts=now + round(seconds * 1000),
            # Of a secret there is no rule: it would hold the secret.
            always=None if hidden else allow_rule(question, verdict, f"allowed-{digest[:12]}"),
        )  # fmt: skip
        await channel.own()

        def audit(answer: Answer) -> None:
            self._record(answer.verdict, channel, question, rule=verdict.rule, by=answer.by, scope=answer.scope)

        answer = await self.book.ask(channel, approval, seconds, audit)
        if answer.problem is not None:
            raise answer.problem
        self._kinds[channel.id] = self._kinds.get(channel.id, frozenset()) | set(verdict.kinds)
        if answer.scope == "conversation":
            self._allowed.add((channel.id, digest))

    def _digest(self, question: Question) -> str:
        asked = (
            question.conversation_id, question.operation, question.text, question.cwd, question.foreground,
            question.secret,
        )  # fmt: skip
        return digest_of(*asked, key=self._key if question.right.value == "password" else b"")

    def _record(self, verdict: str, channel: ControlledTerminal, question: Question, **fields: Any) -> None:
        content = {} if question.right.value == "password" else digest_fields(question.text)
        self._audit.add(
            "verdict", principal=question.principal, conversation_id=channel.id, verdict=verdict,
            operation=question.operation, **content, **fields,
        )  # fmt: skip


def _denied(verdict: Verdict) -> ApprovalDenied:
    return ApprovalDenied(
        f"the policy does not allow this: {verdict.reason}",
        hint="do it another way, or ask the person whose terminal this is", details={"rule": verdict.rule},
    )  # fmt: skip


def unfinished_line(text: str) -> str:
    """Return what of a typed text is a line that has not been entered."""
    from blockpty.control.policy import KEYS_ALONE

    line = text[max((found.end() for found in _LINE_END.finditer(text)), default=0) :]
    if KEYS_ALONE.fullmatch(line):
        return ""
    return line if len(line) <= LONGEST_LINE else _FORGOTTEN
