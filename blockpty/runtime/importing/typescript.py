"""Reader of the pairs of script(1): the terminal's bytes and the file with their times, "advanced" or classic.

Rules of this file: every byte is kept as it is. The first line of the log, and what follows the last counted byte, are
script's own. Our own typescripts say in `H` lines, which other readers pass over, where blocks begin and end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator
from datetime import datetime
from pathlib import Path
from typing import IO, Final

from blockpty.api.progress import Progress
from blockpty.runtime.export.typescript import BLOCK
from blockpty.runtime.importing.parts import (
    MAX_SECONDS,
    Border,
    Cut,
    Header,
    Over,
    Part,
    Shown,
    Sized,
    bad,
    checked_size,
    seconds_of,
    status_of,
    text_of,
)

_PIECE: Final = 256 * 1024
_LINE: Final = 64 * 1024
_STARTED: Final = b"Script started"
_FACT: Final = re.compile(rb'(\w{1,40})="([^"]{0,400})"')
_DELAY: Final = re.compile(rb"\d{1,12}(?:\.\d{1,12})?")
_SIZE: Final = re.compile(rb"ROWS=(\d{1,9}) COLS=(\d{1,9})")


def typescript(log: Path, times: Path) -> Iterator[Part]:
    """Yield the parts of a pair, the header first; raises BadRequest, with the line, for what is none."""
    with log.open("rb") as file, times.open("rb") as timing:
        yield from _Pair(file, timing, times.name).parts()


class _Pair:
    def __init__(self, log: IO[bytes], timing: IO[bytes], name: str) -> None:
        self._log = log
        self._timing = timing
        self._name = name
        self._facts: dict[str, str] = {}
        self._at = 0.0
        self._status: int | None = None
        self._over = False
        self._progress = Progress.of_caller()

    def parts(self) -> Iterator[Part]:
        first = self._log.readline(_LINE)
        if first.startswith(_STARTED):
            self._facts = {key.decode(): value.decode("utf-8", "replace") for key, value in _FACT.findall(first)}
        else:
            # `script --quiet` writes no such line.
            self._log.seek(0)
        begun = False
        for number, line in self._lines():
            where = f"{self._name}, line {number}"
            kind, _, rest = line.partition(b" ")
            if not begun and kind != b"H":
                yield self._header(where)
                begun = True
            if kind == b"H":
                border = self._fact(rest)
                if border is not None:
                    if not begun:
                        yield self._header(where)
                        begun = True
                    yield border
                continue
            if kind in (b"O", b"I", b"S"):
                delay, _, value = rest.partition(b" ")
            elif _DELAY.fullmatch(kind):
                # The classic form has no letter.
                kind, delay, value = b"O", kind, rest
            else:
                raise bad(where, "no line of a timing file: a letter (O, I, S, H) and a delay, or a delay and a count")
            at_ms = self._passed(where, delay)
            if kind == b"O":
                whole = yield from self._shown(where, at_ms, value)
                if not whole:
                    yield Cut(at_ms)
                    return
            elif kind == b"S" and (found := _SIZE.search(value)):
                cols, rows = checked_size(where, int(found[2]), int(found[1]))
                yield Sized(at_ms, cols, rows)
        if not begun:
            yield self._header(self._name)
        if self._over:
            yield Over(round(self._at * 1000), self._status)

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        number = 0
        while line := self._timing.readline(_LINE + 1):
            number += 1
            if len(line) > _LINE:
                raise bad(f"{self._name}, line {number}", f"longer than {_LINE} bytes")
            if not line.endswith(b"\n"):
                return  # its writer was killed
            if line.strip():
                yield number, line.rstrip(b"\r\n")

    def _passed(self, where: str, delay: bytes) -> int:
        if not _DELAY.fullmatch(delay):
            raise bad(where, "no delay in seconds")
        self._at = seconds_of(where, self._at + float(delay))
        return round(self._at * 1000)

    def _shown(self, where: str, at_ms: int, count: bytes) -> Generator[Part, None, bool]:
        """Yield the bytes of a line; return whether all of them are there."""
        if not count.isdigit() or len(count) > 15:
            raise bad(where, "no count of bytes")
        left = int(count)
        while left > 0:
            data = self._log.read(min(left, _PIECE))
            if not data:
                return False
            left -= len(data)
            self._progress.add(len(data))
            yield Shown(at_ms, data)
        return True

    def _fact(self, rest: bytes) -> Border | None:
        """Take an H line; return what ours says."""
        _, _, fact = rest.partition(b" ")
        name, _, value = fact.decode("utf-8", "replace").partition(" ")
        if name == "EXIT_CODE":
            self._status, self._over = status_of(value), True
        elif name == BLOCK:
            try:
                said = json.loads(value)
                cmd = said.get("cmd")
            except (ValueError, RecursionError, AttributeError):
                return None
            shown = cmd.encode("utf-8", "replace").decode() if isinstance(cmd, str) else None
            # A block may end, or begin, long after the last byte before that.
            at_ms = said.get("at_ms")
            later = at_ms if type(at_ms) is int and 0 <= at_ms <= MAX_SECONDS * 1000 else 0
            return Border(max(round(self._at * 1000), later), shown, status_of(said.get("exit_status")))
        elif len(self._facts) < 100:
            self._facts[name[:40]] = value
        return None

    def _header(self, where: str) -> Header:
        facts = self._facts
        cols, rows = facts.get("COLUMNS", ""), facts.get("LINES", "")
        # script without a terminal of its own says nothing, or -1.
        known = all(value.isascii() and value.isdigit() and len(value) < 10 for value in (cols, rows))
        size = checked_size(where, int(cols), int(rows)) if known else (80, 24)
        began = None
        try:
            began = round(datetime.fromisoformat(facts.get("START_TIME", "")).timestamp() * 1000)
        except (ValueError, OverflowError, OSError):
            pass
        return Header(
            "typescript", *size, ts=began if began is not None and began >= 0 else None,
            command=text_of(facts.get("COMMAND")), shell=text_of(facts.get("SHELL")),
        )  # fmt: skip
