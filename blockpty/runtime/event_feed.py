"""Events from their file, and those that come, for those who follow them."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import ExitStack
from typing import Any, Final

from msgspec.structs import replace

from blockpty.model.events import Event
from blockpty.runtime.file_changes import FollowedDirectory, changes_of
from blockpty.runtime.follower import RecordFollower
from blockpty.runtime.reading import read_span
from blockpty.spool.line_reader import LineReader, line_of_seq

_DELTA_BYTES: Final = 64 * 1024
# Another engine writes its lines after we learn that the stream grew. Where the system does not tell of changes of
# files (a network file system), they are looked for so often.
_RECHECK_SECONDS: Final = 1.0
# Growth of a block is sent at most once in so long to a follower of events without their text, and while there is some
# to send, events are looked for so often.
_GROWTH_SECONDS: Final = 0.25
_GROWTH_LOOK_SECONDS: Final = 0.02


def _with_data(live: RecordFollower, event: Event) -> Event:
    """Return a delta with the text that it stands for, at most `_DELTA_BYTES` of it: what a follower gets."""
    if event.type != "agent_block_delta":
        return event
    begin, end = event.fields["span"]
    data, _ = read_span(live.stream, live.redactor, "text", begin, end, _DELTA_BYTES)
    return replace(event, fields={**event.fields, "data": data.decode("utf-8", "replace")})


async def follow_events(
    live: RecordFollower, from_seq: int, follow: bool, *, with_data: bool = True,
    types: Collection[str] | None = None, clock: Callable[[], float] = time.monotonic,
) -> AsyncIterator[Event]:  # fmt: skip
    """Yield events from the file, and with `follow` those that come, until the record is closed.

    `with_data`: events of output that a follower gets have its text, which takes far longer than all else of them.
    Without it, events of output of one block that follow each other are one event in a quarter of a second: its span
    is that of them all, its number that of the last. `types`: only these, by default all; the others are
    skipped before growth is joined.
    """
    growth = None if with_data or not follow else Growth(clock)
    # Of a long record nearly all lines are before the one that most followers begin at.
    reader = LineReader(live.layout.events, line_of_seq(live.layout.events, from_seq) if from_seq else 0, holes=True)
    changes = changes_of(asyncio.get_running_loop())
    with ExitStack() as stack:
        stack.callback(reader.close)
        followed: FollowedDirectory | None = None
        while True:
            if follow and not live.deriver.active and followed is None:
                followed = stack.enter_context(changes.follow(live.layout.directory))
            # Subscribe before looking, or an event between the two would be missed.
            changed = [live.subscribers.watch()]
            if followed is not None:
                changed.append(followed.watch())
            try:
                if follow:
                    live.notified()
                else:
                    live.pump()
                # A long record is never in memory as a whole, however slowly its reader takes it.
                while lines := reader.read_new(some=True):
                    for line, _ in lines:
                        if line.get("seq", -1) < from_seq or (types is not None and line.get("type") not in types):
                            continue
                        for one in (line,) if growth is None else growth.take(line):
                            event = live.redactor.event(Event.from_dict(one), live.stream)
                            yield _with_data(live, event) if follow and with_data else event
                    if not reader.ended:
                        await live.turn()
                if growth is not None and (grown := growth.due(live.closed)) is not None:
                    yield live.redactor.event(Event.from_dict(grown), live.stream)
                if not follow or live.closed:
                    return
                if growth is not None and growth.is_held:
                    await asyncio.sleep(_GROWTH_LOOK_SECONDS)
                    # Something floods: of all who follow it one looks in each turn, and others are served in between.
                    await live.turn()
                    await asyncio.wait(changed, timeout=growth.left(), return_when=asyncio.FIRST_COMPLETED)
                    continue
                await asyncio.wait(
                    changed,
                    timeout=None if live.deriver.active else _RECHECK_SECONDS,
                    return_when=asyncio.FIRST_COMPLETED,
                )
            finally:
                for future in changed:
                    future.cancel()


class Growth:
    """Lines of events on their way to a follower, with those of output joined."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._held: dict[str, Any] | None = None
        self._sent = -math.inf

    @property
    def is_held(self) -> bool:
        """Whether there is growth that has not been returned yet."""
        return self._held is not None

    def take(self, line: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield what is to be sent now that this line has come; growth is held back."""
        held, grows = self._held, line.get("type") == "agent_block_delta"
        self._held = line if grows else None
        if held is not None and grows and held["block_id"] == line["block_id"]:
            self._held = {**line, "span": [held["span"][0], line["span"][1]]}
        elif held is not None:
            yield held
        if not grows:
            yield line

    def left(self) -> float:
        """For how many seconds more growth is held back."""
        return max(0.0, self._sent + _GROWTH_SECONDS - self._clock())

    def due(self, closed: bool) -> dict[str, Any] | None:
        """Return growth that has been held back for long enough, or at the end."""
        held = self._held
        if held is None or (self.left() > 0 and not closed):
            return None
        self._held, self._sent = None, self._clock()
        return held
