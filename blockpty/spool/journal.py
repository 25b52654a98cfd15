"""Derivation of files from events: `.out` bytes first, then event lines, then block lines.

Rules of this file: what is written is a function of the events and the stream, so that a second derivation can be
compared byte for byte. Where it goes is the sink's business: `spool.sink.FileSink` writes, `spool.compare.CompareSink`
compares.
"""

from __future__ import annotations

from codecs import latin_1_decode, latin_1_encode
from collections.abc import Iterable, Mapping
from io import IncrementalNewlineDecoder
from typing import Any, Final, Protocol

import orjson

from blockpty.model.events import Event
from blockpty.spool.layout import out_name
from blockpty.spool.masking import Mask
from blockpty.spool.stream import StreamReader

_COPY: Final = 1024 * 1024
_DELTA: Final = "agent_block_delta"
_OF_OUTPUT: Final = frozenset({"agent_block_begin", _DELTA, "agent_block_end"})
# What a newline decoder has seen where no CR stands alone.
_NO_LONE_CR: Final = frozenset({None, "\n", "\r\n", ("\n", "\r\n")})


class Sink(Protocol):
    """Destination of derived bytes."""

    def out(self, name: str, position: int, data: bytes) -> None:
        """Take bytes of a `.out` file at a position."""

    def out_end(self, name: str, size: int) -> None:
        """A `.out` file is complete."""

    def lines(self, events: list[tuple[int, bytes]], blocks: list[tuple[int, bytes]]) -> None:
        """Take finished lines, each with its number."""


class OutputFile:
    """The `.out` file of the open block: CR LF is LF, nonces are masked."""

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
    if b"\r" not in data:
        return data
    # The usual case, in a third of the time of `replace`: it also changes a lone CR, and says that it has seen one.
    decoder = IncrementalNewlineDecoder(None, translate=True)
    text = decoder.decode(latin_1_decode(data)[0], final=True)
    return latin_1_encode(text)[0] if decoder.newlines in _NO_LONE_CR else data.replace(b"\r\n", b"\n")


class Journal:
    """Turns events into files through a sink."""

    def __init__(self, conversation_id: str, stream: StreamReader, sink: Sink, mask: Mask) -> None:
        self._conversation_id = conversation_id
        self._stream = stream
        self._sink = sink
        self._output: OutputFile | None = None
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
        queue, done = self._queue, 0
        queue += events
        try:
            while done < len(queue):
                event = queue[done]
                if event.type not in _OF_OUTPUT:
                    self._add_line(event)
                    done += 1
                    continue
                together = self._continued(done) if event.type == _DELTA else [event]
                self._derive(together)
                done += len(together)
        finally:
            del queue[:done]
        if self._event_lines:
            self._sink.lines(self._event_lines, self._block_lines)
            self._event_lines, self._block_lines = [], []

    def _continued(self, first: int) -> list[Event]:
        """Return the deltas that are derived together: one of the queue, and those that continue it."""
        last, end = first, self._queue[first].fields["span"][1]
        for event in self._queue[first + 1 :]:
            if event.type != _DELTA or event.fields["span"][0] != end:
                break
            last, end = last + 1, event.fields["span"][1]
        return self._queue[first : last + 1]

    def _add_line(self, event: Event) -> None:
        self._event_lines.append((event.seq, self._line(event.to_dict(self._conversation_id))))

    def _derive(self, events: list[Event]) -> None:
        """Write what events say of an output, and add their lines; all of it or nothing."""
        output = self._output
        size, carry = (output.size, output.carry) if output is not None else (0, b"")
        try:
            self._write(events)
        except BaseException:
            self._output = output
            if output is not None:
                output.size, output.carry = size, carry
            raise

    def _write(self, events: list[Event]) -> None:
        event = events[0]
        fields: Mapping[str, Any] = event.fields
        if event.type == "agent_block_begin":
            self._output = OutputFile(out_name(fields["block_seq"], fields["ts_begin"]))
            self._sink.out(self._output.name, 0, b"")
        elif event.type == _DELTA:
            self._copy(fields["span"][0], events[-1].fields["span"][1])
        elif event.type == "agent_block_end":
            self._end(fields["block"])
            self._block_lines.append((fields["block"]["seq"], self._line(fields["block"])))
        for one in events:
            self._add_line(one)

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
            self._output = OutputFile(name, size, carry.encode("latin-1"))

    def _line(self, record: Mapping[str, Any]) -> bytes:
        # A number too large for JSON can only come from a damaged timeline line; it is written as text.
        return self.mask.hide(orjson.dumps(record, default=str, option=orjson.OPT_APPEND_NEWLINE))

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
