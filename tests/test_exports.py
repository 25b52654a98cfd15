"""The public names of the package: all there, all exported, and looked up only when used."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import blockpty
from blockpty import errors
from blockpty.model import conditions, results, unmet
from blockpty.ops.table import OPERATIONS

# Conditions, and the type of what a wait takes.
CONSTANTS = {"EOF", "INPUT", "PROMPT", "Match"}
INIT = Path(blockpty.__file__)


def subclasses(cls: type[errors.BlockptyError]) -> Iterator[type[errors.BlockptyError]]:
    yield cls
    for child in cls.__subclasses__():
        yield from subclasses(child)


@pytest.mark.parametrize("name", blockpty.__all__)
def test_every_public_name_resolves_to_an_object_of_that_name(name: str) -> None:
    value = getattr(blockpty, name)
    if isinstance(value, type) or inspect.isfunction(value):
        assert value.__name__ == name
    elif name in CONSTANTS:
        assert value is getattr(conditions, name)
    else:
        assert name == "__version__" or value is sys.modules[f"blockpty.{name}"]


def test_the_list_is_sorted_and_holds_each_name_once() -> None:
    assert blockpty.__all__ == sorted(set(blockpty.__all__))


def test_dir_lists_every_public_name() -> None:
    assert set(blockpty.__all__) <= set(dir(blockpty))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Enigne'"):
        blockpty.Enigne  # type: ignore[attr-defined]  # noqa: B018


def test_every_error_class_is_exported() -> None:
    ours = {cls.__name__: cls for cls in subclasses(errors.BlockptyError) if cls.__module__ == errors.__name__}
    assert ours.keys() <= set(blockpty.__all__)
    assert all(getattr(blockpty, name) is cls for name, cls in ours.items())


def test_every_result_is_exported() -> None:
    assert {operation.result.__name__ for operation in OPERATIONS.values()} <= set(blockpty.__all__)
    assert blockpty.RunResult is results.RunResult


def test_what_expect_raises_is_exported() -> None:
    classes = {name: value for name, value in vars(unmet).items() if isinstance(value, type)}
    raised = {name for name, value in classes.items() if value.__module__ == unmet.__name__}
    assert raised <= set(blockpty.__all__) and len(raised) == 6
    assert not raised & {cls.__name__ for cls in errors._BY_CODE.values()}


def test_type_checkers_see_exactly_the_public_names() -> None:
    tree = ast.parse(INIT.read_text("utf-8"))
    blocks = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    imported = {
        alias.asname or alias.name
        for block in blocks
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imported == set(blockpty.__all__) - {"__version__"}


def test_the_package_tells_type_checkers_that_it_is_typed() -> None:
    assert (INIT.parent / "py.typed").is_file()


def modules_loaded_by(statement: str) -> set[str]:
    """Run one statement in a fresh interpreter and return the modules that it alone brought in."""
    program = f"import json, sys; old = set(sys.modules); {statement}; print(json.dumps(list(set(sys.modules) - old)))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    return set(json.loads(found.stdout))


def test_the_blocking_api_is_an_attribute_of_the_package() -> None:
    loaded = modules_loaded_by("import blockpty; blockpty.sync.Engine, blockpty.sync.Client")
    assert "blockpty.sync" in loaded
    # Which of the two is used is known when one is made.
    assert not {"blockpty.ops.engine", "blockpty.surfaces.client"} & loaded


@pytest.mark.parametrize("statement", ["import blockpty", "import blockpty.errors"])
def test_importing_the_package_loads_only_itself_and_the_standard_library(statement: str) -> None:
    loaded = modules_loaded_by(statement)
    assert "blockpty" in loaded
    roots = {name.partition(".")[0] for name in loaded}
    assert roots - {"blockpty"} <= sys.stdlib_module_names
    assert not roots & {"asyncio", "concurrent", "logging", "multiprocessing", "sqlite3", "ssl"}
    assert {name for name in loaded if name.startswith("blockpty.")} <= {"blockpty.errors"}


def test_the_engine_loads_no_surface() -> None:
    if importlib.util.find_spec("blockpty.runtime.engine") is None:
        pytest.skip("the engine is not there yet")
    loaded = modules_loaded_by("import blockpty; blockpty.Engine")
    roots = {name.partition(".")[0] for name in loaded}
    assert not roots & {"click", "fastapi", "mcp", "pydantic", "rich", "starlette", "textual", "uvicorn"}
    above = {name for name in loaded if name.startswith(("blockpty.surfaces", "blockpty.ops"))}
    assert above == {"blockpty.ops", "blockpty.ops.engine"}


def test_the_engine_loads_only_what_commands_need() -> None:
    loaded = modules_loaded_by("import blockpty; blockpty.Engine")
    later = {
        "blockpty.runtime.archiving",
        "blockpty.runtime.capture",
        "blockpty.runtime.record_checks",
        "blockpty.runtime.diff",
        "blockpty.runtime.export",
        "blockpty.runtime.replay",
        "blockpty.search",
    }
    assert not later & loaded
    assert not {name.partition(".")[0] for name in loaded} & {"difflib", "numpy", "psycopg", "sqlite3", "watchfiles"}
