"""One wait: a pure function of the record, a cursor and what to look for.

Rules of this file: a waiter is fed what the machine was fed, in the same order, from some place at or before its cursor
on. `advance` and `begin` return an `Outcome` once, and the same one for any chunks. Deadlines do not exist here.

Existing data first: until `begin` is called the waiter reads what was recorded before the request. `begin` then gives
it the state of the shell at that moment, so that "ready already" and "waits for a password now" can be answered, and
what comes afterwards is new. Candidates are compared by the stream offset at which they became true, then by order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Protocol

from msgspec import Struct

from blockpty.engine.echo import EchoFilter, expectations
from blockpty.engine.machine_state import MachineState, asks_password
from blockpty.engine.matchers import PatternMatcher, TextMatch, TextMatcher, TextWindow
from blockpty.engine.records import input_bytes
from blockpty.engine.screen_matcher import ScreenMatcher, ScreenSource
from blockpty.engine.shown import ShownOutput
from blockpty.engine.states import ShellState
from blockpty.engine.views import View
from blockpty.model.conditions import Condition, Eof, Idle, Prompt, Regex, Text, WantsInput
from blockpty.model.events import Signal

# Bytes before a decision that they are output, of which a wait still looks at the last ones.
PASSED_BYTES: Final = 64 * 1024
_MATCHED_AT: Final = frozenset({"silence", "prompt", "exit", "eof"})


class Outcome(Struct, frozen=True):
    """Outcome of a wait.

    Attributes:
        matched: whether one of the conditions held.
        reason: `matched`, `prompt`, `eof`, `input`, `max_bytes`, `stopped`, `password`, `incomplete_input`,
            `hooks_lost`.
        at: stream offset at which it was decided.
        cursor: where to go on.
        index: which condition matched, or which stop condition stopped it.
        span, match_text, groups: what matched, for texts and patterns.
    """

    matched: bool
    reason: str
    at: int
    cursor: int
    index: int | None = None
    span: tuple[int, int] | None = None
    match_text: str | None = None
    groups: dict[str, Any] | None = None


class WaitRedactor(Protocol):
    """Redacts what a wait may not see, and says up to which offset that is known."""

    settled: int

    def restart(self, offset: int, *, attach: bool = False) -> None:
        """Begin at an offset; with `attach` in the middle of a text."""

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""

    def flush(self) -> None:
        """Settle everything."""

    def redact(self, offset: int, data: bytes) -> bytes:
        """Return bytes of the stream redacted; their number stays."""


class Waiter:
    """Looks for conditions from a cursor on.

    Args:
        conditions: alternatives; the first that becomes true wins.
        stops: conditions that end the wait without a match.
        cursor: stream offset to look from.
        view: `text`, `ansi` or `raw`.
        max_bytes: give up after this many bytes of the view.
        echo: match the echo of what was typed as well.
        screen_source: draws the terminal, for conditions on the screen.
        idle_from: time (ms) from which a quiet time counts at the earliest.
        blanks: a condition on the screen may ask for a blank at the end of a row.
        redactor: redacts what is not to be matched; what may become a secret is matched when that is known, at the
            next silence, or when the region ends.

    Attributes:
        reads: whether the text decides, and not signals alone.
    """

    def __init__(
        self,
        conditions: Iterable[Condition],
        *,
        stops: Iterable[Condition] = (),
        cursor: int,
        view: str = "text",
        max_bytes: int | None = None,
        echo: bool = False,
        screen_source: ScreenSource | None = None,
        redactor: WaitRedactor | None = None,
        idle_from: int | None = None,
        blanks: bool = False,
    ) -> None:
        self._conditions = tuple(conditions)
        self._all = [*self._conditions, *stops]
        self._screen_matcher = ScreenMatcher(self._all, blanks=blanks)
        self.screen_source = screen_source
        self._matchers = [(index, matcher) for index, item in enumerate(self._all) if (matcher := _matcher(item))]
        self._cursor = cursor
        self._view_name = view
        self._left = max_bytes
        self.reads = bool(self._matchers) or max_bytes is not None
        self._idle_from = idle_from
        self._echo = echo
        self._live = False
        self._region: str | None = None
        self._raw = bytearray()
        # The last bytes outside of regions, in case they turn out to be output.
        self._passed = bytearray()
        self._at = self._classified = 0
        self._filter = EchoFilter()
        self._redactor = redactor if self.reads else None
        self._held: list[tuple[int, bytes]] = []
        self._pending: list[Signal] = []
        self._over_at: int | None = None
        self._restart(cursor)
        self.budget = 0.01
        self.shown = ShownOutput()
        self.seen_bytes = self._known_bytes = 0

    def attach(self, state: MachineState, echo: EchoFilter | None = None) -> None:
        """Take over where the machine is; must be at or before the cursor, before the first `advance`.

        `echo`: what is expected of the inputs in the state, where some of their echo may have passed.
        """
        self._region = state.region.kind
        self._at = self._classified = state.classified
        if not self._echo and echo is not None:
            self._filter = echo.copy()
        elif not self._echo:
            for offset, data, echoes, icanon in state.inputs:
                self._filter.expect(expectations(offset, data, echoes, icanon))
        self._restart(max(self._cursor, state.classified))
        if self._redactor is not None:
            self._redactor.restart(state.classified, attach=True)

    def advance(self, data: bytes, signals: list[Signal], classified: int) -> Outcome | None:
        """Take the next raw bytes, the signals they gave and how far they are classified.

        Raises PatternTimeout when a pattern used up `budget`; nothing is lost, call `resume` with a larger budget.
        """
        self._raw += data
        self._pending += signals
        self._classified = classified
        return self.resume()

    def resume(self) -> Outcome | None:
        """Go on with what `advance` took."""
        while self._pending:
            signal = self._pending[0]
            outcome = self._pass(min(signal.offset, self._classified)) or self._signal(signal)
            self._pending.pop(0)
            if outcome is not None:
                return outcome
        return self._pass(self._classified)

    def begin(self, state: MachineState) -> Outcome | None:
        """Existing data is through; `state` is the machine's now. Later signals are new.

        Raises PatternTimeout as `advance` does; then call it again, with a larger budget and the same state.
        """
        self._live, self._known_bytes = True, self.seen_bytes
        at = state.classified
        shown = self._look(at)
        if shown is not None:
            return shown
        if state.shell is ShellState.EXITED:
            return self._over((Eof,), at, "eof")
        if state.shell is ShellState.IDLE:
            for index, condition in enumerate(self._all):
                if isinstance(condition, Prompt):
                    return self._decided(index, at, None)
            if self._over_at is not None and not any(isinstance(condition, Idle) for condition in self._all):
                return Outcome(False, "prompt", self._over_at, self._over_at)
        if state.hooks_lost and self._only_prompt():
            return Outcome(False, "hooks_lost", at, self.resume_cursor())
        if state.wants_input() and (asked := self._asked(at)) is not None:
            return asked
        if state.shell is ShellState.RUNNING and asks_password(state.tty):
            return Outcome(False, "password", at, self.resume_cursor())
        if state.shell is ShellState.EDITING and state.wants_more(state.tty):
            # The silence that would tell came before this wait.
            return Outcome(False, "incomplete_input", at, self.resume_cursor())
        return None

    @property
    def echo(self) -> EchoFilter:
        """What takes echo out."""
        return self._filter

    @property
    def new_bytes(self) -> int:
        """How many bytes of the view have come since the wait went live; all are known before it is live."""
        return self.seen_bytes - self._known_bytes if self._live else 0

    def resume_cursor(self) -> int:
        """Return a cursor from which the same wait, asked again, misses nothing."""
        if self._classified <= self._cursor:
            return self._cursor
        if not self._matchers:
            return max(self._cursor, self._at)
        positions = [matcher.resume(self._window) for _, matcher in self._matchers]
        wanted = [position for position in positions if position is not None]
        seen = self._at if self._region is None else min(self._at, self._view.next)
        if self._filter.held_at is not None:
            seen = min(seen, self._filter.held_at)
        if self._held:
            seen = min(seen, self._held[0][0])
        if wanted and self._window.text:
            seen = min(seen, self._window.raw(min(wanted)))
        return max(self._cursor, seen)

    # Bytes

    def _restart(self, offset: int) -> None:
        self._view = View(self._view_name, offset)
        self._expected_raw = offset
        self._window = TextWindow(self._view_name)
        for _, matcher in self._matchers:
            matcher.restart()

    def _pass(self, end: int) -> Outcome | None:
        """Look at the bytes up to a stream offset."""
        count = end - self._at
        if count <= 0:
            return self._search() if self.reads else None
        begin, self._at = self._at, end
        if self._region is None or not self.reads:
            if self._region is not None:
                # Nothing looks at the text; only its end may be shown.
                for offset, data in self._filter.feed(bytes(self._raw[:count]), begin):
                    passed = max(0, self._cursor - offset)
                    self.seen_bytes += max(0, len(data) - passed)
                    self.shown.add(offset + passed, data[passed:])
            else:
                self._passed += self._raw[:count]
                del self._passed[:-PASSED_BYTES]
            del self._raw[:count]
            return None
        data = bytes(self._raw[:count])
        del self._raw[:count]
        if self._redactor is not None:
            self._redactor.feed(data)
        return self._take(self._filter.feed(data, begin))

    def _flush(self) -> Outcome | None:
        """Look at what was held back: nothing more is waited for."""
        if not self.reads:
            for offset, data in self._filter.flush():
                self.seen_bytes += len(data)
                self.shown.add(offset, data)
            return None
        if self._redactor is not None:
            self._redactor.flush()
        return self._take(self._filter.flush())

    def _redacted(self, redactor: WaitRedactor, pieces: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
        """Return what is settled of the pieces that came and of those held back."""
        self._held += pieces
        ready: list[tuple[int, bytes]] = []
        while self._held and (count := redactor.settled - self._held[0][0]) > 0:
            offset, data = self._held.pop(0)
            ready.append((offset, redactor.redact(offset, data[:count])))
            if count < len(data):
                self._held.insert(0, (offset + count, data[count:]))
        return ready

    def _take(self, pieces: list[tuple[int, bytes]]) -> Outcome | None:
        for offset, data in pieces if self._redactor is None else self._redacted(self._redactor, pieces):
            if offset < self._cursor:
                data, offset = data[self._cursor - offset :], self._cursor
            if not data:
                continue
            if offset != self._expected_raw:
                self._add(self._view.finish())
                self._view = View(self._view_name, offset)
            self._expected_raw = offset + len(data)
            self.shown.add(offset, data)
            self._add(self._view.feed(data))
        return self._search()

    def _add(self, piece: Any) -> None:
        self._window.append(piece)
        self.seen_bytes += len(piece.text)

    def _search(self, settled_at: int | None = None) -> Outcome | None:
        best: tuple[int, int] | None = None
        chosen: TextMatch | None = None
        for index, matcher in self._matchers:
            candidate = matcher.grow(self._window, self.budget)
            if candidate is None and settled_at is not None:
                candidate = matcher.settle(self._window, settled_at, self.budget)
            if candidate is not None and (best is None or (candidate.at, index) < best):
                best, chosen = (candidate.at, index), candidate
        limit = self._limit()
        if limit is not None and (best is None or limit < best[0]):
            return Outcome(False, "max_bytes", limit, limit)
        if best is not None:
            return self._decided(best[1], best[0], chosen)
        if self._matchers:
            self._window.forget(min(matcher.needs for _, matcher in self._matchers))
        else:
            self._window.forget(self._window.end)
        return None

    def _limit(self) -> int | None:
        """Return the stream offset at which `max_bytes` was reached, or None."""
        if self._left is None or self.seen_bytes < self._left or not self._window.text:
            return None
        position = self._window.end - (self.seen_bytes - self._left) - 1
        return self._window.raw(max(self._window.base, position), after=True)

    # Signals

    def _signal(self, signal: Signal) -> Outcome | None:
        kind, at = signal.kind, signal.offset
        if kind == "output":
            outcome = self._pass(min(signal.value, self._classified))
            self._take_back(at, signal.value)
            return outcome
        if kind == "region":
            return self._change_region(at, signal.value)
        if kind == "input" and not self._echo:
            # Inputs before the cursor count as well: their echo may still come.
            fields = signal.value.fields
            self._filter.expect(
                expectations(at, input_bytes(fields), bool(fields.get("echo")), bool(fields.get("icanon")))
            )
        if at < self._cursor or (at == self._cursor and not self._live):
            if kind == "silence":
                self._flush()
            return None
        if kind in _MATCHED_AT or (kind == "tick" and self._screen_matcher and self._screen_matcher.due(signal.value)):
            shown = self._look(at)
            if shown is not None:
                return shown
            if kind == "tick":
                self._screen_matcher.looked(signal.value)
        if kind == "silence":
            return self._silence(signal)
        if kind == "prompt":
            if at == self._cursor:
                return None
            return self._over((Prompt, Eof) if signal.value else (Prompt,), at, "prompt")
        if kind in ("exit", "eof"):
            return self._over((Eof,), at, "eof")
        if kind == "hooks_lost" and self._only_prompt():
            return Outcome(False, "hooks_lost", at, self.resume_cursor())
        return None

    def _change_region(self, at: int, region: str | None) -> Outcome | None:
        outcome = self._end_region(at) if at > self._cursor else None
        self._region = region
        self._passed.clear()
        self._filter = EchoFilter()
        begin = max(at, self._at)
        if self.reads:
            self._restart(max(begin, self._cursor))
        if self._redactor is not None:
            self._held = []
            self._redactor.restart(begin)
        return outcome

    def _take_back(self, at: int, decided_at: int) -> None:
        """Have what has passed since an offset looked at once more, but not more than the last of it.

        How much that is follows from the record alone: neither from how it was cut, nor from where this wait began.
        """
        count = min(len(self._passed), self._at - max(at, decided_at - PASSED_BYTES))
        if count > 0:
            self._raw[:0] = self._passed[-count:]
            self._at -= count

    def _end_region(self, at: int) -> Outcome | None:
        if self._region is None:
            return None
        outcome = self._flush()
        if outcome is None and self.reads:
            self._add(self._view.finish())
            outcome = self._search(at)
        return outcome

    def _silence(self, signal: Signal) -> Outcome | None:
        at, value = signal.offset, signal.value
        if self._region is not None:
            outcome = self._flush() or self._search(at)
            if outcome is not None:
                return outcome
        for index, condition in enumerate(self._all):
            if isinstance(condition, Idle) and self._quiet(value) >= condition.ms:
                return self._decided(index, at, None)
        # In existing data it may have been answered since, which `begin` can tell.
        if self._live and value["input"] and (asked := self._asked(at)) is not None:
            return asked
        if self._live and value["password"]:
            return Outcome(False, "password", at, self.resume_cursor())
        if self._live and value["incomplete"]:
            return Outcome(False, "incomplete_input", at, self.resume_cursor())
        return None

    def _quiet(self, silence: dict[str, int]) -> int:
        """Return for how long it has been quiet, as this wait counts it."""
        ms = silence["ms"]
        return ms if self._idle_from is None else min(ms, silence["ts"] - self._idle_from)

    def _asked(self, at: int) -> Outcome | None:
        """The program in front waits for input."""
        for index, condition in enumerate(self._all):
            if isinstance(condition, WantsInput):
                return self._decided(index, at, None, "input")
        return None

    def _look(self, at: int) -> Outcome | None:
        """Look at the screen at a place that the record names."""
        if not self._screen_matcher or self.screen_source is None:
            return None
        seen = self._screen_matcher.find(*self.screen_source.look(at), self.budget)
        if seen is None:
            return None
        return self._decided(seen.which, at, TextMatch(at, (at, at), seen.text, seen.groups))

    def _over(self, kinds: tuple[type[Condition], ...], at: int, reason: str) -> Outcome | None:
        """What ran is over: a match for some tokens, and for everything else a reason to wait no longer.

        In existing data it is only a reason if nothing has been started since, which `begin` can tell.
        """
        for index, condition in enumerate(self._all):
            if isinstance(condition, kinds):
                return self._decided(index, at, None, reason)
        if self._live:
            return Outcome(False, reason, at, at)
        self._over_at = at
        return None

    def _only_prompt(self) -> bool:
        return all(isinstance(condition, Prompt) for condition in self._conditions)

    def _decided(self, index: int, at: int, candidate: TextMatch | None, reason: str = "matched") -> Outcome:
        stopped = index >= len(self._conditions)
        if isinstance(self._all[index], (Prompt, Eof)):
            reason = "prompt" if isinstance(self._all[index], Prompt) else "eof"
        number = index - len(self._conditions) if stopped else index
        span = candidate.span if candidate is not None else (at, at)
        return Outcome(
            matched=not stopped,
            reason="stopped" if stopped else reason,
            at=at,
            cursor=span[1],
            index=number,
            span=span,
            match_text=candidate.text if candidate is not None else None,
            groups=candidate.groups if candidate is not None else None,
        )


def _matcher(condition: Condition) -> TextMatcher | PatternMatcher | None:
    if isinstance(condition, Text):
        return TextMatcher(condition.text, ignore_case=condition.ignore_case)
    if isinstance(condition, Regex):
        return PatternMatcher(condition.regex, ignore_case=condition.ignore_case)
    return None
