"""A pair of files as script(1) writes them: the terminal's bytes, and their times in its "advanced" format.

Rules of this file: byte-exact, our own marks included; only nonces are masked, with as many asterisks. The first line
of the log, and its end, are script's own and not counted: scriptreplay(1) passes them over. It does not look at the
`H` lines either that say where blocks begin and end; an import does.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Final

from blockpty.runtime.export.recording_events import Began, Ended, Opening, Output, Resized, ShellExited, Source

Write = Callable[[bytes], None]

# Name of the H lines that tell of blocks, and how much of a command they hold: scriptreplay reads lines of 8 KiB.
BLOCK: Final = "BLOCKPTY_BLOCK"
_LABEL: Final = 1000
_TERM: Final = "xterm-256color"


def typescript(source: Source, log: Write, timing: Write) -> None:
    """Write both."""
    opening = source.opening()
    began = _moment(opening.ts)
    log(f'Script started on {began} [TERM="{_TERM}" COLUMNS="{opening.cols}" LINES="{opening.rows}"]\n'.encode())
    for name, value in _facts(opening, began):
        timing(f"H 0.000000 {name} {value}\n".encode())
    last = opening.ts
    status: int | None = None
    for moment in source.moments(opening, marks=True, ends=True):
        delay = f"{(moment.ts - last) / 1000:.6f}"
        match moment:
            case Output(_, data):
                log(data)
                timing(b"O %s %d\n" % (delay.encode(), len(data)))
            case Resized(_, cols, rows):
                status = None
                timing(f"S {delay} SIGWINCH ROWS={rows} COLS={cols}\n".encode())
            case Began(ts, block):
                timing(_border({"cmd": block.cmd[:_LABEL], "at_ms": ts - opening.ts}))
                continue
            case Ended(ts, block):
                timing(_border({"exit_status": block.exit_status, "at_ms": ts - opening.ts}))
                continue
            case ShellExited(_, status):
                continue
        last = moment.ts
    if source.block is not None:
        status = source.block.exit_status
    code = "" if status is None else f' [COMMAND_EXIT_CODE="{status}"]'
    log(f"\nScript done on {_moment(last)}{code}\n".encode())
    timing(f"H 0.000000 DURATION {(last - opening.ts) / 1000:.6f}\n".encode())
    if status is not None:
        timing(f"H 0.000000 EXIT_CODE {status}\n".encode())


def _border(said: dict[str, object]) -> bytes:
    """Return the line that says where a block begins or ends."""
    text = json.dumps(said, ensure_ascii=False)
    return f"H 0.000000 {BLOCK} {text}\n".encode("utf-8", "replace")


def _facts(opening: Opening, began: str) -> list[tuple[str, object]]:
    facts: list[tuple[str, object]] = [("START_TIME", began), ("TERM", _TERM)]
    facts += [("COLUMNS", opening.cols), ("LINES", opening.rows)]
    return facts + ([("SHELL", opening.shell)] if opening.shell else [])


def _moment(ts: int) -> str:
    return datetime.fromtimestamp(ts / 1000).astimezone().isoformat(" ", "seconds")
