"""List of a conversation's blocks: which of them, in which order, and what their outputs are like.

Rules of this file: finished blocks come from their file, read from the end that is asked for, and only as far as a page
needs; those that run are handed in. Nothing is written: how many lines an output has is counted when it is asked for,
and remembered.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import asdict, replace

from blockpty.engine.views import View
from blockpty.errors import BadRequest, NotFound
from blockpty.model.block import BLOCK_KINDS, Block, ListedBlock
from blockpty.runtime.reading import is_below
from blockpty.runtime.redactor import Redactor
from blockpty.spool.layout import Layout
from blockpty.spool.line_reader import LineReader, iterate_lines_back, line_of_seq
from blockpty.spool.stream import StreamReader

ORDERS: Final = ("oldest", "newest")
AUTHORS: Final = ("agent", "user", "engine")
# Of a longer output the lines are not counted, and only so much of it is looked at; a page looks at no more than this.
MEASURED_BYTES: Final = 16 * 1024 * 1024
PAGE_BYTES: Final = 64 * 1024 * 1024
_PIECE: Final = 256 * 1024
_REMEMBERED: Final = 10_000
# Blocks are written when they end. One that began later may end first, beside background output.
_OUT_OF_ORDER: Final = 8
# The cursor goes elsewhere than along its line, cells of the line move, or the other screen is shown.
_MOVES: Final = re.compile(
    rb"\x1b(?:\[[0-9;]*[@A-JLMPSTXZ`abdefrsu]|\[\?[0-9;]*J|\[\?(?:[0-9;]*;)?(?:47|104[79])(?:;[0-9;]*)?[hl]|[78DEMc])"
)


class Measure(NamedTuple):
    """Measures of an output.

    Attributes:
        lines: how many it has; None where they are not known.
        screen: whether only a screen shows what was seen; None where that is not known.
    """

    lines: int | None = None
    screen: bool | None = None


class Wanted(Struct, frozen=True):
    """Which blocks: part of the command, ended other than with 0 (or with 0), slow enough, begun in a directory.

    Then by author and kind, and with numbers between two others, both excluded.
    """

    text: str | None = None
    failed: bool | None = None
    min_duration_ms: int | None = None
    cwd: str | None = None
    author: str | None = None
    kind: str | None = None
    before_seq: int | None = None
    after_seq: int | None = None

    def __contains__(self, record: Mapping[str, Any]) -> bool:
        status, seq = record.get("exit_status"), record.get("seq", 0)
        return (
            (self.text is None or self.text in record.get("cmd", ""))
            and (self.failed is None or (status is not None and (status != 0) is self.failed))
            and (self.min_duration_ms is None or (record.get("duration_ms") or 0) >= self.min_duration_ms)
            and (self.cwd is None or is_below(record.get("cwd"), self.cwd))
            and (self.author is None or record.get("author") == self.author)
            and (self.kind is None or record.get("kind") == self.kind)
            and (self.before_seq is None or seq < self.before_seq)
            and (self.after_seq is None or seq > self.after_seq)
        )


class BlockPage(Struct, frozen=True):
    """Which page of the blocks that are wanted, how many stand on it, and in which order they are counted."""

    number: int = 0
    size: int = 100
    newest: bool = False


def check_choices(order: str, author: str | None, kind: str | None) -> None:
    """Raise BadRequest for a word that is none of those that there are."""
    for name, value, known in (("order", order, ORDERS), ("author", author, AUTHORS), ("kind", kind, BLOCK_KINDS)):
        if value is not None and value not in known:
            raise BadRequest(f"{name} cannot be {str(value)[:40]!r}", hint=f"one of {', '.join(known)}")


def read_page(
    layout: Layout,
    redactor: Redactor,
    wanted: Wanted,
    page: BlockPage,
    running: Sequence[Block] = (),
    pace: Callable[[], None] = lambda: None,
) -> tuple[list[Block], bool]:
    """Return one page of blocks, and whether there are more; what is looked for in a command is looked for as output.

    `running`: blocks that have not ended, oldest first. `pace` is called for each record.
    """
    found: list[Block] = []
    skip = page.number * page.size
    for record in _records(layout, wanted, page.newest, running):
        pace()
        if record not in wanted:
            continue
        block = Block.from_dict(record)
        if wanted.text is not None:
            block = redactor.block(block)
            if block.cmd != record.get("cmd") and wanted.text not in block.cmd:
                continue
        if skip:
            skip -= 1
        elif len(found) == page.size:
            return found, True
        else:
            found.append(block if wanted.text is not None else redactor.block(block))
    return found, False


def _records(layout: Layout, wanted: Wanted, newest: bool, running: Sequence[Block]) -> Iterator[Mapping[str, Any]]:
    if newest:
        unfinished = [block.to_dict() for block in reversed(running)]
        return chain(unfinished, _without(unfinished, newest_first(layout, wanted)))
    unfinished = [block.to_dict() for block in running]
    return chain(_without(unfinished, _forth(layout, wanted)), unfinished)


def _without(unfinished: Sequence[Mapping[str, Any]], records: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield records but for those of blocks that were running a moment ago."""
    numbers = {one["seq"] for one in unfinished}
    return (record for record in records if record.get("seq") not in numbers)


