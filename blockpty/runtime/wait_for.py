"""`wait_for`: the deadline, the record of the wait and its result, around the pure waiter."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec.structs import replace

from blockpty.api import limits
from blockpty.engine.states import ShellState
from blockpty.engine.waiter import Outcome
from blockpty.errors import BadCursor, BadRequest, BlockptyError
from blockpty.model.conditions import Idle, Match, Screen, parse_conditions
from blockpty.model.results import WaitResult
from blockpty.runtime.follower import RecordFollower
from blockpty.runtime.pending import PendingWait, begin_wait
from blockpty.runtime.record_reader import Position
from blockpty.runtime.status import mode_of, private_modes, tty_of
from blockpty.runtime.wait_registry import answered
from blockpty.runtime.wait_text import CONTEXT_BYTES, lines_around, shown_in
from blockpty.runtime.waits import WaitRequest, outcome_to_note

if TYPE_CHECKING:
    from blockpty.runtime.advice import Standing

# A wait that takes longer than this is announced while it lasts; a shorter one is recorded with its end.
ANNOUNCE_SECONDS: Final = 0.05

WAIT_VIEWS: Final = ("text", "rendered", "ansi", "raw")


class Note(Protocol):
    """Has notes recorded, in this order."""

    def __call__(self, *notes: Mapping[str, Any]) -> None: ...


Look = Callable[[], "asyncio.Future[dict[str, Any]]"]
Stands = Callable[[str], Awaitable["Standing"]]


class WaitFor:
    """Answers waits on one live record and has each of them recorded."""

    def __init__(
        self, live: RecordFollower, note: Note, watch_idle: Callable[[int], None], look: Look, stands: Stands,
        prefix: str,
    ) -> None:  # fmt: skip
        self._live = live
        self._note = note
        self._watch_idle = watch_idle
        self._look = look
        self._stands = stands
        self._numbers = itertools.count(1)
        self._prefix = prefix

    def request(
        self,
        match: Match,
        *,
        cursor: Any,
        stop: Match | None = None,
        max_bytes: int | None = None,
        view: str = "text",
        echo: bool = False,
        context: int = 0,
        past: bool = False,
    ) -> WaitRequest:
        """Check what was asked; raises BadCondition, BadCursor or BadRequest.

        `past`: quiet times count that had begun before the wait.
        """
        if view not in WAIT_VIEWS:
            raise BadRequest(f"a wait cannot look at the view {view[:40]!r}", hint=", ".join(WAIT_VIEWS))
        if max_bytes is not None:
            limits.check("max_bytes", max_bytes)
        limits.check("context", context)
        live = self._live
        known = type(cursor) is int and cursor >= 0
        if not known or (cursor > live.reader.position.offset and cursor > live.stream.size()):
            raise BadCursor(
                f"the cursor {cursor!r} does not lie between 0 and {live.stream.size()}",
                hint="use a cursor from a result",
            )
        conditions, stops = parse_conditions(match), parse_conditions(stop) if stop is not None else ()
        kinds = {type(condition) for condition in (*conditions, *stops)}
        return WaitRequest(
            conditions, stops, cursor, "text" if view == "rendered" else view, max_bytes, echo, live.redactor.redact,
            idle_from=self._now() if Idle in kinds and not past else None, blanks=Screen in kinds, shown_view=view,
            context=context,
        )  # fmt: skip

    def _now(self) -> int | None:
        """The time of the record, in ms; None where quiet times cannot be counted from now."""
        return int(time.time() * 1000)

    async def wait(self, request: WaitRequest, timeout_ms: int, since: Position | None = None) -> WaitResult:
        """Wait until a condition holds, none can any more, or the time is up; cancelling leaves the program alone.

        `since`: the wait has begun there, right behind an input.
        """
        wait, seen = await begin_wait(self._live, request, since)
        wait_id = f"{self._prefix}{next(self._numbers)}"
        opening = {
            "type": "wait_begin",
            "wait_id": wait_id,
            **request.to_note(),
            "timeout_ms": timeout_ms,
            "seen": seen._asdict(),
        }
        unannounced = self._announce(wait, opening)
        outcome: Outcome | None = None
        reason = "cancelled"
        looked: Position | None = None
        asked: asyncio.Future[dict[str, Any]] | None = None
        state = self._live.state

        def look() -> None:
            nonlocal looked
            self._live.pump()
            looked = self._live.reader.position

        try:
            outcome = await self._answer(wait, request, timeout_ms, look)
            reason = outcome.reason if outcome is not None else "timeout"
            if state.tty is None and state.shell is ShellState.RUNNING:
                # Since the last input there was no silence with which it would have been recorded. It is asked before
                # the notes are sent, for the result is waiting for the answer and for nothing else.
                asked = self._look()
        except asyncio.CancelledError:
            raise
        except Exception:
            reason = "error"
            raise
        finally:
            # A turn of the loop lies between the end of the time and this, in which the record may have been read on.
            horizon = looked if reason == "timeout" and looked is not None else self._live.reader.position
            self._live.waits.end(wait)
            self._note(*unannounced(), self._closing(wait_id, wait, outcome, reason, horizon))
        result = self._result(wait, request, outcome)
        sample = state.tty if asked is None else await _sampled(asked)
        # The record may have been read on meanwhile: both are of now.
        result = replace(result, mode=mode_of(state), tty=self._tty(sample))
        if result.matched or state.shell is not ShellState.RUNNING:
            return result
        stands = await self._stands(result.reason)
        return replace(result, foreground=stands.foreground, hint=stands.hint)

    def _announce(self, wait: PendingWait, opening: Mapping[str, Any]) -> Callable[[], list[Mapping[str, Any]]]:
        """Record a wait's beginning in a while; return what says at the end whether it is still to be recorded."""
        left = [opening]
        if wait.future.done():
            return lambda: left

        def announce() -> None:
            self._note(left.pop())

        timer = asyncio.get_running_loop().call_later(ANNOUNCE_SECONDS, announce)

        def finish() -> list[Mapping[str, Any]]:
            timer.cancel()
            return left

        return finish

    async def _answer(
        self, wait: PendingWait, request: WaitRequest, timeout_ms: int, look: Callable[[], None]
    ) -> Outcome | None:
        timers: list[asyncio.TimerHandle] = []
        if not wait.future.done():
            for condition in (*request.conditions, *request.stops):
                if not isinstance(condition, Idle):
                    continue
                if request.idle_from is None:
                    self._watch_idle(condition.ms)
                else:
                    # By then a quiet time that began with the wait has lasted as long; the clocks count in ms.
                    after = (condition.ms + 1) / 1000
                    timers.append(asyncio.get_running_loop().call_later(after, self._watch_idle, condition.ms))
        try:
            return await answered(wait.future, timeout_ms / 1000, look)
        finally:
            for timer in timers:
                timer.cancel()

    def _closing(
        self, wait_id: str, wait: PendingWait, outcome: Outcome | None, reason: str, horizon: Position
    ) -> dict[str, Any]:
        if outcome is not None:
            found = outcome_to_note(outcome)
        else:
            found = {"matched": False, "reason": reason, "to_cursor": wait.waiter.resume_cursor()}
        return {"type": "wait_end", "wait_id": wait_id, **found, "horizon": horizon._asdict()}

    def _tty(self, sample: Mapping[str, Any] | None) -> str | None:
        """Return what the terminal does, from the last silence or a look of now."""
        live = self._live
        tty = tty_of(live.state, sample)
        if tty != "raw" or live.state.block is None:
            return tty
        modes = private_modes(live.stream, live.state.block.begin, live.reader.position.offset)
        return tty_of(live.state, sample, modes)

    def _result(self, wait: PendingWait, request: WaitRequest, outcome: Outcome | None) -> WaitResult:
        waiter, redactor, stream = wait.waiter, self._live.redactor, self._live.stream
        end = waiter.resume_cursor() if outcome is None else outcome.cursor
        seen = waiter.shown.before()
        # Cut at its head, it may begin inside a secret.
        known = [] if waiter.shown.whole else redactor.near(stream, max(0, end - 4 * len(seen)), end)

        def shown(data: bytes) -> str:
            text = shown_in(data, request.shown_view, self._live.state.size, whole=waiter.shown.whole)
            return redactor.text(text, known, more=True)

        result = WaitResult(
            matched=False, reason="timeout", cursor=end, mode=mode_of(self._live.state), tty=None, text=shown(seen),
            text_bytes=waiter.seen_bytes, from_cursor=request.cursor, new_output=waiter.new_bytes,
        )  # fmt: skip
        if outcome is None:
            return result
        result = replace(
            result, matched=outcome.matched, reason=outcome.reason, index=outcome.index, span=outcome.span,
            already_there=outcome.matched and wait.existing,
        )  # fmt: skip
        if outcome.span is None:
            return result
        begin, after = outcome.span
        if begin < after and request.context:
            # What follows may not have been looked at yet, and may be the prompt.
            below = redactor.read(stream, after, min(CONTEXT_BYTES, self._live.state.classified - after))
            lines = lines_around(
                shown(waiter.shown.before(begin)), outcome.match_text or "", shown(below), request.context
            )
            result = replace(result, context=redactor.text(lines, known, more=True))
        if outcome.match_text or outcome.groups:
            known = redactor.near(stream, begin, after)
        return replace(
            result, before=shown(waiter.shown.before(begin)), match_text=redactor.value(outcome.match_text, known),
            groups=redactor.value(outcome.groups, known),
        )  # fmt: skip


async def _sampled(asked: asyncio.Future[dict[str, Any]]) -> Mapping[str, Any] | None:
    """Return what the host says of a terminal as a silence entry does; None when it cannot be known."""
    try:
        seen = await asked
    except BlockptyError:
        return None
    if not seen["live"] or seen["icanon"] is None:
        return None
    return {name: seen[name] for name in ("icanon", "echo", "foreground", "reads")}
