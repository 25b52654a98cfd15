"""A home full of records as shells would have left them, made without a shell and the same for the same seed.

What is in them: coloured and plain output, progress bars, very long lines, wide and combining characters, signs of
private use, bytes that are no UTF-8, control strings, a nonce that was printed, a block that still runs, and blocks
that have ended but are not in blocks.jsonl yet.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import orjson

from blockpty.testing import FakePty, ManualClock, derive

_ASCII = (
    "error warning connection refused timeout retry fetch branch commit merge assert passed failed module import "
    "return yield config server request response token cache build target linking object archive /usr/lib/x86_64 "
    "src/main.c --verbose HTTP/1.1 200 404 0x7ffe KeyError ValueError"
)
WORDS = (*_ASCII.split(), "naïve", "Größe", "ΣΑΣ", "İstanbul", "東京", "Straße", "\ue0b0main")
COLOURS = (b"\x1b[31m", b"\x1b[1;32m", b"\x1b[0m", b"\x1b[38;5;208m", b"\x1b]8;;http://h/\x1b\\", b"\x1b[K", b"\x1b(B")


def home_of(directory: Path, *, conversations: int = 8, blocks: int = 16, seed: int = 7) -> Path:
    """Write a home and return its directory."""
    chance = random.Random(seed)
    clock = ManualClock()
    for number in range(conversations):
        pty = FakePty(clock)
        pty.spawn()
        pty.prompt()
        pty.silence(icanon=False, echo=False, foreground="shell")
        for _ in range(chance.randrange(blocks // 2, blocks)):
            clock.advance(chance.choice((0, 1, 700)))
            _block(pty, chance)
        ending = number % 4
        if ending == 1:
            _running(pty, chance)
        save(directory, f"c{number}", pty, unwritten=3 if ending == 2 else 0)
        clock.now_ms -= chance.randrange(0, 30_000)
    return directory


def save(home: Path, name: str, pty: FakePty, *, unwritten: int = 0) -> None:
    """Write the record of one conversation, but for its last `unwritten` block lines."""
    directory = home / "conversations" / name
    pty.recording.save(directory)
    derived = derive(pty.recording, conversation_id=name)
    lines = derived.blocks.splitlines(keepends=True)
    (directory / "blocks.jsonl").write_bytes(b"".join(lines[: len(lines) - unwritten]))
    (directory / "events.jsonl").write_bytes(derived.events)
    meta = {"format": 1, "conversation_id": name, "created_ts": pty.recording.entries[0].ts, "shell": "bash"}
    (directory / "meta.json").write_bytes(orjson.dumps(meta))


def _block(pty: FakePty, chance: random.Random) -> None:
    command = f"{chance.choice(('make', 'git log', 'pytest -q', 'cat', 'ls'))} {chance.choice(WORDS)}"
    pty.run(command, output(chance, pty.nonce), chance.choice((0, 0, 0, 1, 2, 130)))


def _running(pty: FakePty, chance: random.Random) -> None:
    pty.submit("tail -f server.log")
    pty.begin()
    for _ in range(chance.randrange(1, 60)):
        pty.output(output(chance, pty.nonce))
    pty.silence()


def output(chance: random.Random, nonce: str) -> bytes:
    """Return the output of one command."""
    kinds: tuple[Callable[[random.Random, str], bytes], ...] = (_plain, _plain, _coloured, _progress, _long, _strange)
    made = chance.choice(kinds)(chance, nonce)
    return made if chance.random() < 0.8 else made + b"without an end"


def _line(chance: random.Random) -> bytes:
    return " ".join(chance.choices(WORDS, k=chance.randrange(1, 14))).encode()


def _plain(chance: random.Random, nonce: str) -> bytes:
    return b"".join(_line(chance) + b"\r\n" for _ in range(int(chance.lognormvariate(3, 1.6))))


def _coloured(chance: random.Random, nonce: str) -> bytes:
    lines = []
    for _ in range(int(chance.lognormvariate(3, 1.4))):
        pieces = _line(chance).split(b" ")
        lines.append(b" ".join(chance.choice(COLOURS) + piece + b"\x1b[m" for piece in pieces) + b"\r\n")
    return b"".join(lines)


def _progress(chance: random.Random, nonce: str) -> bytes:
    return b"".join(b"\r%3d%% " % at + _line(chance)[:40] for at in range(chance.randrange(3, 900))) + b"\r\n"


def _long(chance: random.Random, nonce: str) -> bytes:
    pieces = [_line(chance) for _ in range(chance.randrange(10, 900))]
    return chance.choice((b",", b" ", b"")).join(pieces) + b"\r\n"


def _strange(chance: random.Random, nonce: str) -> bytes:
    pieces = [
        b"\xff\xfe\xc3", b"e\xcc\x81error", b"\x00\x08\x07", b"\x1b]0;title\x07", b"\x1bP+q\x1b\\", nonce.encode(),
        "error\ue0b0warning ıİ ſſ K".encode(), b"\x1b[", b"\t", b"\r\r\n", b"a\rb", b"\x1b]52;unfinished", b"\n",
    ]  # fmt: skip
    return b" ".join(chance.choices(pieces, k=chance.randrange(3, 40))) + _line(chance) + b"\r\n"
