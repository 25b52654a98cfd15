"""What is covered in ordinary text: the files that are on this machine, hexdumps and numbers."""

from __future__ import annotations

import random
import sysconfig
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from blockpty.redact.redaction import find_shown
from tests.support.profile import LONG

MOST_BYTES = 10_000_000 if LONG else 3_000_000
PLACES = {"headers": Path("/usr/include"), "library": Path(sysconfig.get_path("stdlib"))}
# Of the library, what is made of examples of secrets, or for its own tests.
_NOT = ("test", "tests", "idlelib", "lib2to3", "site-packages", "__pycache__")


def texts(place: Path) -> Iterator[tuple[Path, bytes]]:
    """Return the text files below a directory, in the order of their names, up to `MOST_BYTES`."""
    size = 0
    for path in sorted(place.rglob("*")):
        if path.suffix in (".h", ".hpp", ".tcc", ".py", ".txt", "") and not set(path.parts) & set(_NOT):
            data = path.read_bytes()[:200_000] if path.is_file() and not path.is_symlink() else b""
            if data and b"\0" not in data:
                size += len(data)
                yield path, data
        if size > MOST_BYTES:
            return


@pytest.mark.parametrize("name", [*PLACES])
def test_little_is_redacted_of_what_is_no_secret(name: str) -> None:
    if not PLACES[name].is_dir():
        pytest.skip(f"no {PLACES[name]} here")
    found = [(path, data[at:to]) for path, data in texts(PLACES[name]) for at, to in find_shown(data).spans]
    assert len(found) <= 1, found


def test_nothing_is_redacted_of_numbers() -> None:
    chance = random.Random(1)
    ids = "".join(f"{uuid.UUID(int=chance.getrandbits(128))} {chance.getrandbits(256):064x}\n" for _ in range(5000))
    rows = "".join(f"{at:08x}  {chance.randbytes(16).hex(' ')}  |................|\n" for at in range(0, 80_000, 16))
    assert not find_shown((ids + rows).encode()).spans
