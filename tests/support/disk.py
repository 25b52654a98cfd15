"""A small conversation on disk, and what a second engine makes of it after a crash.

The conversation has everything that the journal treats differently: two blocks, a session, CR LF cut by a delta, the
nonce in the output, an input, a wait, a second shell, and a block that is still open at the end.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from blockpty.engine.machine import Machine
from blockpty.model.entries import Entry
from blockpty.model.events import Event
from blockpty.runtime.follower import RecordFollower
from blockpty.spool.layout import Layout
from blockpty.testing import Derived, FakePty, Recording, derive

NONCES = ("Rk9yX3Rlc3RzX29ubHkhIQ", "c2Vjb25kX3NoZWxsX25vbg")
NAME = "c1"


def conversation() -> Recording:
    """Return the recording."""
    pty = FakePty()
    pty.spawn(nonce=NONCES[0])
    pty.prompt()
    pty.silence(icanon=False, echo=False, foreground="shell")
    pty.run("echo one", b"one\r\n")
    pty.submit("show")
    pty.begin()
    pty.output(b"caf\xc3\xa9 \xff \x1b[31mred\x1b[0m\r")
    pty.silence()
    pty.output(b"\nn=" + NONCES[0][:9].encode())
    pty.clock.advance(150)
    pty.entry("tick")
    pty.output(NONCES[0][9:].encode() + b";\r\n\r\r\nlast")
    pty.end(3)
    pty.prompt(3)
    pty.submit("ask", "session")
    pty.begin()
    pty.output(b"name? ")
    pty.silence()
    pty.type(b"x\r")
    pty.output(b"x\r\n")
    pty.end()
    pty.prompt()
    pty.entry("note", note={"type": "wait_end", "wait_id": "w1.1", "matched": False, "reason": "timeout",
                            "to_cursor": 0, "horizon": {"offset": 0, "timeline": 0}})  # fmt: skip
    pty.entry("exit", status=0, signal=None)
    pty.entry("eof")
    pty.pid += 1
    pty.spawn(nonce=NONCES[1])
    pty.prompt()
    pty.submit("sleep 9")
    pty.begin()
    pty.output(b"half a line\r\nand " + NONCES[1][:5].encode())
    pty.silence()
    return pty.recording


def steps(recording: Recording) -> list[tuple[list[Event], Machine, Entry | None]]:
    """Return the events of each step that has any, with a machine that stands right after it."""
    found = []
    machine = Machine()
    for step in recording.steps(range(0, len(recording.stream), 7)):
        events = machine.feed(step)[0] if isinstance(step, bytes) else machine.apply(step)[0]
        entry = None if isinstance(step, bytes) else step
        if events or entry is not None:
            found.append((events, Machine(machine.snapshot()), entry))
    return found


def store(recording: Recording, directory: Path) -> Layout:
    """Write the truth of a conversation, and nothing that is derived."""
    shutil.rmtree(directory, ignore_errors=True)
    recording.save(directory)
    layout = Layout(directory)
    layout.outputs.mkdir()
    return layout


def derived_files(layout: Layout) -> Derived:
    """Return what is on disk."""
    outputs = {f"blocks/{path.name}": path.read_bytes() for path in layout.outputs.glob("*.out")}
    events = layout.events.read_bytes() if layout.events.exists() else b""
    blocks = layout.blocks.read_bytes() if layout.blocks.exists() else b""
    return Derived(events, blocks, outputs)


async def recover(layout: Layout, *, name: str = NAME, killed: bool = False) -> Derived:
    """Resume the conversation as the next engine does, write what is missing, and return what is on disk then.

    `killed`: the engine leaves a checkpoint and does not get to its own end.
    """
    live = RecordFollower(name, layout, owner=True)
    try:
        await live.drain()
        if killed:
            live.deriver.save()
            saved = layout.checkpoint.read_bytes()
    finally:
        live.close()
        if killed:
            layout.checkpoint.write_bytes(saved)
    return derived_files(layout)


def clean(recording: Recording) -> Derived:
    """Return what a derivation from zero gives."""
    return derive(recording, conversation_id=NAME)
