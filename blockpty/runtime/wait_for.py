"""`wait_for`: the deadline, the record of the wait and its result, around the pure waiter."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from blockpty.engine.states import ShellState
from blockpty.engine.waiter import Outcome
from blockpty.errors import BadCursor, BadRequest
from blockpty.model.conditions import Idle, Match, parse_conditions
from blockpty.model.results import WaitResult
from blockpty.runtime.follower import RecordFollower
from blockpty.runtime.pending import PendingWait, begin_wait
from blockpty.runtime.record_reader import Position
from blockpty.runtime.status import mode_of, private_modes, tty_of
from blockpty.runtime.wait_registry import answered
from blockpty.runtime.waits import WaitRequest, outcome_to_note

if TYPE_CHECKING:
    from blockpty.runtime.advice import Standing

# A wait that takes longer than this is announced while it lasts; a shorter one is recorded with its end.
ANNOUNCE_SECONDS: Final = 0.05

Note = Callable[[Mapping[str, Any]], None]
Look = Callable[[], Awaitable[Mapping[str, Any] | None]]
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
    ) -> WaitRequest:
        """Check what was asked; raises BadCondition, BadCursor or BadRequest."""
        if view not in ("text", "ansi", "raw"):
            raise BadRequest(f"a wait cannot look at the view {view[:40]!r}", hint="text, ansi or raw")
        live = self._live
        known = type(cursor) is int and cursor >= 0
        if not known or (cursor > live.reader.position.offset and cursor > live.stream.size()):
            raise BadCursor(
                f"the cursor {cursor!r} does not lie between 0 and {live.stream.size()}",
                hint="use a cursor from a result",
            )
        stops = parse_conditions(stop) if stop is not None else ()
        return WaitRequest(parse_conditions(match), stops, cursor, view, max_bytes, echo, live.redactor.redact)

    async def wait(self, request: WaitRequest, timeout_ms: int) -> WaitResult:
        """Wait until a condition holds, none can any more, or the time is up; cancelling leaves the program alone."""
        wait, seen = await begin_wait(self._live, request)
        wait_id = f"{self._prefix}{next(self._numbers)}"
        opening = {
            "type": "wait_begin",
            "wait_id": wait_id,
            **request.to_note(),
            "timeout_ms": timeout_ms,
            "seen": seen._asdict(),
        }
        announced = self._announce(wait, opening)
        outcome: Outcome | None = None
        reason = "cancelled"
        looked: Position | None = None

        def look() -> None:
            nonlocal looked
            self._live.pump()
            looked = self._live.reader.position

        try:
            outcome = await self._answer(wait, request, timeout_ms, look)
            reason = outcome.reason if outcome is not None else "timeout"
        except asyncio.CancelledError:
            raise
        except Exception:
            reason = "error"
            raise
        finally:
            # A turn of the loop lies between the end of the time and this, in which the record may have been read on.
            horizon = looked if reason == "timeout" and looked is not None else self._live.reader.position
            self._live.waits.end(wait)
            announced()
            self._note(self._closing(wait_id, wait, outcome, reason, horizon))
        state = self._live.state
        sample: Mapping[str, Any] | None = state.tty
        if sample is None and state.shell is ShellState.RUNNING:
            # Since the last input there was no silence with which it would have been recorded.
            sample = await self._look()
        result = self._result(wait, outcome, self._tty(sample))
        if result.matched or state.shell is not ShellState.RUNNING:
            return result
        stands = await self._stands(result.reason)
        return replace(result, foreground=stands.foreground, hint=stands.hint)

    def _announce(self, wait: PendingWait, opening: Mapping[str, Any]) -> Callable[[], None]:
        done = False

        def announce() -> None:
            nonlocal done
            if not done:
                done = True
                self._note(opening)

        if not wait.future.done():
            timer = asyncio.get_running_loop().call_later(ANNOUNCE_SECONDS, announce)

            def finish() -> None:
                timer.cancel()
                announce()

            return finish
        return announce

    async def _answer(
        self, wait: PendingWait, request: WaitRequest, timeout_ms: int, look: Callable[[], None]
    ) -> Outcome | None:
        if not wait.future.done():
            for condition in (*request.conditions, *request.stops):
                if isinstance(condition, Idle):
                    self._watch_idle(condition.ms)
        return await answered(wait.future, timeout_ms / 1000, look)

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

    def _result(self, wait: PendingWait, outcome: Outcome | None, tty: str | None) -> WaitResult:
        state, waiter = self._live.state, wait.waiter
        redactor, stream = self._live.redactor, self._live.stream
        end = waiter.resume_cursor() if outcome is None else outcome.cursor
        # Cut at its head, it may begin inside a secret.
        whole = len(waiter.kept) >= waiter.seen_bytes
        known = [] if whole else redactor.near(stream, max(0, end - 4 * len(waiter.kept)), end)
        text = redactor.text(waiter.kept.decode("utf-8", "replace"), known, more=True)
        if outcome is None:
            return WaitResult(
                False,
                "timeout",
                waiter.resume_cursor(),
                mode=mode_of(state),
                tty=tty,
                text=text,
                text_bytes=waiter.seen_bytes,
            )
        if outcome.span is not None and (outcome.match_text or outcome.groups):
            known = redactor.near(stream, *outcome.span)
        return WaitResult(
            matched=outcome.matched,
            reason=outcome.reason,
            cursor=outcome.cursor,
            index=outcome.index,
            match_text=redactor.value(outcome.match_text, known),
            groups=redactor.value(outcome.groups, known),
            span=outcome.span,
            mode=mode_of(state),
            tty=tty,
            text=text,
            text_bytes=waiter.seen_bytes,
        )
