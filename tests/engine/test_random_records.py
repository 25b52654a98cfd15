"""Blocks of random records: whatever a shell, a person and the engine do, a block that begins ends, and ends once."""

from __future__ import annotations

import random
from collections.abc import Callable

import orjson
import pytest

from blockpty.testing import FakePty, derive
from blockpty.testing.recordings import Recording, events_of
from tests.support.profile import LONG

STEPS = 40
EACH = 250 if LONG else 80


class RandomShell:
    """A shell of which anything may follow anything: marks are lost, hooks come and go, shells end."""

    def __init__(self, seed: int) -> None:
        self.chosen = random.Random(seed)
        self.pty = FakePty()
        self.number = self.nested = 0

    def record(self) -> Recording:
        """Return a record of `STEPS` things that happened."""
        pty, choice = self.pty, self.chosen.choice
        pty.spawn(shell=choice(["bash", "zsh", "fish"]))
        pty.prompt()
        acts: list[Callable[[], object]] = [
            lambda: pty.submit(f"command {self.number}", choice(["command", "session"])),
            lambda: (pty.submit_key(f"command {self.number}", choice(["command", "session"])), pty.output(b"echo\r\n")),
            *[lambda: pty.begin(l=choice(["", "1"])), lambda: pty.end(choice([0, 1, 130]), l=choice(["", "1"]))] * 2,
            *[pty.prompt] * 2,
            lambda: pty.output(choice([b"out\r\n", b"\r\n", b"half", b"\x1b[31m", b"\x1b]133;A\x07"])),
            self._silence,
            lambda: pty.type(choice([b"ls\r", b"\x03", b"x", b"\x04"]), author=choice(["agent", "user"])),
            lambda: pty.run(f"command {self.number}", b"out\r\n", 0),
            self._lose_marks,
            self._enter,
            self._leave,
            lambda: pty.entry("note", note={"type": "leave", "nonce": pty.nonce}),
            lambda: pty.entry("note", note=choice([{"type": kind} for kind in ("interrupt", "no_prompt", "owner")])),
            lambda: pty.entry("resize", cols=self.chosen.randrange(2, 90), rows=24, author="user"),
            self._spawn,
            lambda: self.chosen.random() < 0.2 and pty.entry("exit", status=0, signal=None),
        ]
        for self.number in range(STEPS):
            choice(acts)()
        pty.entry("exit", status=0, signal=None)
        pty.entry("eof")
        return pty.recording

    def _silence(self) -> None:
        chosen = {name: self.chosen.random() < 0.5 for name in ("icanon", "echo", "wants_input")}
        self.pty.silence(foreground=self.chosen.choice(["shell", "child"]), **chosen)

    def _lose_marks(self) -> None:
        """Marks were printed and never recorded."""
        self.pty.seq += self.chosen.randrange(3)
        self.pty.count += self.chosen.randrange(2)
        self.pty.prompts += self.chosen.randrange(2)

    def _enter(self) -> None:
        nested, hello = self.chosen.random() < 0.5, self.chosen.random() < 0.8
        pid = self.chosen.choice([77, self.pty.pid])
        self.pty.enter(f"{self.number:022}", nested=nested, pid=pid, hello=hello)
        self.nested += nested

    def _leave(self) -> None:
        if self.nested:
            self.pty.leave()
            self.nested -= 1

    def _spawn(self) -> None:
        if self.chosen.random() < 0.3:
            while self.nested:
                self._leave()
            self.pty.spawn(nonce=f"{self.number + STEPS:022}")


@pytest.mark.parametrize("first", range(0, 4 * EACH, EACH))
def test_each_block_that_begins_ends_once(first: int) -> None:
    for seed in range(first, first + EACH):
        record = RandomShell(seed).record()
        running: dict[str, str] = {}
        ended = []
        for event in events_of(record):
            if event.type == "agent_block_begin":
                place = "background" if event.fields["kind"] == "background" else "foreground"
                assert place not in running.values(), f"seed {seed}: {event.fields['block_id']} beside {running}"
                running[event.fields["block_id"]] = place
            elif event.type == "agent_block_end":
                del running[event.fields["block_id"]]
                ended.append(event.fields["block_id"])
        assert not running, f"seed {seed}: {running} never ended"
        derived = derive(record)
        lines = [orjson.loads(line) for line in derived.blocks.splitlines()]
        assert [line["block_id"] for line in lines] == ended, seed
        assert {line["out_path"] for line in lines} == set(derived.outputs), seed
        assert all(len(derived.outputs[line["out_path"]]) == line["out_bytes"] for line in lines), seed


def test_cuts_change_nothing_of_a_random_record() -> None:
    for seed in range(60):
        record = RandomShell(seed).record()
        cuts = sorted(random.Random(seed).sample(range(len(record.stream)), 20))
        assert derive(record, cuts) == derive(record), seed
