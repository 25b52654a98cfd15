"""A medium that forgets: every write and every sync of a record is noted, then power is lost at a random moment.

Recorder and engine write a conversation, in one process. Of what was written and not synced at the moment of the loss,
each sector of 512 bytes independently holds what was written to it up to some random moment; the file's length is that
of some moment, too. Then the recorder repairs what is found, the next engine derives from it, and all of it must be
what a prefix of the conversation gives, with everything in it that a client was notified of and that the durability
promises.
"""

from __future__ import annotations

import asyncio
import errno
import mmap
import os
import random
import tempfile
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from blockpty.errors import StorageFull
from blockpty.host import recovery, sync_policy
from blockpty.host import terminal as terminals
from blockpty.host.loop import Loop, Work
from blockpty.host.protocol import DURABILITIES
from blockpty.host.record import StorageFailed
from blockpty.host.state import SLOT_BYTES, ShellHandle
from blockpty.host.terminal import Terminal
from blockpty.model.entries import Entry
from blockpty.runtime.follower import RecordFollower
from blockpty.spool.layout import Layout
from blockpty.testing import Recording
from tests.support import disk
from tools.torture.report import Row

T = TypeVar("T")
SECTOR = 512
# Losses of power that are tried on one conversation before another one is written.
LOSSES = 50
SEGMENT = 4096
# The conversations are short: so is what may be missing.
INTERVAL = 512
_CALLS = ("pwrite", "write", "splice", "ftruncate", "fdatasync", "fsync", "replace", "rename", "unlink")


class Medium:
    """What was written to each file of a directory, in order; each write with its place in the whole."""

    def __init__(self, directory: Path) -> None:
        self._directory = f"{directory}/"
        self._real = {name: getattr(os, name) for name in _CALLS}
        # (file, "write" | "cut" | "sync" | "move" | "gone", offset or name, data)
        self.done: list[tuple[str, str, Any, bytes]] = []
        # Called before each call: a test may let it fail.
        self.before: Any = None

    @contextmanager
    def watching(self) -> Iterator[None]:
        for name in _CALLS:
            setattr(os, name, getattr(self, f"_{name}"))
        try:
            yield
        finally:
            for name, real in self._real.items():
                setattr(os, name, real)

    def _file(self, descriptor: int) -> str | None:
        try:
            path = os.readlink(f"/proc/self/fd/{descriptor}")
        except OSError:
            return None
        return path.removeprefix(self._directory) if path.startswith(self._directory) else None

    def _ask(self, name: str, file: str | None) -> None:
        if self.before is not None and file is not None:
            self.before(name, file)

    def _note(self, file: str | None, what: str, place: Any = 0, data: bytes = b"") -> None:
        if file is not None:
            self.done.append((file, what, place, data))

    def _pwrite(self, descriptor: int, data: Any, offset: int) -> int:
        file = self._file(descriptor)
        self._ask("pwrite", file)
        written: int = self._real["pwrite"](descriptor, data, offset)
        self._note(file, "write", offset, bytes(memoryview(data)[:written]))
        return written

    def _write(self, descriptor: int, data: Any) -> int:
        file = self._file(descriptor)
        self._ask("write", file)
        written: int = self._real["write"](descriptor, data)
        if file is not None:
            self._note(file, "write", os.fstat(descriptor).st_size - written, bytes(memoryview(data)[:written]))
        return written

    def _splice(self, src: int, dst: int, count: int, **more: Any) -> int:
        file = self._file(dst)
        self._ask("splice", file)
        moved: int = self._real["splice"](src, dst, count, **more)
        if file is not None:
            descriptor = os.open(self._directory + file, os.O_RDONLY)
            self._note(file, "write", more["offset_dst"], os.pread(descriptor, moved, more["offset_dst"]))
            os.close(descriptor)
        return moved

    def _ftruncate(self, descriptor: int, size: int) -> None:
        file = self._file(descriptor)
        self._ask("ftruncate", file)
        self._real["ftruncate"](descriptor, size)
        self._note(file, "cut", size)

    def _fdatasync(self, descriptor: int) -> None:
        file = self._file(descriptor)
        self._ask("fdatasync", file)
        # What a disk would need a moment for.
        if file is not None and os.path.isfile(self._directory + file):
            self._note(file, "sync")

    _fsync = _fdatasync

    def _replace(self, src: Any, dst: Any, **more: Any) -> None:
        source, target = os.fspath(src), os.fspath(dst)
        inside = str(source).startswith(self._directory)
        self._ask("replace", str(target) if inside else None)
        self._real["replace"](src, dst, **more)
        if inside:
            self._note(str(source)[len(self._directory) :], "move", str(target)[len(self._directory) :])

    _rename = _replace

    def _unlink(self, path: Any, **more: Any) -> None:
        self._real["unlink"](path, **more)
        if str(path).startswith(self._directory):
            self._note(str(path)[len(self._directory) :], "gone")

    def after_the_loss(self, moment: int, chance: random.Random) -> dict[str, bytes]:
        """Return the files as they are found when power was lost after that many calls."""
        files: dict[str, _File] = {}
        for file, what, place, data in self.done[:moment]:
            if what == "move":
                if file in files:
                    files[place] = files.pop(file)
            elif what == "gone":
                files.pop(file, None)
            else:
                files.setdefault(file, _File()).take(what, place, data)
        return {name: file.found(chance) for name, file in files.items()}


