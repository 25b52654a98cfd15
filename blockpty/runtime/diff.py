"""Difference between the outputs of two runs of a command."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Final

from blockpty.errors import NotFound
from blockpty.model.block import Block
from blockpty.model.results import DiffResult
from blockpty.runtime.block_list import Wanted, newest_first
from blockpty.spool.layout import Layout

# Of longer outputs only so many bytes, and lines, are compared: the time grows faster than the size.
COMPARED_BYTES: Final = 1024 * 1024
COMPARED_LINES: Final = 20_000


def previous_run(layout: Layout, block: Block, pace: Callable[[], None]) -> Block:
    """Return the last finished block before this one with the same command; raises NotFound.

    `pace` is called for each block that is looked at.
    """
    for record in newest_first(layout, Wanted(before_seq=block.seq)):
        pace()
        if record.get("seq", 0) < block.seq and (record.get("cmd"), record.get("kind")) == (block.cmd, block.kind):
            return Block.from_dict(record)
    raise NotFound(
        f"the command of {block.block_id} has not run before in this conversation",
        hint="name the block to compare with in against",
    )


def compare(
    old: Block,
    new: Block,
    read: Callable[[Block, int], tuple[str, bool]],
    context: int,
    max_bytes: int,
    cursor: int,
    pace: Callable[[], None],
) -> DiffResult:
    """Return how two outputs differ; `read(block, max_bytes)` gives the text of one, and whether that is not all.

    `pace` is called between two lines that differ.
    """
    (before, less), (after, fewer) = read(old, COMPARED_BYTES), read(new, COMPARED_BYTES)
    before_lines, after_lines = before.splitlines(keepends=True), after.splitlines(keepends=True)
    part = less or fewer or max(len(before_lines), len(after_lines)) > COMPARED_LINES
    pieces, size, cut = [], 0, False
    for line in difflib.unified_diff(
        before_lines[:COMPARED_LINES], after_lines[:COMPARED_LINES], old.block_id, new.block_id, n=context
    ):
        pace()
        piece = line if line.endswith("\n") else f"{line}\n\\ no line end\n"
        size += len(piece.encode("utf-8", "replace"))
        if size > max_bytes:
            cut = True
            break
        pieces.append(piece)
    same = not pieces and not cut and not part
    return DiffResult(new, old, same, "".join(pieces), part, cut, cursor)
