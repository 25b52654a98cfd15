"""Deriving files from events: `.out` bytes first, then event lines, then block lines.

Rules of this file: what is written is a function of the events and the stream, so that a second derivation can be
compared byte for byte. Where it goes is the sink's business: `FileSink` writes (and, after a crash, writes the same
bytes to the same places again or leaves whole lines alone), `spool.compare.CompareSink` compares.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

import orjson

from blockpty.errors import StorageFull
from blockpty.model.events import Event
from blockpty.spool.full import full_is_an_error
from blockpty.spool.layout import Layout, out_name
from blockpty.spool.lines import last_line
from blockpty.spool.masking import Mask
from blockpty.spool.stream import StreamReader

_COPY: Final = 1024 * 1024
# Output files that are finished and wait, open, to be forced together.
_FINISHED: Final = 16
_LONE_CR: Final = re.compile(rb"\r[^\n]")


class Sink(Protocol):
    """Where derived bytes go."""

    def out(self, name: str, position: int, data: bytes) -> None:
        """Take bytes of a `.out` file at a position."""

    def out_end(self, name: str, size: int) -> None:
        """A `.out` file is complete."""

    def lines(self, events: list[tuple[int, bytes]], blocks: list[tuple[int, bytes]]) -> None:
        """Take finished lines, each with its number."""


class Output:
    """The `.out` file of the open block: CR LF is LF, nonces are covered."""

    def __init__(self, name: str, size: int = 0, carry: bytes = b"") -> None:
        self.name = name
        self.size = size
        self.carry = carry

    def take(self, raw: bytes, mask: Mask, *, last: bool = False) -> bytes:
        """Return what to append for the next raw bytes."""
        # Whole nonces first: the end of one can look like the beginning of another.
        data = mask.hide(self.carry + raw)
        if last:
            self.carry = b""
        else:
            keep = max(1 if data.endswith(b"\r") else 0, mask.partial(data))
            data, self.carry = (data[:-keep], data[-keep:]) if keep else (data, b"")
        return _with_line_feeds(data)


def _with_line_feeds(data: bytes) -> bytes:
    """CR LF becomes LF; any other CR stays."""
    if data.endswith(b"\r") or _LONE_CR.search(data):
        return data.replace(b"\r\n", b"\n")
    # The usual case, in half the time: no CR stands alone, so all of them go.
    return data.translate(None, b"\r")


class Journal:
    """Turns events into files through a sink."""

    def __init__(self, conversation_id: str, stream: StreamReader, sink: Sink, mask: Mask) -> None:
        self._conversation_id = conversation_id
        self._stream = stream
        self._sink = sink
        self._output: Output | None = None
        self._queue: list[Event] = []
        self._event_lines: list[tuple[int, bytes]] = []
        self._block_lines: list[tuple[int, bytes]] = []
        self.mask = mask

    @property
    def pending(self) -> bool:
        """Whether something could not be written yet."""
        return bool(self._queue or self._event_lines)

    def append(self, events: Iterable[Event]) -> None:
        """Derive everything that follows from these events.

        Raises StorageFull when there is no space; nothing is lost then: call again, with what is new or with nothing.
        """
        self._queue += events
        while self._queue:
            self._derive(self._queue[0])
            del self._queue[0]
        if self._event_lines:
            self._sink.lines(self._event_lines, self._block_lines)
            self._event_lines, self._block_lines = [], []

    def _derive(self, event: Event) -> None:
        output = self._output
        size, carry = (output.size, output.carry) if output is not None else (0, b"")
        try:
            self._write(event)
        except BaseException:
            self._output = output
            if output is not None:
                output.size, output.carry = size, carry
            raise

    def _write(self, event: Event) -> None:
        fields: Mapping[str, Any] = event.fields
        if event.type == "agent_block_begin":
            self._output = Output(out_name(fields["block_seq"], fields["ts_begin"]))
            self._sink.out(self._output.name, 0, b"")
        elif event.type == "agent_block_delta":
            self._copy(*fields["span"])
        elif event.type == "agent_block_end":
            self._end(fields["block"])
            self._block_lines.append((fields["block"]["seq"], self._line(fields["block"])))
        self._event_lines.append((event.seq, self._line(event.to_dict(self._conversation_id))))

    def snapshot(self) -> dict[str, Any]:
        """Return what to resume from, JSON-compatible."""
        output = self._output
        open_output = [output.name, output.size, output.carry.decode("latin-1")] if output is not None else None
        return {"output": open_output, "nonces": self.mask.nonces}

    def restore(self, record: Mapping[str, Any]) -> None:
        """Resume from a snapshot."""
        self.mask = Mask(record["nonces"])
        if record["output"] is not None:
            name, size, carry = record["output"]
            self._output = Output(name, size, carry.encode("latin-1"))

    def _line(self, record: Mapping[str, Any]) -> bytes:
        # A number too large for JSON can only come from a damaged timeline line; it is written as text.
        return self.mask.hide(orjson.dumps(record, default=str)) + b"\n"

    def _copy(self, begin: int, end: int) -> None:
        output = self._output
        if output is None:
            return
        while begin < end:
            raw = self._stream.read(begin, min(_COPY, end - begin))
            if not raw:
                break
            begin += len(raw)
            data = output.take(raw, self.mask)
            if data:
                self._sink.out(output.name, output.size, data)
                output.size += len(data)

    def _end(self, record: dict[str, Any]) -> None:
        output = self._output
        if output is None:
            return
        data = output.take(b"", self.mask, last=True)
        if data:
            self._sink.out(output.name, output.size, data)
            output.size += len(data)
        self._sink.out_end(output.name, output.size)
        record["out_path"], record["out_bytes"] = output.name, output.size
        self._output = None


class FileSink:
    """Writes derived files; what is there already is recognised by its number and left alone.

    Attributes:
        last_event, last_block: highest number on disk.
        unforced: bytes written since `force`.
    """

    def __init__(self, layout: Layout, *, forces: bool = False) -> None:
        self.unforced = 0
        self._forces = forces
        self._finished: list[int] = []
        self._directory = str(layout.directory)
        self._open_name = ""
        self._open_descriptor = -1
        event, event_end = last_line(layout.events)
        block, block_end = last_line(layout.blocks)
        self.last_event = int(event["seq"]) if event else -1
        self.last_block = int(block["seq"]) if block else 0
        self._events = _open_for_append(layout.events, event_end)
        self._blocks = _open_for_append(layout.blocks, block_end)

    def out(self, name: str, position: int, data: bytes) -> None:
        """Write bytes of a `.out` file; the same bytes may be written twice."""
        if name != self._open_name:
            self._close_out()
            path = f"{self._directory}/{name}"
            with full_is_an_error(name):
                self._open_descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            self._open_name = name
        if data:
            _write_all(self._open_descriptor, data, position, name)
            self.unforced += len(data)

    def out_end(self, name: str, size: int) -> None:
        """Cut what a torn earlier attempt may have left behind the end."""
        self.out(name, size, b"")
        os.ftruncate(self._open_descriptor, size)
        self._close_out()

    def lines(self, events: list[tuple[int, bytes]], blocks: list[tuple[int, bytes]]) -> None:
        """Append the lines that are not on disk yet."""
        fresh = b"".join(line for seq, line in events if seq > self.last_event)
        if fresh:
            _append_whole(self._events, fresh, "events.jsonl")
            self.unforced += len(fresh)
            self.last_event = events[-1][0]
        fresh = b"".join(line for seq, line in blocks if seq > self.last_block)
        if fresh:
            _append_whole(self._blocks, fresh, "blocks.jsonl")
            self.last_block = blocks[-1][0]

    def force(self) -> None:
        """Have everything that was written on the medium; what was finished since is kept open for that."""
        if self.unforced:
            for descriptor in (*self._finished, self._open_descriptor, self._events, self._blocks):
                if descriptor >= 0:
                    os.fdatasync(descriptor)
            self.unforced = 0
        self._let_go()

    def _let_go(self) -> None:
        while self._finished:
            os.close(self._finished.pop())

    def start_over(self) -> None:
        """Forget the lines that are there: all are going to be given again, and some may speak of lost bytes."""
        os.ftruncate(self._events, 0)
        os.ftruncate(self._blocks, 0)
        self.last_event, self.last_block = -1, 0

    def sizes(self) -> tuple[int, int]:
        """Return the sizes of events.jsonl and blocks.jsonl."""
        return os.fstat(self._events).st_size, os.fstat(self._blocks).st_size

    def close(self) -> None:
        """Close the files."""
        self._close_out()
        self._let_go()
        os.close(self._events)
        os.close(self._blocks)

    def _close_out(self) -> None:
        if self._open_descriptor >= 0:
            self._finished.append(self._open_descriptor)
            if not self._forces:
                self._let_go()
            elif len(self._finished) > _FINISHED:
                oldest = self._finished.pop(0)
                os.fdatasync(oldest)
                os.close(oldest)
        self._open_descriptor, self._open_name = -1, ""


def _open_for_append(path: Path, end: int) -> int:
    """Open a journal for appending, after moving a torn last line out of the way."""
    flags = os.O_CREAT | os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, 0o600)
    size = os.fstat(descriptor).st_size
    if size > end:
        torn = os.pread(descriptor, size - end, end)
        quarantine = os.open(
            f"{path}.torn", os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
        )
        try:
            os.write(quarantine, torn + b"\n")
        finally:
            os.close(quarantine)
        os.ftruncate(descriptor, end)
    return descriptor


def _append_whole(descriptor: int, data: bytes, name: str) -> None:
    """Append lines, or nothing: half a line would be taken for damage."""
    size = os.fstat(descriptor).st_size
    try:
        _write_all(descriptor, data, None, name)
    except StorageFull:
        os.ftruncate(descriptor, size)
        raise


def _write_all(descriptor: int, data: bytes, position: int | None, name: str) -> None:
    view = memoryview(data)
    with full_is_an_error(name):
        while view:
            if position is None:
                written = os.write(descriptor, view)
            else:
                written = os.pwrite(descriptor, view, position)
                position += written
            view = view[written:]