class _File:
    def __init__(self) -> None:
        self._synced = b""
        self._since: list[tuple[int, bytes]] = []
        self._cuts: list[tuple[int, int]] = []

    def take(self, what: str, place: int, data: bytes) -> None:
        if what == "write":
            self._since.append((place, data))
        elif what == "cut":
            # The file systems keep the order of lengths.
            self._synced = _with(self._synced, self._since)[:place]
            self._since = []
        else:
            self._synced = _with(self._synced, self._since)
            self._since = []

    def found(self, chance: random.Random) -> bytes:
        """What a sector holds is what it held after some of the writes; the length is one that the file had."""
        whole = _with(self._synced, self._since)
        states = [self._synced]
        for place, data in self._since[-64:]:
            states.append(_with(states[-1], [(place, data)]) if self._since[-64:] == self._since else whole)
        length = len(chance.choice(states))
        out = bytearray(length)
        keen = chance.choice((0.1, 0.5, 0.9))
        for begin in range(0, length, SECTOR):
            end = min(begin + SECTOR, length)
            state = states[-1] if chance.random() < keen else chance.choice(states)
            piece = state[begin:end]
            out[begin : begin + len(piece)] = piece
        return bytes(out)


def _with(content: bytes, writes: list[tuple[int, bytes]]) -> bytes:
    if not writes:
        return content
    out = bytearray(content)
    for place, data in writes:
        if len(out) < place + len(data):
            out.extend(bytes(place + len(data) - len(out)))
        out[place : place + len(data)] = data
    return bytes(out)


