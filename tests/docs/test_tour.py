"""The tour of the code names files and functions that exist, in at most twelve stops."""

from __future__ import annotations

import ast
import re

from tests.support.markdown import TOP

PAGE = TOP / "docs" / "topics" / "tour.md"
MOST_STOPS = 12

_STOP = re.compile(r"^## \d+\. .*$", re.MULTILINE)
_PLACE = re.compile(r"^\* `(blockpty/[\w/]+\.py)`: (.+)$", re.MULTILINE)


def stops() -> list[str]:
    """Return the text of each stop."""
    text = PAGE.read_text("utf-8").partition("\n## Two other paths")[0]
    return _STOP.split(text)[1:]


def defined(body: list[ast.stmt], prefix: str = "") -> set[str]:
    """Return the names that a module's or a class's body defines, methods as `Class.method`."""
    names: set[str] = set()
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(prefix + node.name)
        if isinstance(node, ast.ClassDef):
            names |= defined(node.body, f"{node.name}.")
        if isinstance(node, ast.Assign):
            names |= {prefix + target.id for target in node.targets if isinstance(target, ast.Name)}
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(prefix + node.target.id)
    return names


def test_it_is_short_and_each_stop_has_a_place() -> None:
    found = stops()
    assert 5 < len(found) <= MOST_STOPS
    assert all(_PLACE.search(stop) for stop in found)


def test_every_file_and_function_exists() -> None:
    missing = []
    for path, said in _PLACE.findall(PAGE.read_text("utf-8")):
        source = TOP / path
        names = defined(ast.parse(source.read_text("utf-8")).body) if source.exists() else set()
        wanted = re.findall(r"`([\w.]+)`", said)
        assert len(wanted) == said.count("`") / 2, f"{path}: {said}"
        missing += [f"{path}: {name}" for name in wanted if name not in names]
    assert not missing


def test_every_other_file_exists() -> None:
    named = re.findall(r"`((?:blockpty|shellrc)/[\w/.]*)`", PAGE.read_text("utf-8"))
    assert [name for name in named if not (TOP / name).exists()] == []


def test_a_name_that_does_not_exist_is_noticed() -> None:
    names = defined(ast.parse("class A:\n    def b(self): ...\nC: int = 1\nD = 2").body)
    assert names == {"A", "A.b", "C", "D"}
