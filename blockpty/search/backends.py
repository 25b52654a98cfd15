"""Index backends of a home: its own in SQLite, a shared one in PostgreSQL, or none."""

from __future__ import annotations

import functools
import os
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

from blockpty.errors import BadRequest

if TYPE_CHECKING:
    from blockpty.search.index import Index

DATABASE_VARIABLE: Final = "BLOCKPTY_DATABASE_URL"


def database_url() -> str | None:
    """Return where the shared catalogue is, None where there is none."""
    return os.environ.get(DATABASE_VARIABLE) or None


def index_directory(home: Path) -> Path:
    """Return where a home's own index lies; it may be removed at any time."""
    return home / "index"


def open_index(home: Path) -> Index:
    """Return the index of a home; nothing is opened before it is used.

    Raises BadRequest when the URL of the shared catalogue cannot be used.
    """
    if (url := database_url()) is not None:
        index: Index = shared().open_shared(home, url)
        return index
    # SQLite takes a while to import, and who only asks for the catalogue's address needs none of this.
    from blockpty.search.scan import Scan
    from blockpty.search.sqlite import SqliteIndex, supported

    return SqliteIndex(index_directory(home)) if has_libraries() and supported() else Scan()


@functools.cache
def has_libraries() -> bool:
    """Whether the extra `blockpty[search]` is installed; without it a search reads everything."""
    return all(find_spec(name) is not None for name in ("numpy", "zstandard"))


def shared() -> ModuleType:
    """Return the module of the shared catalogue; raises BadRequest where its library is missing."""
    try:
        return import_module("blockpty.cluster.catalogue")
    except ImportError as problem:
        raise BadRequest(
            f"{DATABASE_VARIABLE} is set, and {problem.name} is not installed", hint="pip install 'blockpty[postgres]'"
        ) from None
