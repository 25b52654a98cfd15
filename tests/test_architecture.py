"""The rooms and their one-way arrows, and the other things about the tree that no single test would notice.

The contracts themselves are in pyproject.toml. They are checked twice: that the package keeps them, and, on a small
package made for it, that each of them does break when it is crossed.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.tool_scripts import layout

TOP = Path(__file__).resolve().parents[1]
ROOMS = (
    "surfaces", "ops", "cluster", "search", "runtime", "api", "engine", "spool", "host", "control", "redact", "screen",
    "model", "files", "errors",
)  # fmt: skip


def lint_imports(directory: Path) -> subprocess.CompletedProcess[str]:
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    arguments = ["--config", str(TOP / "pyproject.toml"), "--no-cache", "--no-logo"]
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(directory), "NO_COLOR": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


def test_the_package_keeps_its_contracts() -> None:
    found = lint_imports(TOP)
    assert found.returncode == 0, found.stdout + found.stderr


def _with_empty_rooms(directory: Path) -> Path:
    for room in ("", *ROOMS):
        (directory / "blockpty" / room).mkdir()
        (directory / "blockpty" / room / "__init__.py").write_text("")
    return directory


@pytest.fixture
def empty_rooms(tmp_path: Path) -> Path:
    return _with_empty_rooms(tmp_path)


def test_empty_rooms_keep_the_contracts(empty_rooms: Path) -> None:
    found = lint_imports(empty_rooms)
    assert found.returncode == 0, found.stdout + found.stderr


def test_what_is_allowed_is_not_refused(empty_rooms: Path) -> None:
    package = empty_rooms / "blockpty"
    (package / "surfaces" / "cli.py").write_text("import click, rich.console, pydantic, blockpty.ops.table\n")
    (package / "ops" / "table.py").write_text("import asyncio, pydantic, blockpty.runtime, blockpty.search\n")
    (package / "runtime" / "conversation.py").write_text("import asyncio, blockpty.engine, blockpty.spool\n")
    (package / "cluster" / "store.py").write_text("import psycopg, blockpty.search, blockpty.runtime\n")
    (package / "spool" / "objects.py").write_text("import obstore\n")
    (package / "engine" / "machine.py").write_text("import re, regex, blockpty.model, blockpty.screen\n")
    found = lint_imports(empty_rooms)
    assert found.returncode == 0, found.stdout + found.stderr


CROSSINGS = (
    ("errors", "blockpty.model"),
    ("model", "blockpty.engine"),
    ("engine", "blockpty.runtime"),
    ("engine", "blockpty.spool"),
    ("spool", "blockpty.host"),
    ("host", "blockpty.engine"),
    ("screen", "blockpty.redact"),
    ("redact", "blockpty.screen"),
    ("control", "asyncio"),
    ("control", "blockpty.host"),
    ("host", "blockpty.screen"),
    ("spool", "blockpty.screen"),
    ("runtime", "blockpty.search"),
    ("runtime", "blockpty.ops"),
    ("search", "blockpty.cluster"),
    ("cluster", "blockpty.ops"),
    ("ops", "blockpty.surfaces"),
    ("files", "blockpty.model"),
    ("files", "blockpty.errors"),
    ("files", "orjson"),
    ("model", "blockpty.files"),
    ("engine", "blockpty.files"),
    ("engine", "asyncio"),
    ("engine", "time"),
    ("model", "os.path"),
    ("screen", "time"),
    ("screen", "blockpty.engine"),
    ("errors", "logging"),
    ("runtime", "click"),
    ("ops", "starlette.routing"),
    ("runtime", "pydantic"),
    ("runtime", "psycopg"),
    ("cluster", "obstore"),
)


@pytest.fixture(scope="module")
def crossed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What is said of a package in which every arrow is crossed by a module of its own."""
    directory = _with_empty_rooms(tmp_path_factory.mktemp("crossed"))
    for number, (room, imported) in enumerate(CROSSINGS):
        (directory / "blockpty" / room / f"culprit{number}.py").write_text(f"import {imported}\n")
    found = lint_imports(directory)
    assert found.returncode == 1, found.stdout + found.stderr
    return found.stdout


@pytest.mark.parametrize(("number", "room", "imported"), [(number, *pair) for number, pair in enumerate(CROSSINGS)])
def test_crossing_an_arrow_is_noticed(crossed: str, number: int, room: str, imported: str) -> None:
    # Of a package from outside only the first part of the name is said.
    shown = imported if imported.startswith("blockpty.") else imported.partition(".")[0]
    assert f"blockpty.{room}.culprit{number} -> {shown} (l.1)" in crossed, crossed


