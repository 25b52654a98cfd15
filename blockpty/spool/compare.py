"""Comparison of a second derivation with the files, as a sink that does not write."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from blockpty.errors import SpoolCorrupt
from blockpty.spool.layout import Layout
from blockpty.spool.storage import file_size, open_file

MAX_DIFFERENCES: Final = 100
# What is shown on both sides of a difference, in bytes.
_AROUND: Final = 60
_JOURNALS: Final = ("events", "blocks")


class Lying(NamedTuple):
    """Files as they were before the record was read: all of it must follow from the record.

    Attributes:
        sizes: of events.jsonl and blocks.jsonl, 0 for one that is missing.
        outputs: the names in the directory of the output files.
    """

    sizes: tuple[int, int]
    outputs: frozenset[str]

    @classmethod
    def of(cls, layout: Layout) -> Lying:
        """Look at the files."""
        try:
            outputs = frozenset(os.listdir(layout.outputs))
        except FileNotFoundError:
            outputs = frozenset()
        return cls((file_size(layout.events), file_size(layout.blocks)), outputs)


class CompareSink:
    """Collects differences between what is derived and what is on disk.

    `written`: how much of events.jsonl and blocks.jsonl has been there already, and so must be; what follows from the
    record behind that may be missing, None: nothing may.

    Attributes:
        differences: at most `MAX_DIFFERENCES`, each {"invariant", "where", "message"}.
        behind: what is missing at the ends of files, and may be: each {"where", "message"}.
        events, blocks: how many lines were compared.
    """

    def __init__(self, layout: Layout, lying: Lying | None = None, *, written: tuple[int, int] | None = None) -> None:
        self._layout = layout
        self._lying = Lying.of(layout) if lying is None else lying
        self._written = dict(zip(_JOURNALS, written, strict=True)) if written is not None else None
        self._sizes = dict(zip(_JOURNALS, self._lying.sizes, strict=True))
        self._places = dict.fromkeys(_JOURNALS, 0)
        self._files = {"events": layout.events, "blocks": layout.blocks}
        self._descriptors: dict[str, int] = {}
        self._derived: set[str] = set()
        # What is too short of the outputs that the next lines speak of.
        self._short: dict[str, str] = {}
        self._reported: set[str] = set()
        self.differences: list[dict[str, Any]] = []
        self.behind: list[dict[str, Any]] = []
        self.events = 0
        self.blocks = 0

    def begin(self, places: Mapping[str, int], output: str | None) -> None:
        """Compare the journals from these places on, and an output that had begun before."""
        self._places.update(places)
        if output is not None:
            self._derived.add(Path(output).name)

    def differ(self, invariant: str, where: str, message: str) -> None:
        """Note one difference."""
        if len(self.differences) < MAX_DIFFERENCES:
            self.differences.append({"invariant": invariant, "where": where, "message": message})

    def out(self, name: str, position: int, data: bytes) -> None:
        """Compare bytes of a `.out` file."""
        descriptor = self._open(name, self._layout.directory / name)
        found = os.pread(descriptor, len(data), position) if data and descriptor >= 0 else b""
        if not data.startswith(found):
            self.differ("I4", name, f"bytes {position} to {position + len(data)} differ from the stream")
        elif descriptor < 0:
            self._short[name] = "is missing"
        elif len(found) < len(data):
            self._short.setdefault(name, f"ends at byte {position + len(found)}, the stream gives more")

    def out_end(self, name: str, size: int) -> None:
        """Compare the size of a finished `.out` file."""
        descriptor = self._open(name, self._layout.directory / name)
        actual = os.fstat(descriptor).st_size if descriptor >= 0 else 0
        if actual > size:
            self.differ("I4", name, f"has {actual} bytes, the stream gives {size}")
        elif actual < size:
            self._short.setdefault(name, f"has {actual} bytes, the stream gives {size}")
        self._close(name)

    def lines(self, events: list[tuple[int, bytes]], blocks: list[tuple[int, bytes]]) -> None:
        """Compare lines of the journals."""
        self.events += len(events)
        self.blocks += len(blocks)
        for kind, lines in (("events", events), ("blocks", blocks)):
            for number, line in lines:
                self._line(kind, number, line)
        # An output is written before the lines that speak of it.
        must = self._sizes["events"] if self._written is None else max(self._sizes["events"], self._written["events"])
        may = self._written is not None and self._places["events"] > must
        for name, message in self._short.items():
            if may:
                self.behind.append({"where": name, "message": message})
            else:
                self.differ("I4", name, message)
        self._short.clear()

    def _line(self, kind: str, number: int, line: bytes) -> None:
        place, size = self._places[kind], self._sizes[kind]
        end = self._places[kind] = place + len(line)
        if place < size:
            descriptor = self._open(kind, self._files[kind])
            found = os.pread(descriptor, min(len(line), size - place), place) if descriptor >= 0 else b""
            if not line.startswith(found) or (len(found) < len(line) and end <= size):
                self.differ("I4", f"{kind}.jsonl line {number}", _unlike(found, line, place))
                return
        if end > size and kind not in self._reported:
            self._reported.add(kind)
            missing = not self._files[kind].exists()
            message = "is missing" if missing else f"ends at byte {size}, line {number} would end at {end}"
            if self._written is None or place < self._written[kind]:
                self.differ("I4", f"{kind}.jsonl", message)
            else:
                self.behind.append({"where": f"{kind}.jsonl", "message": message})

    def finish(self, first_block: int = 1) -> None:
        """Compare the ends of the journals, report what follows from nothing, and close the files."""
        for kind in _JOURNALS:
            if self._sizes[kind] > self._places[kind]:
                message = f"has {self._sizes[kind]} bytes, the record gives {self._places[kind]}"
                self.differ("I4", f"{kind}.jsonl", message)
        for name in sorted(foreign(self._lying.outputs, self._derived, first_block)):
            self.differ("I4", f"blocks/{name}", "follows from nothing in the record")
        for name in list(self._descriptors):
            self._close(name)

    def _open(self, name: str, path: Path) -> int:
        if name not in self._descriptors:
            self._derived.add(path.name)
            try:
                self._descriptors[name] = open_file(path)
            except FileNotFoundError:
                self._descriptors[name] = -1
            except SpoolCorrupt as problem:
                self._descriptors[name] = -1
                self.differ("I4", str(path.relative_to(self._layout.directory)), str(problem))
        return self._descriptors[name]

    def _close(self, name: str) -> None:
        descriptor = self._descriptors.pop(name, -1)
        if descriptor >= 0:
            os.close(descriptor)


def _unlike(found: bytes, line: bytes, place: int) -> str:
    """Say where a line differs from what it should be, and how."""
    at = next((at for at, (one, other) in enumerate(zip(found, line, strict=False)) if one != other), len(found))
    begin = max(0, at - _AROUND)
    shown = [repr(text[begin : at + _AROUND]) for text in (found, line)]
    return f"differs from byte {place + at} on: is {shown[0]}, the record gives {shown[1]}"


def foreign(names: Collection[str], derived: Collection[str], first_block: int) -> set[str]:
    """Return the names of output files that follow from no block; those of blocks before the first are passed over."""
    return {
        name for name in names
        if name.endswith(".out") and name not in derived
        and not ((number := name.partition("_")[0]).isdigit() and int(number) < first_block)
    }  # fmt: skip
