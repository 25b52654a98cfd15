"""Captures: an asciicast of what happens between two calls.

Rules of this file: a capture is a span of the record, and what is kept of it meanwhile is where it began, on disk. So
it costs nothing while it runs and goes on over restarts of every process. Its file is written when it is stopped.
"""

from __future__ import annotations

import threading
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from blockpty.errors import NotFound
from blockpty.model.results import CaptureResult
from blockpty.runtime.export.recording_events import Source
from blockpty.runtime.export.writer import write
from blockpty.spool import checkpoint
from blockpty.spool.layout import make_private
from blockpty.spool.storage import full_is_an_error


def start_capture(source: Source) -> CaptureResult:
    """Begin at the end of a source; where a capture runs already, tell of that one."""
    found = _load(source)
    if found is None or found["end"] is not None:
        now = time.time_ns() // 1_000_000
        when = datetime.fromtimestamp(now / 1000).astimezone().strftime("%Y%m%d-%H%M%S-%f")[:-3]
        name = f"{source.conversation_id}-capture-{when}.cast"
        found = {"name": name, "begin": source.end, "begin_ts": now, "end": None, "end_ts": None}
        _save(source, found)
    return _result(source, found)


def stop_capture(source: Source, stopped: threading.Event) -> CaptureResult:
    """Write what has come since the beginning; where it is stopped already, tell of it again. Raises NotFound."""
    found = _load(source)
    if found is None:
        raise NotFound(f"no capture of {source.conversation_id} was started", hint="start_capture starts one")
    if found["end"] is None:
        found = {**found, "end": source.end, "end_ts": time.time_ns() // 1_000_000}
        path = _path(source, found)
        with full_is_an_error(path.parent):
            make_private(path.parent)
        write(replace(source, begin=found["begin"], ts=found["begin_ts"]), "cast", path, stopped)
        _save(source, found)
    return _result(source, found)


def _path(source: Source, found: dict[str, Any]) -> Path:
    # Only the name is taken from the file, so that the home can be moved and nothing outside of it be written.
    return source.layout.exports / Path(found["name"]).name


def _load(source: Source) -> dict[str, Any] | None:
    found = checkpoint.load_checkpoint(source.layout.capture)
    if found is None or not isinstance(found.get("name"), str) or not isinstance(found.get("begin"), int):
        return None
    # Damaged, or of a record that was longer.
    return found if 0 <= found["begin"] <= source.end and isinstance(found.get("begin_ts"), int) else None


def _save(source: Source, found: dict[str, Any]) -> None:
    with full_is_an_error(source.layout.capture):
        checkpoint.replace(source.layout.capture, {"format": checkpoint.FORMAT_VERSION, **found})


def _result(source: Source, found: dict[str, Any]) -> CaptureResult:
    end = source.end if found.get("end") is None else found["end"]
    until = time.time_ns() // 1_000_000 if found.get("end_ts") is None else found["end_ts"]
    return CaptureResult(
        cursor=source.end,
        capture_file=str(_path(source, found)),
        bytes_captured=end - found["begin"],
        duration_seconds=max(0, until - found["begin_ts"]) / 1000,
    )
