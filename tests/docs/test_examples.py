"""The programs in docs/examples: they run, print what they say, and are short."""

from __future__ import annotations

import ast
import asyncio
import doctest
import io
import os
import subprocess
import sys
import tokenize
from pathlib import Path
from typing import Any

import pytest

from tests.support.markdown import TOP, links

EXAMPLES = sorted((TOP / "docs" / "examples").glob("*.py"))
PAGE = TOP / "docs" / "how-to" / "programs.md"
# Lines of code, without blank ones, comments and the text at the top.
LONGEST = 15
pytestmark = pytest.mark.needs("bash")


def named(path: Path) -> str:
    return path.stem


def code_lines(source: str) -> int:
    """Count the lines with code on them."""
    tree = compile(source, "example", "exec", flags=ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    text = tree.body[0].end_lineno
    quiet = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENCODING, tokenize.ENDMARKER}
    found = {
        line
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type not in quiet | {tokenize.INDENT, tokenize.DEDENT}
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len({line for line in found if line > text})


@pytest.mark.parametrize("path", EXAMPLES, ids=named)
def test_they_are_short(path: Path) -> None:
    assert 0 < code_lines(path.read_text("utf-8")) < LONGEST


@pytest.mark.parametrize("path", EXAMPLES, ids=named)
def test_the_page_names_them(path: Path) -> None:
    assert f"../examples/{path.name}" in links(PAGE)


@pytest.mark.parametrize("path", [path for path in EXAMPLES if "# Prints:\n" in path.read_text("utf-8")], ids=named)
def test_programs_print_what_they_say(path: Path, home: Path, tmp_path: Path) -> None:
    _, _, said = path.read_text("utf-8").partition("# Prints:\n")
    expected = "".join(line.removeprefix("# ") for line in said.splitlines(keepends=True))
    found = subprocess.run(
        [sys.executable, "-W", "error", str(path)], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(TOP)},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert found.returncode == 0, found.stdout
    assert doctest.OutputChecker().check_output(expected, found.stdout, doctest.ELLIPSIS), found.stdout


@pytest.mark.parametrize("path", [path for path in EXAMPLES if path.name.startswith("test_")], ids=named)
def test_tests_pass(path: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "blockpty.testing.plugin"]
    command += ["-p", "no:cacheprovider"]
    command += ["-c", os.devnull, "--rootdir", str(path.parent), "--basetemp", str(tmp_path / "b"), str(path)]
    environment = {**os.environ, "PYTHONPATH": str(TOP), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    found = subprocess.run(
        command, cwd=path.parent, env=environment, capture_output=True, text=True, check=False, timeout=100
    )
    assert found.returncode == 0, found.stdout + found.stderr


def test_the_notebook_shows_what_its_cells_give(home: Path) -> None:
    cells = (TOP / "docs" / "examples" / "notebook.py").read_text("utf-8").split("# %%\n")[1:]
    namespace: dict[str, Any] = {}

    async def run(cell: str) -> Any:
        """Run a cell as a notebook does, and return the value of its last expression."""
        tree = ast.parse(cell)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        for part, mode in ((tree, "exec"), (ast.Expression(last.value) if last else None, "eval")):
            if part is not None:
                value = eval(compile(part, "cell", mode, flags=flags), namespace)
                value = await value if asyncio.iscoroutine(value) else value
        return value

    async def shown() -> list[str]:
        values = [await run(cell) for cell in cells]
        return [value._repr_html_() for value in values if hasattr(value, "_repr_html_")]

    ran, screen, block = asyncio.run(asyncio.wait_for(shown(), 60))
    assert "1\n2\n3\n" in ran and "exit status 0" in ran
    assert screen.startswith("<iframe sandbox srcdoc=") and "b1 ended" in block


def test_there_are_those_that_are_written_first() -> None:
    assert {
        "agent_loop", "test_cli", "repl", "build", "parallel", "script", "notebook", "timeouts", "files", "test_screen",
    } <= {path.stem for path in EXAMPLES}  # fmt: skip
