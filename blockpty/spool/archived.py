"""Archive of streams in an object store: what is where, on the way there and back.

Rules of this file: at any moment the bytes of a stream are in its segments, or in the store and known to be whole
there. A list (`stream/archived.json`) is written only when every segment was read back from the store and has the same
hash; segments are removed only when the list is durable. A segment comes back under another name, is compared
with its hash, and gets its place in one step. A kill in between leaves both copies.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from blockpty.errors import Busy, SpoolCorrupt
from blockpty.files.segments import is_segment_name
from blockpty.files.sync import sync_directory
from blockpty.spool import checkpoint, objects
from blockpty.spool.layout import Layout
from blockpty.spool.log_start import load_log_start
from blockpty.spool.storage import full_is_an_error, open_file

NAME: Final = "archived.json"
_PIECE: Final = 1024 * 1024


def ship(layout: Layout, url: str) -> int:
    """Copy a stream that does not grow any more to a store, and remove it here; return the bytes that were freed.

    The timeline and `meta.json` are copied as well and stay. Raises ArchiveUnreachable, BadRequest, StorageFull.
    """
    store, name = objects.opened(url), layout.directory.name
    segments = _segments(layout.stream)
    before = _list(layout.stream) or {"segments": [], "beside": []}
    known = {one["name"]: one for one in before["segments"]}
    keys = {*before["beside"], *(one["key"] for one in before["segments"])}
    beside = []
    beginning = [path for path in (layout.directory / "begin.json",) if path.exists()]
    for path in (layout.meta, layout.timeline, *beginning, *segments):
        digest, size = objects.digest_of(_pieces(path))
        key = f"{name}/{digest}/{path.name}"
        if known.get(path.name, {}).get("key") != key:
            store.put(key, path)
        if (digest, size) != objects.digest_of(store.get(key)):
            raise SpoolCorrupt(f"{path.name} of {name} came back from the archive as something else")
        if path in segments:
            known[path.name] = {"name": path.name, "bytes": size, "sha256": digest, "key": key}
        else:
            beside.append(key)
    whole = [known[one] for one in sorted(known)]
    old = keys - {*beside, *(one["key"] for one in whole)}
    with full_is_an_error(layout.stream):
        record = {"format": checkpoint.FORMAT_VERSION, "url": url, "segments": whole, "beside": [*beside, *sorted(old)]}
        checkpoint.replace(layout.stream / NAME, record, durable=True)
        sync_directory(layout.stream)
    for key in old:  # of a timeline that was shorter; who is killed here has it in the list still
        store.delete(key)
    freed = 0
    for path in segments:
        if path.stat().st_size != known[path.name]["bytes"]:
            raise Busy(f"the stream of {name} has grown", hint="archive it when its shell has ended")
        freed += path.stat().st_blocks * 512
        path.unlink()
    return freed


def here(layout: Layout) -> int:
    """Return how many bytes of a stream are not in the store alone: what `ship` would free."""
    return sum(path.stat().st_blocks * 512 for path in _segments(layout.stream))


def end_of(stream: str | Path) -> int | None:
    """Return where a stream ends that is not (all) here; None for one that is."""
    listed = _list(Path(stream))
    if listed is None or not _missing(Path(stream), listed):
        return None
    last = listed["segments"][-1]
    return int(last["name"]) + int(last["bytes"])


def fetch(stream: str | Path) -> bool:
    """Bring back what is missing of a stream; return whether something was. Raises ArchiveUnreachable, SpoolCorrupt."""
    directory = Path(stream)
    listed = _list(directory)
    missing = _missing(directory, listed) if listed is not None else []
    for segment in missing:
        assert listed is not None
        _fetch(directory, listed["url"], segment)
    return bool(missing)


def forget(layout: Layout) -> None:
    """Remove from the store what is there of a conversation that is deleted; raises ArchiveUnreachable."""
    listed = _list(layout.stream)
    if listed is not None:
        store = objects.opened(listed["url"])
        for key in [*listed["beside"], *(segment["key"] for segment in listed["segments"])]:
            store.delete(key)


def _fetch(directory: Path, url: str, segment: Mapping[str, Any]) -> None:
    part = directory / f".{segment['name']}.{secrets.token_hex(4)}.part"
    try:
        with full_is_an_error(directory):
            descriptor = open_file(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
            with os.fdopen(descriptor, "wb") as file:
                digest = objects.digest_of(_written(objects.opened(url).get(segment["key"]), file))
                file.flush()
                os.fdatasync(file.fileno())
            if digest != (segment["sha256"], segment["bytes"]):
                raise SpoolCorrupt(
                    f"{segment['name']} of {directory.parent.name} is damaged in the archive",
                    hint="restore it there from a copy", details={"key": segment["key"]},
                )  # fmt: skip
            os.replace(part, directory / segment["name"])
    finally:
        part.unlink(missing_ok=True)


def _written(pieces: Iterator[bytes], file: Any) -> Iterator[bytes]:
    for piece in pieces:
        file.write(piece)
        yield piece


def _list(stream: Path) -> dict[str, Any] | None:
    listed = checkpoint.load_checkpoint(stream / NAME)
    return listed if listed is not None and listed.get("segments") else None


def _missing(stream: Path, listed: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    absent = [segment for segment in listed["segments"] if not (stream / segment["name"]).exists()]
    beginning = load_log_start(stream.parent) if absent else None
    # What lies before the beginning of a record was not shipped but removed.
    return [one for one in absent if beginning is None or int(one["name"]) + int(one["bytes"]) > beginning.needed]


def _segments(stream: Path) -> list[Path]:
    return [path for path in sorted(stream.iterdir()) if is_segment_name(path.name)]


def _pieces(path: Path) -> Iterator[bytes]:
    with open(open_file(path), "rb") as file:
        while piece := file.read(_PIECE):
            yield piece
