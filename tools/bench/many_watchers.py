"""Many plain sockets on one conversation, in a process of their own: they draw nothing, but acknowledge what came."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

WINDOW = 256 * 1024


class Watchers:
    """The process of the sockets, as the benchmark sees it: each line says up to where the slowest one is."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None

    def begin(self, process: asyncio.subprocess.Process) -> None:
        """Take the process that was started."""
        self._process = process

    async def reach(self, cursor: int) -> None:
        """Wait until every socket has had all up to a cursor."""
        if self._process is None:
            return
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            if int(line) >= cursor:
                return
        raise RuntimeError("the watchers have gone")


async def _watch(url: str, token: str, conversation_id: str, note: Any) -> None:
    from websockets.asyncio.client import connect

    address = (
        f"{url.replace('http', 'ws', 1)}/v1/conversations/{conversation_id}/ws"
        f"?join=screen&scrollback=1000&window={WINDOW}&max_lag=1048576&data=false"
    )
    async with connect(
        address, additional_headers={"Authorization": f"Bearer {token}"}, max_size=None, compression=None,
        ping_interval=None,
    ) as socket:  # fmt: skip
        cursor = 0
        async for frame in socket:
            if isinstance(frame, bytes):
                cursor += len(frame)
            else:
                content = json.loads(frame)
                if content["type"] != "screen":
                    continue
                cursor = content["cursor"]
            await socket.send(json.dumps({"type": "ack", "cursor": cursor}))
            note(cursor)


async def _serve(url: str, token: str, conversation_id: str, count: int) -> None:
    cursors = [-1] * count
    said = -1

    def noted(index: int, cursor: int) -> None:
        nonlocal said
        cursors[index] = cursor
        if (least := min(cursors)) > said:
            said = least
            print(least, flush=True)

    def one(index: int) -> Any:
        return _watch(url, token, conversation_id, lambda cursor: noted(index, cursor))

    await asyncio.gather(*(one(index) for index in range(count)))


def main() -> None:
    """Watch until killed."""
    url, token, conversation_id, count = sys.argv[1:]
    asyncio.run(_serve(url, token, conversation_id, int(count)))
