"""Conversations that work, a fault every few seconds, and the invariants after each.

    python tools/soak                       five minutes
    python tools/soak --minutes 480         a night
    python tools/soak --fault full --minutes 1
    python tools/soak --seed 7              the same faults in the same order

The faults: kill -9 of the engine, the recorder, the keeper or a shell; SIGSTOP of one of them for a while; a full disk
(a file system of its own, as root); the derived files or the index removed while no engine runs. The conversations keep
their newest part only, so that a night fits in the file system. After each: nothing recorded has changed (I1), `verify`
finds nothing (I2 to I6, I8), every command that is kept and whose end was reported is there with exactly what it
printed, no command has run twice, and no password is in any file (I7). At the end memory and descriptors must not have
grown.

The first time that something is wrong, the home is copied to where `--evidence` says, as it is at that moment.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import select
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.support.processes import end_left_processes
from tools.soak.worker import SECRET, work

FAULTS = ("engine", "recorder", "keeper", "shell", "stop", "full", "derived", "index")
ANSWER_SECONDS = 400
FILE_SYSTEM_MIB = 400
# What memory may grow by between the first and the last third of a soak, and descriptors: an engine keeps up to 16
# finished outputs of a conversation open, until they are synced together.
GROWTH_KIB = 32 * 1024
GROWTH_FILES = 16
# An engine that has just come up is smaller than one that has worked, so a few looks say nothing.
LOOKS = 12
# Of a stream whose beginning has gone since, so much is compared.
TAIL_BYTES = 4 * 1024 * 1024


class Seen(NamedTuple):
    """What a stream held at the last look: from `begin` to `end`, and the sum of that and of what is behind `tail`."""

    begin: int
    end: int
    whole: int
    tail: int
    ending: int


class Soak:
    """A home, the engine that works in it, and what is known of both."""

    def __init__(self, place: Path, conversations: int, seed: int, evidence: Path) -> None:
        self.place, self.home, self.evidence = place, place / "home", evidence
        self.names = [f"c{number}" for number in range(conversations)]
        self.seed, self.lives = seed, 0
        self.wrong: list[str] = []
        self.facts = self.acts = 0
        self.seen: dict[str, Seen] = {}
        # The conversations whose beginning is not kept any more.
        self.dropped: set[str] = set()
        self.sizes: dict[str, list[tuple[int, int]]] = {}
        self.engine: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start an engine."""
        self.lives += 1
        life = f"{self.seed}.{self.lives}"
        command = [sys.executable, __file__, "--life", life, "--worker", str(self.place), *self.names]
        self.engine = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.answer("ready")

    def tell(self, order: str, key: str) -> Any:
        """Give an order and return the answer."""
        assert self.engine is not None and self.engine.stdin is not None
        self.engine.stdin.write(f"{order}\n".encode())
        return self.answer(key)

    def answer(self, key: str) -> Any:
        """Return the line that holds a key; what went wrong in between is noted."""
        assert self.engine is not None and self.engine.stdout is not None
        deadline = time.monotonic() + ANSWER_SECONDS
        while True:
            if not select.select([self.engine.stdout], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise TimeoutError(f"the engine does not say {key}")
            line = self.engine.stdout.readline()
            if not line:
                raise EOFError(f"the engine left with {self.engine.wait()} before it said {key}")
            found = json.loads(line)
            if "wrong" in found:
                self.wrong.append(found["wrong"])
            if key in found:
                return found

    def kill_engine(self) -> None:
        """Kill the engine, and take its last words."""
        assert self.engine is not None and self.engine.stdout is not None and self.engine.stdin is not None
        self.engine.kill()
        self.engine.wait()
        for line in self.engine.stdout.read().splitlines():
            with contextlib.suppress(ValueError):
                if "wrong" in (found := json.loads(line)):
                    self.wrong.append(found["wrong"])
        self.engine.stdin.close()
        self.engine.stdout.close()

    def pid(self, role: str) -> int:
        """Return the process of a role: engine, recorder or keeper."""
        if role == "engine":
            assert self.engine is not None
            return self.engine.pid
        return int(json.loads((self.home / "host" / "pid").read_bytes())[role])

    def check(self, after: str) -> None:
        """Look at everything."""
        found = self.tell("check", "checked")
        self.facts += found["checked"]
        self.acts += found["acts"]
        self.wrong += [f"after {after}: {one}" for one in found["wrong_all"]]
        for name in self.names:
            self._only_grown(name, after)
        self._no_secret(after)
        for role in ("engine", "recorder", "keeper"):
            with contextlib.suppress(OSError, ValueError, KeyError):
                self.sizes.setdefault(role, []).append(_size(self.pid(role)))
        self.keep_evidence()

    def keep_evidence(self) -> None:
        """Copy the home, with what the conversations know for certain, if this is the first time something is wrong."""
        if not self.wrong or self.evidence.exists():
            return
        running = [] if self.engine is None else [self.engine.pid]
        with contextlib.suppress(OSError, ValueError, KeyError):
            running.append(self.pid("recorder"))
        for pid in running:
            _kill(pid, signal.SIGSTOP)
        try:
            shutil.copytree(self.place, self.evidence, symlinks=True, ignore=_no_files, dirs_exist_ok=True)
        finally:
            for pid in running:
                _kill(pid, signal.SIGCONT)
        print(f"the home as it is now: {self.evidence}", flush=True)

    def _only_grown(self, name: str, after: str) -> None:
        """I1: what was there is there, byte for byte, but for a beginning that is not kept."""
        segments = []
        for path in sorted((self.home / "conversations" / name / "stream").iterdir()):
            with contextlib.suppress(FileNotFoundError):
                segments.append((int(path.name), path.read_bytes()))
        begin, content = segments[0][0], b"".join(data for _, data in segments)
        before = self.seen.get(name, Seen(begin, begin, 0, begin, 0))
        known = (before.begin, before.whole) if begin == before.begin else (before.tail, before.ending)
        same = known[0] < begin or zlib.crc32(content[known[0] - begin : before.end - begin]) == known[1]
        if begin < before.begin or begin + len(content) < before.end or not same:
            self.wrong.append(f"after {after}: {name}: the stream is no continuation of what it was")
        end = begin + len(content)
        tail = max(begin, end - TAIL_BYTES)
        self.seen[name] = Seen(begin, end, zlib.crc32(content), tail, zlib.crc32(content[tail - begin :]))
        self.dropped |= {name} if begin else set()

    def _no_secret(self, after: str) -> None:
        """I7: what was typed at a password prompt is nowhere."""
        for path in self.home.rglob("*"):
            with contextlib.suppress(OSError):
                if path.is_file() and not path.is_symlink() and SECRET.encode() in path.read_bytes():
                    self.wrong.append(f"after {after}: a password is in {path.relative_to(self.home)}")

    def grown(self) -> Iterator[str]:
        """Yield how memory and descriptors went, and note what grew."""
        for role, sizes in self.sizes.items():
            third = max(1, len(sizes) // 3)
            memory, files = [statistics.median(column) for column in zip(*sizes[:third], strict=True)]
            memory_after, files_after = [statistics.median(column) for column in zip(*sizes[-third:], strict=True)]
            grew = memory_after > memory + GROWTH_KIB or files_after > files + GROWTH_FILES * len(self.names)
            if grew and len(sizes) >= LOOKS:
                self.wrong.append(f"{role} grew")
            mebibytes = f"{memory / 1024:.0f} to {memory_after / 1024:.0f} MiB"
            yield f"{role}: {mebibytes}, {files:.0f} to {files_after:.0f} descriptors"

    # The faults

    def fault(self, name: str, chance: random.Random) -> None:
        """Do it."""
        if name == "engine":
            self.kill_engine()
            self.start()
        elif name in ("recorder", "keeper"):
            os.kill(self.pid(name), signal.SIGKILL)
        elif name == "shell":
            _kill(chance.choice([pid for pid in self.tell("shells", "shells")["shells"] if pid] or [0]), signal.SIGKILL)
        elif name == "stop":
            self._stop(chance)
        elif name == "full":
            self._fill(chance.uniform(0.5, 2.0))
        else:
            self.kill_engine()
            self._remove(name, chance)
            self.start()

    def _stop(self, chance: random.Random) -> None:
        role = chance.choice(["engine", "recorder", "keeper", "shell"])
        shells = [pid for pid in self.tell("shells", "shells")["shells"] if pid]
        pid = self.pid(role) if role != "shell" else chance.choice(shells or [0])
        _kill(pid, signal.SIGSTOP)
        time.sleep(chance.uniform(0.1, 1.5))
        _kill(pid, signal.SIGCONT)

    def _fill(self, seconds: float) -> None:
        ballast = self.home / "ballast"
        with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
            for size in (1024 * 1024, 4096):
                with contextlib.suppress(OSError):
                    while True:
                        file.write(b"x" * size)
        time.sleep(seconds)
        ballast.unlink()

    def _remove(self, name: str, chance: random.Random) -> None:
        if name == "index":
            for path in [*self.home.glob("catalog*"), *self.home.glob("index*"), *self.home.glob("search*")]:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            return
        directory = self.home / "conversations" / chance.choice(self.names)
        for path in [directory / "checkpoint.json", directory / "events.jsonl", directory / "blocks.jsonl"]:
            if chance.random() < 0.6:
                path.unlink(missing_ok=True)
        for path in directory.glob("blocks/*.out"):
            if chance.random() < 0.3:
                path.unlink()
                (directory / "checkpoint.json").unlink(missing_ok=True)


def _no_files(directory: str, names: list[str]) -> list[str]:
    """Return what cannot be copied: sockets and pipes."""
    return [name for name in names if (path := Path(directory, name)).is_socket() or path.is_fifo()]


def _kill(pid: int, number: int) -> None:
    if pid:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def _size(pid: int) -> tuple[int, int]:
    """Return memory in KiB and descriptors of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    memory = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    return memory, len(os.listdir(f"/proc/{pid}/fd"))


@contextlib.contextmanager
def file_system(place: Path) -> Iterator[bool]:
    """Have a small file system at the home; say whether there is one."""
    home = place / "home"
    home.mkdir(mode=0o700)
    made = os.geteuid() == 0 and shutil.which("mount") is not None and not subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={FILE_SYSTEM_MIB}m,mode=700", "tmpfs", str(home)],
        capture_output=True, check=False,
    ).returncode  # fmt: skip
    try:
        yield made
    finally:
        if made:
            subprocess.run(["umount", "-l", str(home)], check=True)


def soak(given: argparse.Namespace, seed: int) -> int:
    """Run; return how much went wrong."""
    chance, done = random.Random(seed), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="soak") as place, file_system(Path(place)) as small:
        faults = [one for one in given.fault or FAULTS if small or one != "full"]
        evidence = given.evidence or Path(tempfile.gettempdir(), f"soak-evidence-{seed}")
        one = Soak(Path(place), given.conversations, seed, evidence)
        try:
            one.start()
            one.check("the start")
            end = time.monotonic() + given.minutes * 60
            while time.monotonic() < end and not (given.faults and sum(done.values()) >= given.faults):
                time.sleep(chance.uniform(0.2, 2 * given.pause))
                name = chance.choice(faults)
                one.fault(name, chance)
                done[name] += 1
                time.sleep(chance.uniform(0, given.pause))
                one.check(name)
                print(f"{sum(done.values()):5} {name:9} {one.facts:8,} facts {len(one.wrong)} wrong", flush=True)
                if len(one.wrong) > 20:
                    break
            one.tell("stop", "stopped")
        except (TimeoutError, EOFError, OSError) as problem:
            one.wrong.append(repr(problem))
        finally:
            one.keep_evidence()
            one.kill_engine()
            _end(one.home)
        summary = f"{one.acts:,} acts, {dict(done)}, {len(one.dropped)} records cut"
        print("\n".join([*one.grown(), summary, *one.wrong[:20]]))
        print(f"{sum(done.values())} faults, {one.facts:,} facts looked up, {len(one.wrong)} wrong", flush=True)
    return len(one.wrong)


def _end(home: Path) -> None:
    """End the shells and the host that are left."""
    import asyncio

    from blockpty.host.client import HostClient

    async def close() -> None:
        client = await HostClient.connect(home, start=False)
        for conversation in await client.list():
            await client.close(conversation.conversation, grace_ms=0)
        client.leave()

    with contextlib.suppress(Exception):
        asyncio.run(close())
    end_left_processes(home, "soak")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5.0, help="5")
    parser.add_argument("--faults", type=int, default=0, help="end after so many, if that is earlier")
    parser.add_argument("--fault", action="append", choices=FAULTS, help="only this one; may be given again")
    parser.add_argument("--conversations", type=int, default=4, help="4")
    parser.add_argument("--pause", type=float, default=2.0, help="seconds between two faults, about; 2")
    parser.add_argument("--seed", type=int, default=None, help="of the faults and the work")
    parser.add_argument("--evidence", type=Path, help="where to keep a home in which something is wrong")
    parser.add_argument("--worker", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--life", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        import asyncio

        asyncio.run(work(Path(given.worker[0]), given.worker[1:], given.life))
        return 0
    seed = given.seed if given.seed is not None else int.from_bytes(os.urandom(4))
    print(f"seed {seed}", flush=True)
    return 1 if soak(given, seed) else 0


if __name__ == "__main__":
    sys.exit(main())
