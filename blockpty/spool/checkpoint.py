"""Small JSON files that are replaced whole: `meta.json` and `checkpoint.json`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import orjson

from blockpty.errors import SpoolCorrupt, SpoolError, SpoolVersion
from blockpty.files.lines import is_sound, sealed
from blockpty.spool.storage import open_file, read_file

# 2: every line of the timeline has a seal.
FORMAT_VERSION: Final = 2
# 3: as 2, and the record begins where `begin.json` says; only such conversations have it.
CUT_VERSION: Final = 3
# 4: as 2 or 3, and the terminal showed something else than a shell of this machine; only such conversations have it.
SOURCE_VERSION: Final = 4
NEWEST_VERSION: Final = SOURCE_VERSION
# What `open` of meta.json holds; 1, which is not written, knows no source.
OPEN_FORMAT: Final = 2


def replace(path: Path, record: Mapping[str, Any], *, durable: bool = False) -> None:
    """Write a file 0600 beside its place and move it there; with `durable` its content is synced by then."""
    temporary = path.with_name(f".{path.name}.new")
    descriptor = open_file(temporary, os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
    try:
        left = memoryview(sealed(orjson.dumps(record)))
        while left:
            left = left[os.write(descriptor, left) :]
        if durable:
            os.fdatasync(descriptor)
    finally:
        os.close(descriptor)
    os.replace(temporary, path)


def load_checkpoint(path: Path) -> dict[str, Any] | None:
    """Return a checkpoint of this version; None when there is none or it cannot be used (it is derived)."""
    with contextlib.suppress(OSError, SpoolError, orjson.JSONDecodeError):
        content = read_file(path)
        record = orjson.loads(content)
        if isinstance(record, dict) and record.get("format") == FORMAT_VERSION and is_sound(content.rstrip(b"\n")):
            record.pop("crc")
            return record
    return None


def is_damaged(path: Path) -> bool:
    """Whether there is a checkpoint that is not what was written; one of another version is not damaged."""
    try:
        content = read_file(path)
    except FileNotFoundError:
        return False
    except (OSError, SpoolError):
        return True
    with contextlib.suppress(orjson.JSONDecodeError):
        record = orjson.loads(content)
        return not isinstance(record, dict) or not is_sound(content.rstrip(b"\n"))
    return True


def load_meta(path: Path) -> dict[str, Any]:
    """Return a conversation's identity; raises FileNotFoundError, SpoolCorrupt or SpoolVersion."""
    content = read_file(path)
    try:
        record = orjson.loads(content)
    except orjson.JSONDecodeError:
        record = None
    version = record.get("format") if isinstance(record, dict) else None
    if not isinstance(record, dict) or isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise SpoolCorrupt(f"{path} is damaged", hint="restore meta.json; stream and timeline are not touched")
    if version <= NEWEST_VERSION and is_sound(content.rstrip(b"\n")) is False:
        raise SpoolCorrupt(f"{path} is damaged", hint="restore meta.json; stream and timeline are not touched")
    if version > NEWEST_VERSION:
        raise SpoolVersion(
            f"{path.parent.name} was written by format {version}, this version knows up to {NEWEST_VERSION}",
            hint="use a newer blockpty",
        )
    record.pop("crc", None)
    return record


def open_settings(conversation_id: str, meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was asked for at the last open, without its own format; raises SpoolVersion for a newer one."""
    settings = dict(meta.get("open", {}))
    version = settings.pop("format", 1)
    if version not in (1, OPEN_FORMAT):
        raise SpoolVersion(
            f"what {conversation_id} was opened with is written in format {version}, this version knows up to "
            f"{OPEN_FORMAT}",
            hint="use a newer blockpty",
        )
    return settings
