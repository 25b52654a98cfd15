"""A sink that compares a second derivation with the files instead of writing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

from blockpty.spool.layout import Layout
from blockpty.spool.opening import open_file

MAX_DIFFERENCES: Final = 100


class CompareSink:
    """Collects differences between what is derived and what is on disk.

    Attributes:
        differences: at most `MAX_DIFFERENCES`, each {"invariant", "where", "message"}.
        events, blocks: how many lines were compared.
    """

    def __init__(self, layout: Layout, *, growing: bool = False) -> None:
        self._layout = layout
        self._growing = growing
        self._places = {"events": 0, "blocks": 0}
        self._files = {"events": layout.events, "blocks": layout.blocks}
        self._descriptors: dict[str, int] = {}
        self.differences: list[dict[str, Any]] = []
        self.events = 0
        self.blocks = 0

    def begin(self, places: Mapping[str, int]) -> None:
        """Compare the journals from these places on."""
        self._places.update(places)

    def differ(self, invariant: str, where: str, message: str) -> None:
        """Note one difference."""
        if len(self.differences) < MAX_DIFFERENCES:
            self.differences.append({"invariant": invariant, "where": where, "message": message})

    def out(self, name: str, position: int, data: bytes) -> None:
        """Compare bytes of a `.out` file."""
        found = os.pread(self._open(name, self._layout.directory / name), len(data), position) if data else b""
        if found != data:
            self.differ("I4", name, f"bytes {position} to {position + len(data)} differ from the stream")

    def out_end(self, name: str, size: int) -> None:
        """Compare the size of a finished `.out` file."""
        descriptor = self._open(name, self._layout.directory / name)
        actual = os.fstat(descriptor).st_size if descriptor >= 0 else -1
        if actual != size:
            self.differ("I4", name, f"has {actual} bytes, the stream gives {size}")
        self._close(name)

    def lines(self, events: list[tuple[int, bytes]], blocks: list[tuple[int, bytes]]) -> None:
        """Compare lines of the journals."""
        self.events += len(events)
        self.blocks += len(blocks)
        for kind, lines in (("events", events), ("blocks", blocks)):
            for number, line in lines:
                place = self._places[kind]
                found = os.pread(self._open(kind, self._files[kind]), len(line), place)
                if found != line and (found or not self._growing):
                    self.differ(
                        "I4", f"{kind}.jsonl line {number}", f"is {found[:200]!r}, the record gives {line[:200]!r}"
                    )
                self._places[kind] = place + len(line)

    def finish(self, sizes: tuple[int, int] | None) -> None:
        """Compare the ends of the journals (unless somebody is writing them) and close the files."""
        for kind, size in zip(self._files, sizes or (), strict=False):
            if size != self._places[kind]:
                self.differ("I4", f"{kind}.jsonl", f"has {size} bytes, the record gives {self._places[kind]}")
        for name in list(self._descriptors):
            self._close(name)

    def _open(self, name: str, path: Any) -> int:
        if name not in self._descriptors:
            try:
                self._descriptors[name] = open_file(path)
            except FileNotFoundError:
                self.differ("I4", name, "is missing")
                self._descriptors[name] = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        return self._descriptors[name]

    def _close(self, name: str) -> None:
        descriptor = self._descriptors.pop(name, -1)
        if descriptor >= 0:
            os.close(descriptor)
