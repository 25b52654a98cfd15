"""Small recordings, saved as conversations, and what exports make of them."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from blockpty.model.block import Block
from blockpty.runtime.export.recording_events import Source
from blockpty.runtime.export.writer import export
from blockpty.runtime.redactor import Redactor
from blockpty.spool.layout import Layout
from blockpty.spool.line_reader import iterate_lines
from blockpty.spool.masking import Mask
from blockpty.testing import FakePty, derive

MIB = 1024 * 1024


def pty() -> FakePty:
    """A shell that has shown its first prompt."""
    made = FakePty()
    made.spawn()
    made.output(made.mark("HELLO", v=1, sh="bash", f="ps0"))
    made.prompt()
    made.clock.advance(1500)
    return made


def saved(made: FakePty, directory: Path, block_id: str | None = None, begin: int = 0) -> Source:
    """Write a recording as a conversation `c` of a home, and return it, or a part of it, as a source."""
    layout = Layout(directory / "conversations" / "c")
    layout.directory.mkdir(parents=True, exist_ok=True)
    made.recording.save(layout.directory)
    layout.blocks.write_bytes(derive(made.recording).blocks)
    block = next((Block.from_dict(one) for one in iterate_lines(layout.blocks) if one["block_id"] == block_id), None)
    span = (begin, len(made.recording.stream)) if block is None else block.span
    assert span[1] is not None
    timeline = layout.timeline.stat().st_size
    return Source("c", layout, Redactor(Mask([made.NONCE])), span[0], span[1], timeline, block)


def exported(source: Source, style: str) -> str:
    result = export(source, style, 64 * MIB, threading.Event())
    assert result.data is not None and result.path is None
    return result.data


def lines_of(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


def output_of(events: Sequence[Any]) -> str:
    return "".join(event[2] for event in events if event[1] == "o")


def small_session() -> FakePty:
    made = pty()
    made.submit("echo \u00e9")
    made.begin()
    made.output(b"\x1b[31m\xc3")
    made.clock.advance(1234)
    made.entry("tick")
    made.output(b"\xa9\x1b[0m\r\n")
    made.end(0)
    made.prompt(0)
    made.clock.advance(7)
    made.entry("resize", cols=100, rows=30, author="agent")
    made.submit("printf '\\377'; false")
    made.begin()
    made.output(b"\xff|\r\n")
    made.end(1)
    made.prompt(1)
    made.clock.advance(5)
    made.entry("exit", status=3, signal=None)
    return made
