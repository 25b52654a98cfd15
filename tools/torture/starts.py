"""Starts: killed inside their recovery at every call that changes a file, and with a thousand conversations."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import blockpty
from blockpty.host import recovery
from blockpty.spool.layout import Layout
from tests.support import disk, homes
from tools.torture.power import Medium, Session
from tools.torture.report import Row, percentile

USABLE_SECONDS = 2.0


def _start(place: Path) -> None:
    recovery.recover(str(place), "the next start")
    asyncio.run(disk.recover(Layout(place)))


def _content(place: Path) -> dict[str, bytes]:
    """What a start must leave, whatever happened on the way."""
    return {
        str(path.relative_to(place)): path.read_bytes()
        for path in place.rglob("*")
        if path.is_file() and path.suffix in (".jsonl", ".out", "") and path.name != "forced"
    }


def _dies(place: Path, call: int) -> bool:
    """Start, in a process of its own that is gone at its n-th call; return whether it got so far."""
    child = os.fork()
    if child == 0:
        left = call

        def before(_name: str, _file: str) -> None:
            nonlocal left
            left -= 1
            if not left:
                os._exit(9)

        medium = Medium(place)
        medium.before = before
        try:
            with medium.watching():
                _start(place)
        except BaseException:  # noqa: BLE001 - the parent is notified
            os._exit(1)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status == 1:
        raise SystemExit(f"a start failed at call {call}")
    return status == 9


def kill_recoveries(tries: int) -> Iterator[Row]:
    """Lose power, then kill the start at its first call, the next at its second, and so on."""
    row, homes_seen = Row("killed inside the recovery after a loss of power, at every call"), 0
    while row.tries < tries:
        homes_seen += 1
        with tempfile.TemporaryDirectory(prefix="torture") as where:
            chance = random.Random(random.randrange(2**32))
            session = Session(Path(where) / "whole", "interval", disk.conversation(), chance)
            asyncio.run(session.write())
            found = session.medium.after_the_loss(chance.randrange(20, len(session.medium.done)), chance)
            once, often = Path(where) / "once", Path(where) / "often"
            for place in (once, often):
                Layout(place).stream.mkdir(parents=True)
                Layout(place).outputs.mkdir()
                for name, content in found.items():
                    (place / name).write_bytes(content)
                Layout(place).timeline.touch()
            _start(once)
            call = 1
            while _dies(often, call) and row.tries < tries:
                row.tries += 1
                call += 1
            _start(often)
            if _content(often) != _content(once):
                row.wrong.append(f"after {call} kills the files are not those of one start")
    row.found = {"conversations": str(homes_seen), "the files": "those of an uninterrupted start"}
    yield row


def start_many(count: int) -> Iterator[Row]:
    """Start with so many conversations in the home, ended ones and some whose shell was lost."""
    yield asyncio.run(_many(count))


async def _many(count: int) -> Row:
    row = Row(f"{count:,} conversations in a home", tries=count)
    place = Path(tempfile.mkdtemp(prefix="torture"))
    try:
        home = place / "home"
        await homes.fill(home, [f"c{number}" for number in range(count)], homes.recording(ended=True))
        await homes.fill(home, ["lost"], homes.recording(ended=False))
        base = len(os.listdir("/proc/self/fd"))
        async with blockpty.Engine(home) as engine:
            begun = time.monotonic()
            listed = (await engine.list()).conversations
            conversation = await engine.conversation("c7")
            await conversation.read(0)
            usable = time.monotonic() - begun
            times = []
            for number in random.sample(range(count), min(count, 200)):
                at = time.monotonic()
                await (await engine.conversation(f"c{number}")).status()
                times.append(time.monotonic() - at)
            held = len(os.listdir("/proc/self/fd")) - base
        lost = [info.lost for info in listed if info.conversation_id == "lost"]
        row.found = {
            "usable after": f"{usable:.2f} s", "one more p99": percentile(times, 0.99),
            "descriptors after 200 of them": str(held),
        }  # fmt: skip
        if len(listed) != count + 1 or lost != ["host_gone"]:
            row.wrong.append(f"{len(listed)} listed, lost {lost}")
        if usable > USABLE_SECONDS:
            row.late.append(f"usable after {usable:.2f} s")
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return row