class _Later(Loop):
    """Makes calls beside it in this thread, when `go_on` is called or something waits: so that a seed repeats a run."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting: list[Work] = []

    def start(self, work: Work) -> None:
        self.waiting.append(work)
        wait = work.wait

        def run() -> None:
            if work in self.waiting:
                self.waiting.remove(work)
                work.run()
            wait()

        work.wait = run  # type: ignore[method-assign]

    def go_on(self) -> None:
        """Let all calls come to their end, and notify their callers."""
        while self.waiting:
            self.waiting.pop(0).run()
            self.turn()


class _Desk:
    """What a terminal needs of a recorder; a client knows what it is notified of here."""

    splice = True

    def __init__(self) -> None:
        self.loop = _Later()
        self.slots = mmap.mmap(-1, SLOT_BYTES)
        self.grown: Any = lambda: None

    def grew(self, conversation: str, count: int) -> None:
        self.grown()

    def tell_keeper(self, shell: ShellHandle) -> None:
        pass

    def finished(self, shell: ShellHandle) -> None:
        pass


class Notified:
    """Sizes that clients were notified of, each with the moment."""

    def __init__(self) -> None:
        self.sizes: list[tuple[int, int, int]] = []
        self.events: list[tuple[int, int]] = []

    def at(self, moment: int) -> tuple[int, int, int]:
        """Return how much of stream, timeline and events.jsonl a client knew of."""
        stream, timeline = max(((s, t) for when, s, t in self.sizes if when <= moment), default=(0, 0))
        return stream, timeline, max((size for when, size in self.events if when <= moment), default=0)


class Session:
    """A conversation that recorder and engine write, step by step."""

    def __init__(self, directory: Path, durability: str, recording: Recording, chance: random.Random) -> None:
        self.layout, self.durability, self.recording, self._chance = Layout(directory), durability, recording, chance
        self.medium, self.notified = Medium(directory), Notified()
        self.refused: list[Exception] = []
        self._terminal: Any = None
        for place in (directory, self.layout.stream, self.layout.outputs):
            place.mkdir(mode=0o700, exist_ok=True)

    async def write(self) -> None:
        """Have all of it written."""
        master, slave = os.openpty()
        tty.setraw(slave)
        os.set_blocking(master, False)
        first = self.recording.entries[0]
        wire = {
            "conversation": disk.NAME, "directory": str(self.layout.directory), "argv": ["cat"], "pid": 4242,
            "entry": {name: value for name, value in first.fields.items() if name != "pid"}, "persist": False,
            "segment_bytes": SEGMENT, "slot": 0, "durability": self.durability, "cgroup": None,
        }  # fmt: skip
        self._recorder, medium = _Desk(), self.medium
        with medium.watching():
            shell = ShellHandle(wire, [master, *os.pipe(), -1])
            terminal = self._terminal = self._tried(lambda: Terminal(self._recorder, shell))
            self._recorder.grown = lambda: self.notified.sizes.append(
                (len(medium.done), terminal.stream.offset, terminal.timeline.size)
            )
            terminal.begin(fresh=True)
            self._settle()
            live = self._tried(
                lambda: RecordFollower(disk.NAME, self.layout, owner=True, durability=self.durability)
            )
            for step in list(self.recording.steps())[1:]:
                self._step(step, slave)
                if self.durability != "process" and self._chance.random() < 0.1:
                    terminal.sync.interval_over()
                    self._settle()
                if self._chance.random() < 0.3:
                    self._recorder.loop.go_on()
                    self._settle()
                self._follow(live)
                if self._chance.random() < 0.1:
                    live.deriver.save()
            while live.deriver.problem is not None:
                live.pump()
            live.close()
            terminal.release()
        self._recorder.loop.close()
        shell.close()
        os.close(slave)

    def _step(self, step: Entry | bytes, slave: int) -> None:
        terminal = self._terminal
        if isinstance(step, Entry):
            boot = {"boot": recovery.boot_id()} if step.kind == "spawn" else {}
            self._tried(lambda: terminal.write(step.kind, {**step.fields, **boot}))
        else:
            os.write(slave, step)
            terminal.move(whole=True)
        self._settle()

    def _tried(self, action: Callable[[], T]) -> T:
        """Do something until it is done; the caller gets what is in its way, and nothing else."""
        while True:
            try:
                return action()
            except (StorageFailed, StorageFull, OSError) as refusal:
                self.refused.append(refusal)
                self._settle()

    def _settle(self) -> None:
        """Wait until the recorder moves again."""
        while self._terminal is not None and self._terminal.failed is not None:
            self.refused.append(self._terminal.failed)
            self._recorder.loop.turn()
            self._terminal.move(whole=True)

    def _follow(self, live: RecordFollower) -> None:
        before = live.state.next_block, live.state.block is not None
        live.pump()
        if live.deriver.problem is not None:
            self.refused.append(live.deriver.problem)
            return
        border = before != (live.state.next_block, live.state.block is not None)
        if self.durability == "always" or (self.durability == "block" and border):
            sizes = live.deriver.sizes()
            self.notified.events.append((len(self.medium.done), sizes[0] if sizes is not None else 0))


def _whole(directory: Path) -> tuple[bytes, bytes]:
    segments = sorted(path for path in (directory / "stream").iterdir() if path.name.isdigit())
    return b"".join(path.read_bytes() for path in segments), (directory / "timeline.jsonl").read_bytes()


async def _look(session: Session, moment: int, place: Path, chance: random.Random) -> str | None:
    """Lose power, start again, and say what is wrong."""
    stream, timeline = _whole(session.layout.directory)
    layout = Layout(place)
    layout.stream.mkdir(parents=True)
    layout.outputs.mkdir()
    for name, content in session.medium.after_the_loss(moment, chance).items():
        path = place / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    recovery.recover(str(place), "the next start")
    recovery.recover(str(place), "the next start")
    layout.timeline.touch()
    found, lines = _whole(place)
    if not stream.startswith(found):
        return f"the stream is no prefix: {len(found)} bytes"
    lines = lines[: lines.rfind(b"\n") + 1]
    if not timeline.startswith(lines):
        return f"the timeline is no prefix: {len(lines)} bytes"
    left = Recording.load(place)
    if any(entry.offset > len(found) for entry in left.entries):
        return "an entry speaks of bytes that are missing"
    notified = session.notified.at(moment)
    if session.durability == "always" and (len(found) < notified[0] or len(lines) < notified[1]):
        return f"{notified[:2]} had been notified, {len(found), len(lines)} is there"
    if session.durability in ("interval", "block") and len(found) + len(lines) <= notified[0] + notified[1] - INTERVAL:
        return f"of {notified[:2]} {len(found), len(lines)} is left"
    derived, clean = await disk.recover(layout), disk.clean(left)
    if (derived.events, derived.blocks) != (clean.events, clean.blocks):
        return "what is derived is not what the record gives"
    known = disk.clean(Recording.load(session.layout.directory)).events[: notified[2]]
    if not derived.events.startswith(known):
        return f"{notified[2]} bytes of events had been notified, {len(derived.events)} are there"
    return None


def lose_power(tries: int) -> Iterator[Row]:
    """Lose power `tries` times under each durability."""
    sync_policy.INTERVAL_BYTES, sync_policy.BEGIN_BYTES = INTERVAL, INTERVAL // 2
    for durability in DURABILITIES:
        row = Row(f"power lost, durability = {durability}")
        kept = 0
        while row.tries < tries:
            seed = random.randrange(2**32)
            chance = random.Random(seed)
            with tempfile.TemporaryDirectory(prefix="torture") as place:
                directory = Path(place) / "whole"
                session = Session(directory, durability, disk.conversation(), chance)
                asyncio.run(session.write())
                for number in range(min(LOSSES, tries - row.tries)):
                    moment = chance.randrange(len(session.medium.done) + 1)
                    again = Path(place) / f"found{number}"
                    problem = asyncio.run(_look(session, moment, again, chance))
                    if problem is not None:
                        row.wrong.append(f"{durability}, seed {seed}, {number}, call {moment}: {problem}")
                    kept += sum(path.stat().st_size for path in (again / "stream").iterdir() if path.name.isdigit())
                    row.tries += 1
        row.found = {"stream kept": f"{kept / 1e6:.1f} MB, always a prefix with all that was promised"}
        yield row


async def _whole_after(session: Session) -> str | None:
    """Write a conversation in which a call fails, and say what is wrong with it then."""
    await session.write()
    for refusal in session.refused:
        if not isinstance(refusal, (StorageFailed, StorageFull)) and getattr(refusal, "errno", None) != errno.EIO:
            return f"refused with {refusal!r}"
    left = Recording.load(session.layout.directory)
    if left.stream != session.recording.stream:
        return f"{len(left.stream)} of {len(session.recording.stream)} bytes"
    # The time that it takes to go on may be a silence of its own.
    passing = ("tick", "storage", "damaged", "silence")
    kinds = [entry.kind for entry in left.entries if entry.kind not in passing]
    wanted = [entry.kind for entry in session.recording.entries if entry.kind not in passing]
    if kinds != wanted or any(entry.kind == "damaged" for entry in left.entries):
        return f"the timeline has {kinds}, not {wanted}"
    derived, clean = disk.derived_files(session.layout), disk.clean(left)
    return None if (derived.events, derived.blocks) == (clean.events, clean.blocks) else "what is derived is wrong"


def fail_calls(step: int) -> Iterator[Row]:
    """Let the first, second, third ... call of each kind fail, under each durability; `step`: every so many."""
    terminals.RETRY_SECONDS = 0.001
    sync_policy.INTERVAL_BYTES, sync_policy.BEGIN_BYTES = INTERVAL, INTERVAL // 2
    for durability in DURABILITIES:
        row, refused = Row(f"the n-th call fails for every n, durability = {durability}"), 0
        for name in ("pwrite", "write", "splice", "ftruncate", "fdatasync", "fsync", "replace"):
            number = 1
            while True:
                seen = 0

                def fail(call: str, file: str, name: str = name, number: int = number) -> None:
                    nonlocal seen
                    if call == name:
                        seen += 1
                        if seen == number:
                            raise OSError(errno.EIO, f"{call} number {number}", file)

                with tempfile.TemporaryDirectory(prefix="torture") as place:
                    session = Session(Path(place) / "whole", durability, disk.conversation(), random.Random(1))
                    session.medium.before = fail
                    try:
                        problem = asyncio.run(_whole_after(session))
                    except Exception as raised:  # noqa: BLE001 - nothing else may come out, whatever it is
                        problem = f"raised {raised!r}"
                if seen < number:
                    break
                row.tries += 1
                refused += bool(session.refused)
                if problem is not None:
                    row.wrong.append(f"{durability}, {name} number {number}: {problem}")
                number += step
        row.found = {"reported to the caller": str(refused), "made up for": "the others"}
        yield row
