"""Which index a home has: one of its own in SQLite, a shared one in PostgreSQL, or none."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from blockpty.search.index import Index
from blockpty.search.scan import Scan
from blockpty.search.sqlite import SqliteIndex, supported

DATABASE_VARIABLE: Final = "BLOCKPTY_DATABASE_URL"


def database_url() -> str | None:
    """Return where the shared catalogue is, None where there is none."""
    return os.environ.get(DATABASE_VARIABLE) or None


def index_directory(home: Path) -> Path:
    """Return where a home's own index lies; it may be removed at any time."""
    return home / "index"


def open_index(home: Path) -> Index:
    """Return the index of a home; nothing is opened before it is used."""
    return SqliteIndex(index_directory(home)) if supported() else Scan()
