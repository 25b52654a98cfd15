"""The records of a home as a search reads them: its conversations, their blocks, and their text.

Rules of this file: nothing is written, and no shell, host or engine is needed. What is shown has its nonces masked.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from blockpty.engine.records import new_nonce, open_record
from blockpty.errors import SpoolError
from blockpty.model.block import Block
from blockpty.runtime.record_reader import RecordReader, resume_points
from blockpty.runtime.redactor import Redactor, masked
from blockpty.search.index import IndexWatermark
from blockpty.search.text import AHEAD, CommandWindow, Window, seen, windows
from blockpty.spool import checkpoint
from blockpty.spool.layout import Layout, conversations_directory
from blockpty.spool.line_reader import LineReader
from blockpty.spool.log_start import load_log_start
from blockpty.spool.masking import Mask
from blockpty.spool.storage import file_size
from blockpty.spool.stream import StreamReader
from blockpty.spool.timeline import TimelineReader

# Conversations whose streams are kept open for the next search, and those whose nonces are remembered.
_KEPT: Final = 256
_REMEMBERED: Final = 4096


class Tail(Struct, frozen=True):
    """Part of a conversation that is not indexed.

    Attributes:
        finished: blocks that are in blocks.jsonl behind the position, oldest first, each with the byte after its line.
        later: blocks that have ended but are not in that file yet, and last the one that is open, which ends at
            `cursor`.
        cursor: how far the stream was understood.
        timeline: size of the part of the timeline that was read.
        quiet: no block is open or about to begin, and all of the stream is understood.
    """

    finished: Sequence[tuple[Block, int]]
    later: Sequence[Block]
    cursor: int
    timeline: int
    quiet: bool

    @property
    def blocks(self) -> list[Block]:
        """All of them, oldest first."""
        return [*(block for block, _ in self.finished), *self.later]


class Record:
    """The record of one conversation, read on demand."""

    def __init__(self, directory: Path) -> None:
        self._layout = Layout(directory)
        # Looked at for every read.
        self._timeline = str(self._layout.timeline)
        self._stream = StreamReader(self._layout.stream)
        self._mask = Mask()
        self._masked_up_to = 0
        self._begin, self._known = b"", False
        self._lock = threading.Lock()

    def timeline_size(self) -> int:
        """Return the size of the timeline; 0 when there is none."""
        return file_size(self._layout.timeline)

    def read(self, begin: int, length: int) -> bytes:
        """Return bytes of the stream, nonces masked."""
        with self._lock:
            self._learn()
            if begin < (first := self._stream.begin):
                return b""  # not kept, or not shown
            return masked(self._stream, self._mask, begin, length, first)

    def secrets(self, begin: int, end: int) -> list[tuple[int, int]]:
        """Return the secrets in a span of the stream, as spans of it in order."""
        with self._lock:
            self._learn()
            return Redactor(self._mask).spans(self._stream, begin, end, self._stream.begin)

    def pieces(self, spans: Iterable[tuple[int, int]]) -> list[tuple[int, bytes]]:
        """Return what is kept of spans of the stream, nonces masked, each with where it begins."""
        with self._lock:
            self._learn()
            first = self._stream.begin
            found = []
            for begin, end in spans:
                begin = max(begin, first)
                data = masked(self._stream, self._mask, begin, end - begin, first) if begin < end else b""
                if data and len(data) == end - begin:
                    found.append((begin, data))
            return found

    def first_block(self) -> int:
        """Return the number of the first block that is kept; raises SpoolCorrupt."""
        beginning = load_log_start(self._layout.directory)
        return beginning.first_block() if beginning is not None else 0

    @property
    def begin(self) -> int:
        """First offset of the stream that is shown."""
        with self._lock:
            return self._stream.begin

    def expect(self, spans: Iterable[tuple[int, int]]) -> None:
        """Have spans of the stream read that will be asked for."""
        with self._lock:
            self._stream.expect(spans)

    def bare(self, spans: Iterable[tuple[int, int]]) -> list[bytes]:
        """Return what is kept of spans of the stream, nothing masked: to look for something in it, not to show it."""
        with self._lock:
            return [self._bare(begin, end - begin) for begin, end in spans]

    def _bare(self, begin: int, length: int) -> bytes:
        data = self._stream.read(begin, length)
        if len(data) == length:
            return data
        # Where the record begins is asked only when something is missing: that takes longer than to read.
        first = max(begin, self._stream.begin)
        return self._stream.read(first, begin + length - first)

    def _learn(self) -> None:
        """Learn nonces that have come since, so that none is shown."""
        size = file_size(self._timeline)
        if not self._known:
            begin = _beginning(self._layout.timeline)
            if begin != self._begin:
                # Another conversation has taken the name while this one was not looked at, or it begins later now.
                self._masked_up_to = 0
            self._begin, self._known = begin, True
        if size <= self._masked_up_to:
            return
        if not self._masked_up_to:
            saved = checkpoint.load_checkpoint(self._layout.checkpoint)
            points = resume_points(saved, self._layout, self._stream)
            if saved is not None and points:
                known = [*self._mask.nonces, *saved["journal"]["nonces"]]
                self._mask, self._masked_up_to = Mask(dict.fromkeys(known)), points[-1][1]
            elif (beginning := load_log_start(self._layout.directory)) is not None:
                # The entries that named these are not kept.
                self._mask = Mask(dict.fromkeys([*self._mask.nonces, *beginning.journal["nonces"]]))
        timeline = TimelineReader(self._layout.timeline, self._masked_up_to, holding=b'"nonce"')
        try:
            for entry, _ in timeline.read_new():
                if nonce := new_nonce(entry):
                    self._mask.add(nonce)
            self._masked_up_to = timeline.position
        finally:
            timeline.close()

    def tail(self, position: IndexWatermark, rest: Callable[[], None] = lambda: None) -> Tail:
        """Return what is not indexed, as of now. `rest` is called between steps: without a checkpoint all is read."""
        if file_size(self._layout.blocks) < position.lines:
            # They were lost with the power, or are being derived anew.
            position = position._replace(lines=0)
        with self._lock:
            later, cursor, timeline, quiet = self._beyond_the_checkpoint(rest)
            # After the reader: a block that ends meanwhile is in one of the two, never in neither.
            lines = LineReader(self._layout.blocks, position.lines, holes=True)
            try:
                finished = [
                    (Block.from_dict(line), after) for line, after in lines.read_new() if line["seq"] > position.seq
                ]
            finally:
                lines.close()
        last = max((block.seq for block, _ in finished), default=position.seq)
        later = sorted((block for block in later if block.seq > last), key=lambda block: block.seq)
        return Tail(finished, later, cursor, timeline, quiet)

    def _beyond_the_checkpoint(self, rest: Callable[[], None]) -> tuple[list[Block], int, int, bool]:
        saved = checkpoint.load_checkpoint(self._layout.checkpoint)
        points = resume_points(saved, self._layout, self._stream)
        reader = RecordReader(self._layout, self._stream, *(points[-1] if points else (None, 0)))
        try:
            reader.look()
            found = []
            while (step := reader.step()) is not None:
                rest()
                found += [
                    Block.from_dict(event.fields["block"]) for event in step.events if event.type == "agent_block_end"
                ]
            state = reader.machine.state
            found += [open_record(one, state) for one in (state.background, state.block) if one is not None]
            quiet = state.block is None and state.background is None and state.submission is None
            place = reader.position
            return found, state.classified, place.timeline, quiet and state.classified == place.offset
        finally:
            reader.close()

    def chunks(self, block: Block, cursor: int, begin: tuple[int, int] = (0, 0)) -> Iterator[Window]:
        """Yield the command of a block and then its output, cut; an open block ends at `cursor`.

        With `begin`, the number of a chunk and where it begins in the stream, only from that one on.
        """
        number, at = begin
        if not number:
            number, at = 1, max(block.span[0], self._stream.begin)
            if block.cmd:
                yield CommandWindow(block.cmd)
        end = block.span[1]
        yield from windows(self.read, at, cursor if end is None else end, number)

    def close_removed(self) -> None:
        """Close the files when one of them was removed, which would go on taking space."""
        if self._stream.holds_removed():
            self.close()

    def close(self) -> None:
        """Close the files; the record can be used again."""
        with self._lock:
            self._stream.close()
            self._known = False


def _beginning(path: Path) -> bytes:
    """Return what tells one timeline from another: its first line has the time, the process and the nonce."""
    try:
        with path.open("rb") as file:
            return file.read(512)
    except FileNotFoundError:
        return b""


def _looked(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return 0, 0
    return found.st_size, found.st_mtime_ns


class Records:
    """All records of a home."""

    def __init__(self, home: Path) -> None:
        self._directory = conversations_directory(home)
        self._kept: OrderedDict[str, Record] = OrderedDict()
        self._remembered: OrderedDict[str, Record] = OrderedDict()

    def names(self) -> list[str]:
        """Return the names of the conversations, in no order."""
        try:
            return os.listdir(self._directory)
        except FileNotFoundError:
            return []

    def size(self, conversation_id: str | None = None) -> int:
        """Return the bytes of all streams, or of one conversation's; 0 for one that has gone."""
        found = 0
        for name in self.names() if conversation_id is None else (conversation_id,):
            with contextlib.suppress(OSError), os.scandir(f"{self._directory}/{name}/stream") as segments:
                found += sum(segment.stat().st_size for segment in segments)
        return found

    def exists(self, conversation_id: str) -> bool:
        """Whether there is such a conversation in this home."""
        return os.path.isdir(f"{self._directory}/{conversation_id}/stream")

    def record(self, conversation_id: str) -> Record:
        """Return a record; those used last are kept open until `close`."""
        record = self._kept.get(conversation_id)
        if record is not None:
            self._kept.move_to_end(conversation_id)
            return record
        record = self._remembered.pop(conversation_id, None) or Record(self._directory / conversation_id)
        self._remembered[conversation_id] = self._kept[conversation_id] = record
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)[1].close()
        while len(self._remembered) > _REMEMBERED:
            self._remembered.popitem(last=False)
        return record

    def tail(
        self, conversation_id: str, position: IndexWatermark | None, rest: Callable[[], None] = lambda: None
    ) -> Tail | None:
        """Return what of a conversation is not indexed; None when it has gone meanwhile, or is no conversation.

        `rest` is called between steps.
        """
        try:
            return self.record(conversation_id).tail(position or IndexWatermark(), rest)
        except (OSError, SpoolError):
            return None

    def window(self, conversation_id: str, block: Block, number: int, begin: int, end: int) -> Window | None:
        """Return one chunk of a block's output; None when conversation or bytes have gone."""
        last = block.span[1]
        try:
            record = self.record(conversation_id)
            begin = max(begin, record.begin)
            if begin >= end:
                return None
            data = record.read(begin, min(end + AHEAD, last if last is not None else end) - begin)
        except (OSError, SpoolError):
            return None
        if len(data) < end - begin:
            return None
        return Window(number, begin, data[: seen(data, end - begin, last == begin + len(data))], end - begin)

    def unsettled(self, positions: Mapping[str, IndexWatermark], names: Collection[str] | None = None) -> list[str]:
        """Return the conversations, all or those given, of which something may not be indexed, last used last."""
        directory = str(self._directory)
        for record in [*self._kept.values()]:
            record.close_removed()
        found = []
        for name in self.names() if names is None else names:
            position = positions.get(name)
            size, changed = _looked(f"{directory}/{name}/timeline.jsonl")
            if position is None or position.settled != size:
                found.append((changed, name))
        return [name for _, name in sorted(found)]

    def close_others(self, names: Collection[str]) -> None:
        """Close the files of all but these."""
        for name in [name for name in self._kept if name not in names]:
            self._kept.pop(name).close()

    def close(self) -> None:
        """Close all files."""
        while self._kept:
            self._kept.popitem()[1].close()
