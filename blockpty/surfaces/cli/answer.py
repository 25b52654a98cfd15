"""Command `blockpty answer`: shows what waits for a person, one after another, and asks on the terminal.

Keys that were typed before a question was shown are discarded: they were meant for something else. While a question
is shown, the server is asked whether it still waits.
"""

from __future__ import annotations

import asyncio
import os
import sys
import termios
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import click

from blockpty.surfaces.cli.completion import offer_conversations
from blockpty.surfaces.cli.invocation import Invocation, anywhere, finished

if TYPE_CHECKING:
    from blockpty.surfaces.cli.render import ResultPrinter

_LOOK_SECONDS: Final = 1.0
_MOST_TYPED: Final = 4096
_SCOPES: Final[Mapping[str, str]] = {"y": "once", "c": "conversation"}

_DOC: Final = """Show pending approvals, one after another, and ask whether to allow each.

It needs a terminal, and you answer as a person. Only keys that you type after a question was shown count. Ctrl-C and
Ctrl-D leave what has no answer yet as it is. Programs use `approvals`, `approve` and `deny`."""


def command() -> click.Command:
    """Return the command."""
    return click.Command(
        "answer",
        params=[
            click.Argument(
                ["conversation_id"], required=False, metavar="[CONVERSATION_ID]", shell_complete=offer_conversations
            ),
            click.Option(["--follow"], is_flag=True, help="Wait for the next question, until Ctrl-C."),
            *anywhere(),
        ],
        help=_DOC,
        short_help="Approve or deny pending requests.",
        callback=_answer,
    )


@click.pass_obj
def _answer(invocation: Invocation, /, conversation_id: str | None, follow: bool) -> int:
    from blockpty.ops.manifest import manifest_entry

    if invocation.as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError("answer asks on a terminal; without one, use approvals, approve and deny")
    invocation.check(manifest_entry("approve"))
    return finished(_interview(invocation, conversation_id, follow))


async def _interview(invocation: Invocation, conversation_id: str | None, follow: bool) -> int:
    screen = invocation.screen()
    async with invocation.open_engine(invocation.home) as engine:
        interview = Interview(engine, screen, conversation_id)
        shown = announced = False
        while True:
            question = await interview.next()
            if question is not None:
                if not await interview.ask(question):
                    return 0
                shown, announced = True, False
            elif follow:
                if not announced:
                    screen.note("blockpty: waiting for the next question; Ctrl-C ends this")
                    announced = True
                await asyncio.sleep(_LOOK_SECONDS)
            else:
                if not shown:
                    screen.note("blockpty: no approvals are pending")
                return 0


class Interview:
    """Questions on the terminal, and the answers to them.

    Args:
        engine: has the operations.
        screen: shows what became of a question.
        conversation_id: only of this one; None: of all.
    """

    def __init__(self, engine: Any, screen: ResultPrinter, conversation_id: str | None) -> None:
        self._engine = engine
        self._screen = screen
        self._only = conversation_id
        self._skipped: set[tuple[str, str, str]] = set()

    async def next(self) -> Mapping[str, Any] | None:
        """Return what waits and was not skipped; None when nothing does."""
        waiting = (await self._engine.approvals(self._only)).approvals
        return next((one for one in waiting if _key(one) not in self._skipped), None)

    async def ask(self, question: Mapping[str, Any]) -> bool:
        """Show a question and pass on its answer; return whether to go on with the next."""
        from blockpty.errors import NotFound, Stale

        self._show(question)
        try:
            while True:
                typed = await self._typed(question, f"  {_choices(question)}: ")
                answer = None if typed is None else typed.strip().lower()
                if answer in (None, "q"):
                    return False
                if answer == "s":
                    self._skipped.add(_key(question))
                    return True
                if answer in ("n", "r"):
                    reason = await self._typed(question, "  Reason, for the agent: ") if answer == "r" else None
                    return await self._deny(question, None if reason is None else reason.strip())
                scope = _SCOPES.get(str(answer))
                if answer == "a" and question.get("always") is not None and await self._confirmed(question):
                    scope = "always"
                if scope is not None:
                    return await self._approve(question, scope)
        except NotFound:
            self._screen.note(
                f"blockpty: {question['approval_id']} is no longer pending (not_found): {_OVER}", style="33"
            )
        except Stale:
            self._screen.note(f"blockpty: {question['approval_id']} is for something else now (stale)", style="33")
        return True

    def _show(self, question: Mapping[str, Any]) -> None:
        from blockpty.surfaces import approvals
        from blockpty.surfaces.cli.render import duration

        left = duration(1000 * approvals.seconds_left(question, time.time_ns() // 1_000_000))
        lines = [approvals.heading(question), *approvals.body(question, width=self._screen.width)]
        sys.stdout.write("\n" + "\n".join([*lines, f"  time left  {left}"]) + "\n")
        _discard_typed()

    async def _confirmed(self, question: Mapping[str, Any]) -> bool:
        from blockpty.surfaces import approvals

        rule = approvals.quoted(question["always"].rstrip("\n"), width=self._screen.width)
        sys.stdout.write("\n".join(["  This rule is added to policy.toml:", *rule]) + "\n")
        _discard_typed()
        typed = await self._typed(question, "  Allow this always? [y]es, [n]o: ")
        return typed is not None and typed.strip().lower() == "y"

    async def _approve(self, question: Mapping[str, Any], scope: str) -> bool:
        conversation = await self._engine.conversation(question["conversation_id"])
        given = await conversation.approve(question["approval_id"], question["digest"], scope=scope)
        self._screen.result("approve", given, {})
        return True

    async def _deny(self, question: Mapping[str, Any], reason: str | None) -> bool:
        conversation = await self._engine.conversation(question["conversation_id"])
        given = await conversation.deny(question["approval_id"], question["digest"], reason=reason or None)
        self._screen.result("deny", given, {})
        return True

    async def _typed(self, question: Mapping[str, Any], prompt: str) -> str | None:
        """Return the line that is typed, None at the end of input; raises NotFound when the question is over."""
        from blockpty.errors import NotFound

        sys.stdout.write(prompt)
        sys.stdout.flush()
        loop, terminal, ready = asyncio.get_running_loop(), sys.stdin.fileno(), asyncio.Event()
        loop.add_reader(terminal, ready.set)
        try:
            while True:
                try:
                    await asyncio.wait_for(ready.wait(), _LOOK_SECONDS)
                except TimeoutError:
                    waiting = (await self._engine.approvals(question["conversation_id"])).approvals
                    if _key(question) not in map(_key, waiting):
                        sys.stdout.write("\n")
                        raise NotFound(_OVER) from None
                    continue
                # A terminal gives one line at a time.
                line = os.read(terminal, _MOST_TYPED)
                return line.decode("utf-8", "replace") if line else None
        finally:
            loop.remove_reader(terminal)


_OVER: Final = "it was answered elsewhere or withdrawn, or it expired"


def _key(question: Mapping[str, Any]) -> tuple[str, str, str]:
    return question["conversation_id"], question["approval_id"], question["digest"]


def _choices(question: Mapping[str, Any]) -> str:
    always = ["[a]lways"] if question.get("always") is not None else []
    every = ["[y]es once", "for this [c]onversation", *always, "[n]o", "no with a [r]eason", "[s]kip", "[q]uit"]
    return ", ".join(every)


def _discard_typed() -> None:
    """Drop what was typed before the question stands on the terminal."""
    sys.stdout.flush()
    termios.tcdrain(sys.stdout.fileno())
    termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