def test_a_new_room_must_be_declared(empty_rooms: Path) -> None:
    (empty_rooms / "blockpty" / "attic.py").write_text("")
    found = lint_imports(empty_rooms)
    assert found.returncode == 1
    assert "attic" in found.stdout


def test_no_modules_import_each_other() -> None:
    graph = layout.import_graph(layout.read_package(TOP / "blockpty"))
    assert not [" -> ".join(layout.shortest_circle(graph, group)) for group in layout.circles(graph)]


def test_no_class_name_stands_for_two_things() -> None:
    assert not layout.repeated_classes(layout.read_package(TOP / "blockpty"))


def tree() -> Iterator[Path]:
    """List the files of the project: by git where there is a repository, else all outside hidden directories."""
    candidates: Iterable[Path] = TOP.rglob("*")
    if (TOP / ".git").exists():
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listing = subprocess.run(command, cwd=TOP, capture_output=True, check=True, timeout=60)
        candidates = [TOP / os.fsdecode(name) for name in listing.stdout.split(b"\0") if name]
    else:
        hidden = re.compile(r"\.(?!ci$|github$)")
        candidates = [path for path in candidates if not any(map(hidden.match, path.relative_to(TOP).parts[:-1]))]
    return (path for path in candidates if path.is_file() and not path.is_symlink())


def machine_paths() -> re.Pattern[bytes]:
    """Match where a developer keeps things: homes, virtual environments, and the place of this very checkout."""
    patterns = [
        rb"/(?:home|Users)/(?!user\b|you\b|me\b)[A-Za-z][\w.-]*/",
        rb"(?<![\w.])/root/[\w.]",
        rb"/tmp/[\w.-]*venv\b",
    ]
    places = {TOP, TOP.parent, Path.home()}
    # A place with a common name of one part, such as /src or /tmp, says nothing about any particular machine.
    patterns += [re.escape(os.fsencode(place)) + rb"/" for place in places if len(place.parts) > 2]
    return re.compile(b"|".join(patterns))


def test_no_file_names_a_path_of_somebodys_machine() -> None:
    pattern = machine_paths()
    found = []
    for path in tree():
        content = path.read_bytes()
        for match in pattern.finditer(content):
            line = content.count(b"\n", 0, match.start()) + 1
            found.append(f"{path.relative_to(TOP)}:{line}: {match.group().decode()}")
    assert not found


@pytest.mark.parametrize("text", ["/ho" "me/jane/x", "/Use" "rs/jane/x", "see /ro" "ot/x", f"{TOP}/x"])
def test_a_path_of_somebodys_machine_would_be_found(text: str) -> None:
    assert machine_paths().search(text.encode())


def _modules() -> Iterator[object]:
    import blockpty

    for found in pkgutil.walk_packages(blockpty.__path__, "blockpty."):
        if not found.name.endswith("__main__"):
            yield importlib.import_module(found.name)


def _possessive_groups(parsed: Iterable[tuple[Any, Any]]) -> int:
    count = 0
    for operation, argument in parsed:
        name = str(operation)
        if name == "ATOMIC_GROUP" or (name == "POSSESSIVE_REPEAT" and str(argument[2][0][0]) not in _ONE_CHARACTER):
            count += 1
        for part in argument if isinstance(argument, tuple | list) else [argument]:
            for inner in part if isinstance(part, list) else [part]:
                if isinstance(inner, re._parser.SubPattern):
                    count += _possessive_groups(inner)
    return count


_ONE_CHARACTER = {"IN", "LITERAL", "NOT_LITERAL", "ANY"}


def test_no_pattern_of_re_has_a_possessive_group() -> None:
    """Python 3.11.0 to 3.11.4 never come back from some of them, and eat all memory; `regex` has none of that."""
    assert _possessive_groups(re._parser.parse(r"a(?:(?:\x1b)b|c)?+")) == 1
    assert _possessive_groups(re._parser.parse(r"(x|(?>yz))")) == 1
    assert not _possessive_groups(re._parser.parse(r"(?:[0-9]{0,8}+|a*+)b"))
    looked_at = 0
    for module in _modules():
        for name, value in vars(module).items():
            for pattern in _patterns(value):
                looked_at += 1
                found = _possessive_groups(re._parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE))
                assert not found, f"{module.__name__}.{name}"
    assert looked_at > 100


def _patterns(value: object, depth: int = 3) -> Iterator[re.Pattern[Any]]:
    value = getattr(value, "__self__", value)
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, tuple | list | dict | frozenset) and depth:
        for one in value.values() if isinstance(value, dict) else value:
            yield from _patterns(one, depth - 1)