def newest_first(layout: Layout, wanted: Wanted) -> Iterator[dict[str, Any]]:
    """Yield finished blocks from the newest one that may be wanted back to the oldest."""
    before, after = wanted.before_seq, wanted.after_seq
    end = None if before is None else line_of_seq(layout.blocks, before + _OUT_OF_ORDER)
    for record in iterate_lines_back(layout.blocks, end):
        if after is not None and record.get("seq", 0) <= after - _OUT_OF_ORDER:
            return
        yield record


def _forth(layout: Layout, wanted: Wanted) -> Iterator[dict[str, Any]]:
    """Yield finished blocks from the oldest one that may be wanted to the newest."""
    before, after = wanted.before_seq, wanted.after_seq
    begin = 0 if after is None else line_of_seq(layout.blocks, after - _OUT_OF_ORDER)
    reader = LineReader(layout.blocks, begin, holes=True)
    try:
        while lines := reader.read_new(some=True):
            for record, _ in lines:
                if before is not None and record.get("seq", 0) >= before + _OUT_OF_ORDER:
                    return
                yield record
    finally:
        reader.close()


def find_block(layout: Layout, block_id: str) -> Block:
    """Return a finished block; raises NotFound. It reads a few lines, however many blocks there are."""
    if re.fullmatch("b[0-9]{1,18}", block_id):
        number = int(block_id[1:])
        for record in _forth(layout, Wanted(after_seq=number - 1, before_seq=number + 1)):
            if record.get("block_id") == block_id:
                return Block.from_dict(record)
    raise NotFound(f"no block is called {block_id[:40]!r}", hint="blocks lists those that have ended")


class OutputMeasures:
    """Measures of outputs, remembered for blocks that have ended."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Measure] = OrderedDict()

    def listed(
        self, blocks: Sequence[Block], stream: StreamReader, end: int, pace: Callable[[], None] = lambda: None
    ) -> list[ListedBlock]:
        """Return blocks with their measures; `end` is where the output of what runs ends by now.

        Outputs that would make it more than `PAGE_BYTES` in all are left out; another call goes on with them.
        """
        left, found = PAGE_BYTES, []
        for block in blocks:
            measure = self._known.get(block.block_id)
            if measure is None:
                begin, last = block.span[0], end if block.span[1] is None else block.span[1]
                size = min(last - begin, MEASURED_BYTES)
                measure = measure_span(stream, begin, last, pace) if size <= left else Measure()
                if size <= left and block.span[1] is not None:
                    self._remember(block.block_id, measure)
                left -= size
            found.append(replace(as_listed(block), lines=measure.lines, screen=measure.screen))
        return found

    def _remember(self, block_id: str, measure: Measure) -> None:
        self._known[block_id] = measure
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)


def as_listed(block: Block) -> ListedBlock:
    """Return a block as one of a list."""
    return ListedBlock(**asdict(block))


def measure_span(
    stream: StreamReader, begin: int, end: int, pace: Callable[[], None] = lambda: None
) -> Measure:
    """Return what the output in a span of the stream is like; nothing of it leaves.

    The last line counts also without a line end. Where a span is longer than `MEASURED_BYTES`, only what was seen
    before that is known; of one whose beginning is not kept, nothing is.
    """
    if begin < stream.begin:
        return Measure()
    text, at, lines, last, moves = View("text", begin), begin, 0, b"\n", False
    stop = min(end, begin + MEASURED_BYTES)
    while at < stop and (data := stream.read(at, min(_PIECE, stop - at))):
        at += len(data)
        for piece in [text.feed(data)] + ([text.finish()] if at >= stop else []):
            lines += piece.text.count(b"\n")
            last = piece.text[-1:] or last
            # It has whole sequences only.
            moves = moves or _MOVES.search(piece.raw) is not None
        pace()
    if at < end:
        return Measure(None, True if moves else None)
    return Measure(lines + (last != b"\n"), moves)
