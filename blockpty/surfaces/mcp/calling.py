"""Tool call: its caller, its progress, what it waits for, and its end when the client cancels it.

Rules of this file: a call that is cancelled is cancelled once and waited for, so that the operation can record its own
end; what runs in the terminal is not touched by that. Progress is reported only to who asked for it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import anyio
from mcp.server.context import ServerRequestContext
from msgspec import Struct, field

from blockpty.api.progress import Progress
from blockpty.errors import BlockptyError
from blockpty.model.results import Result
from blockpty.ops.manifest import Effect, manifest_entry
from blockpty.surfaces.access import Caller
from blockpty.surfaces.mcp.approvals import ApprovalQuestions, Person, Resumed
from blockpty.surfaces.progress_text import in_words
from blockpty.surfaces.sanitize import one_line

Context = ServerRequestContext[Any, Any]
CallerOf = Callable[[Context], Caller]
"""Finds who makes a request; raises Unauthorized."""

PROGRESS_SECONDS: Final = 1.0
# A call that waits for a person does so from its beginning on.
FIRST_LOOK_SECONDS: Final = 0.1


class Call(Struct, frozen=True):
    """A tool call while it is answered.

    Attributes:
        context: of the request, as the SDK gives it.
        caller: on whose behalf.
        params: the arguments.
        answers: the client's answer to what this call had asked before, and state: what it was asked to send back;
            only in protocol versions in which a call that needs an answer is made anew.
        questions: asks the person at the client.
        resumed: what that person answered before this call was made again.
    """

    context: Context
    caller: Caller
    params: Mapping[str, Any]
    answers: Mapping[str, Any] | None = None
    state: str | None = None
    questions: ApprovalQuestions = field(default_factory=ApprovalQuestions)
    resumed: Resumed | None = None

    async def run(self, operation: str, params: Mapping[str, Any], *, waited_ms: int = 0) -> Result:
        """Call an operation, reporting progress every second; raises BlockptyError, and InputNeeded.

        Args:
            operation: its name.
            params: its parameters.
            waited_ms: for how long this tool call has waited before, so that progress only grows.
        """
        loop = asyncio.get_running_loop()
        begin = loop.time() - waited_ms / 1000
        person = self.questions.person(self.context)
        looks = (person is not None or self.wants_progress) and manifest_entry(operation).effect is not Effect.READ
        # What waits already is not what this call will wait for.
        known = {one["approval_id"] for one in await self._approvals(params)} if looks else set()
        shown: set[str] = set()
        # It may only grow.
        said = 0
        # Tasks of their own: a cancel scope would cancel again what the operation does to end properly.
        progress = Progress()
        with progress if self.wants_progress else contextlib.nullcontext():
            task = loop.create_task(self.caller.call(operation, params))
        asking: asyncio.Task[None] | None = None
        report_at = loop.time() + PROGRESS_SECONDS
        timeout = FIRST_LOOK_SECONDS if looks else PROGRESS_SECONDS
        try:
            while True:
                both = {task} if asking is None else {task, asking}
                await asyncio.wait(both, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
                if asking is not None and asking.done():
                    asked, asking = asking, None
                    asked.result()
                if task.done():
                    break
                approval = await self._waits_for(operation, params, known, person) if looks else None
                if approval is not None and person is not None and approval["approval_id"] not in shown:
                    shown.add(approval["approval_id"])
                    asking = loop.create_task(self.questions.ask(self.context, person, approval, self.resumed))
                if loop.time() >= report_at:
                    report_at = loop.time() + PROGRESS_SECONDS
                    elapsed_ms = round((loop.time() - begin) * 1000)
                    if self.wants_progress and (value := progress.done if progress.what else elapsed_ms) > said:
                        said = value
                        await self._report(elapsed_ms, params, approval, progress)
                timeout = max(0.0, report_at - loop.time())
        finally:
            for one in (task, asking):
                if one is not None and not one.done():
                    one.cancel()
                    with anyio.CancelScope(shield=True):
                        await asyncio.wait((one,))
                    if not one.cancelled():
                        one.exception()
        return task.result()

    async def _approvals(self, params: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return what waits in the conversation of a call; nothing where there is none, or it cannot be asked."""
        conversation_id = params.get("conversation_id")
        if conversation_id is not None:
            with contextlib.suppress(BlockptyError):
                found = (await self.caller.call("approvals", {"conversation_id": conversation_id})).to_dict()
                return list(found["approvals"])
        return []

    async def _waits_for(
        self, operation: str, params: Mapping[str, Any], known: Collection[str], person: Person | None
    ) -> dict[str, Any] | None:
        """Return the approval for which a call of this client waits; None when it waits for none."""
        agent = None if person is None else person.agent
        for one in await self._approvals(params):
            if one["approval_id"] not in known and one["operation"] == operation and agent in (None, one["principal"]):
                return one
        return None

    @property
    def wants_progress(self) -> bool:
        """Whether the client gave a token for progress."""
        meta = self.context.meta
        return meta is not None and meta.get("progress_token") is not None

    async def _report(
        self, elapsed_ms: int, params: Mapping[str, Any], approval: Mapping[str, Any] | None, progress: Progress
    ) -> None:
        if progress.what:
            shown = in_words(progress, elapsed_ms / 1000)
            await self.context.session.report_progress(progress.done, progress.total, f"{progress.what}: {shown}")
            return
        message = f"{elapsed_ms / 1000:.0f} s"
        conversation_id = params.get("conversation_id")
        if approval is not None:
            message = one_line(f"{message}, waits for approval {approval['approval_id']}: {approval['sentence']}")
        elif conversation_id is not None:
            # It may be closed by now, or not be open yet; then there is only the time to tell.
            with contextlib.suppress(BlockptyError):
                status = (await self.caller.call("status", {"conversation_id": conversation_id})).to_dict()
                message = f"{message}, {status['cursor']} bytes in the transcript, {status['mode']}"
        await self.context.session.report_progress(elapsed_ms, params.get("timeout_ms"), message)
