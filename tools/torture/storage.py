"""A disk that fills and is freed, again and again."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import blockpty
from tests.support.processes import directory_of_homes
from tools.torture.report import Row, percentile

# Of the small file system: what every cycle prints, three times over (stream, output, and what waits), must fit in it.
SIZE_KIB = 1024
LINES = 2500
LEFT_BYTES = 8192
PROMISED_REFUSED_SECONDS = 1.0
PROMISED_RESUME_SECONDS = 2.0


@contextlib.contextmanager
def small(place: Path, kib: int = SIZE_KIB) -> Iterator[None]:
    """Have a file system of so many KiB at `place`. Needs root, or `unshare --user --map-root-user --mount`."""
    options = f"size={kib}k,mode=700"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill(ballast: Path) -> None:
    """Leave `LEFT_BYTES` of space, or less."""
    with contextlib.suppress(OSError), ballast.open("ab", buffering=0) as file:
        while True:
            file.write(b"b" * 4096)
    with contextlib.suppress(OSError):
        os.truncate(ballast, max(0, ballast.stat().st_size - LEFT_BYTES))


async def _cycles(home: Path, place: Path, tries: int, row: Row) -> None:
    refused: list[float] = []
    resumed: list[float] = []
    lost = 0
    ballast = place / "ballast"
    async with blockpty.Engine(home) as engine:
        while row.tries < tries:
            # What is finished is removed after some cycles, or it would fill the small disk for good.
            conversation = await engine.open(f"c{row.tries}", env={"HISTFILE": "/dev/null"})
            for _ in range(min(5, tries - row.tries)):
                first = row.tries * LINES
                gate = home / f"gate{row.tries}"
                os.mkfifo(gate)
                prints = f"seq {first + 1} {first + LINES}"
                # What was typed before it was noticed is the program's, not the shell's.
                heard = "while read -r -t 0.2 x; do :; done"
                begun = await conversation.exec_block(f"stty -echo -icanon; read x <{gate}; {prints}; {heard}")
                await conversation.wait_for({"idle_ms": 50}, from_cursor=begun.cursor)
                fill(ballast)
                gate.write_text("\n")
                # Noticed by the first that writes, the recorder the stream or we an input.
                begin = time.monotonic()
                while True:
                    asked = time.monotonic()
                    try:
                        await conversation.send("x" * 2000 + "\n")
                    except blockpty.StorageFull:
                        refused.append(time.monotonic() - asked)
                        break
                    except blockpty.NoSession:
                        row.wrong.append("everything fitted")
                        break
                    if time.monotonic() - begin > 10:
                        row.wrong.append("a full disk was not noticed")
                        break
                ballast.unlink()
                free = time.monotonic()
                while True:
                    status = await conversation.host.inspect(conversation.id)
                    if status.storage is None:
                        break
                resumed.append(time.monotonic() - free)
                done = await conversation.wait_for({"token": "PROMPT"}, from_cursor=begun.cursor, timeout_ms=30_000)
                block = (await conversation.block(begun.block_id)).block
                expected = b"".join(b"%d\n" % number for number in range(first + 1, first + LINES + 1))
                path = conversation.directory / str(block.out_path)
                found = path.read_bytes() if done.matched else b""
                if found != expected:
                    lost += max(1, len(expected) - len(found))
                    row.wrong.append(f"cycle {row.tries}: {len(found)} of {len(expected)} bytes, or others")
                row.tries += 1
            verified = await conversation.verify()
            if not verified.clean:
                row.wrong.append(str(verified.differences[:3]))
            states = [e.fields["state"] async for e in conversation.events(follow=False) if e.type == "storage"]
            if states != ["full", "resumed"] * (len(states) // 2):
                row.wrong.append(str(states))
            await conversation.close()
            await asyncio.to_thread(shutil.rmtree, conversation.directory)
    row.found |= {
        "bytes lost": str(lost),
        "refused p99": percentile(refused, 0.99), "longest": percentile(refused, 1),
        "going on p50": percentile(resumed, 0.5), "longest after space": percentile(resumed, 1),
    }  # fmt: skip
    if max(refused, default=0) > PROMISED_REFUSED_SECONDS:
        row.late.append("a refusal took too long")
    if max(resumed, default=0) > PROMISED_RESUME_SECONDS:
        row.late.append("it did not go on in time")


def fill_and_free(tries: int) -> Iterator[Row]:
    """Yield the row of the small disk."""
    with directory_of_homes("torture") as folder:
        home = folder / "home"
        place = home / "conversations"
        home.mkdir(mode=0o700)
        place.mkdir(mode=0o700)
        row = Row(f"a disk of {SIZE_KIB} KiB is filled and freed while a program prints")
        with small(place):
            asyncio.run(_cycles(home, place, tries, row))
        yield row
