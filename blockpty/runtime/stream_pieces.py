"""The stream's bytes, redacted, for those who follow it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from msgspec import Struct

from blockpty.errors import BadCursor
from blockpty.runtime.follower import RecordFollower

# How long a follower waits for the rest of a possible secret; then it gets the beginning, redacted.
HOLD_SECONDS: Final = 0.2


class StreamPiece(Struct, frozen=True):
    """Next piece of a stream: bytes from a cursor on, or, when `skipped` is set, a jump to that cursor."""

    cursor: int
    data: bytes
    skipped: int = 0


async def follow_stream(
    live: RecordFollower, from_cursor: int | None, limit_bytes: int | None
) -> AsyncIterator[StreamPiece]:
    """Yield the stream's bytes from a cursor on and then as they come, redacted, until the record is closed.

    Nothing is queued: the next piece is read when it is asked for. Who has fallen back by more than `limit_bytes` is
    sent on to a later cursor (the last quarter of that), and can read what lies between at leisure. The
    beginning of a possible secret waits for the rest; when that does not come, it is sent redacted.
    """
    live.pump()
    quiet = False
    cursor = live.state.classified if from_cursor is None else from_cursor
    if not 0 <= cursor <= live.reader.position.offset:
        raise BadCursor(f"the cursor {cursor} lies behind the end of the stream", hint="use a cursor from a result")
    while True:
        changed = live.subscribers.watch()
        try:
            live.notified()
            # Half a mark is held back until it is known to be one: a secret must not leave in two halves.
            end = live.state.classified
            if (first := live.stream.begin) > cursor:
                cursor, skipped = first, first - cursor
                yield StreamPiece(cursor, b"", skipped)
            while cursor < end:
                if limit_bytes is not None and end - cursor > limit_bytes:
                    skipped = end - limit_bytes // 4 - cursor
                    cursor += skipped
                    yield StreamPiece(cursor, b"", skipped)
                    continue
                data = live.pieces.read(cursor, end, end, is_last=quiet or live.closed or live.state.eof)
                if not data:
                    break
                cursor += len(data)
                yield StreamPiece(cursor - len(data), data)
            if live.closed or live.state.eof:
                return
            await asyncio.wait((changed,), timeout=HOLD_SECONDS if cursor < end else None)
            quiet = cursor < end and not changed.done()
        finally:
            changed.cancel()
