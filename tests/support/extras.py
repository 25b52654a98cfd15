"""A Python that lacks libraries, as an installation without extras does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from blockpty.surfaces.extras import EXTRAS

WITHOUT: Final = """
import importlib.machinery, sys
finder = importlib.machinery.PathFinder
found = finder.find_spec

def find_spec(name, path=None, target=None):
    return None if name.partition(".")[0] in {blocked!r} else found(name, path, target)

finder.find_spec = find_spec
"""


SEARCH: Final = ("numpy", "zstandard")


ALL: Final = (
    *EXTRAS["mcp"], "textual", *SEARCH, "mcp_types", "anyio", "h11", "httpcore", "httpx", "obstore", "psycopg"
)  # fmt: skip


def python(
    program: str, home: Path, *arguments: str, blocked: tuple[str, ...] = ALL
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT.format(blocked=set(blocked)) + program, *arguments],
        capture_output=True, text=True, check=False, timeout=60, env={**os.environ, "BLOCKPTY_HOME": str(home)},
    )  # fmt: skip
