"""The documentation is true: its examples run, its reference is that of the code, its links lead somewhere."""

from __future__ import annotations

import ast
import asyncio
import code
import contextlib
import doctest
import inspect
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import click
import pytest

import blockpty
from blockpty.model.events import EVENT_TYPES
from blockpty.ops.schema import error_codes
from blockpty.ops.table import OPERATIONS
from blockpty.surfaces.cli.commands import program
from tests.support.markdown import TOP, Code, anchors, code_blocks, links, named, pages, prose
from tests.support.profile import LONG

REFERENCE = TOP / "docs" / "reference"
README_LINES = 120
LONGEST_LINE = 120

# What a newcomer goes through is held against both shells, the other pages against one, unless much is to be played.
_FIRST = ("README.md", "docs/tutorial.md")


def commands() -> list[str]:
    group = program()
    return group.list_commands(click.Context(group))


# The examples


def with_code(language: str) -> list[Any]:
    found = [path for path in pages() if any(block.language == language for block in code_blocks(path))]
    return [
        pytest.param(path, shell, id=f"{named(path)}-{shell}", marks=pytest.mark.needs(shell))
        for path in found
        for shell in (("bash", "zsh") if LONG or named(path) in _FIRST else ("bash",))
    ]


def check_output(path: Path, block: Code, printed: str) -> None:
    if block.output is None:
        return
    options = doctest.ELLIPSIS
    if not doctest.OutputChecker().check_output(block.output, printed, options):
        pytest.fail(f"{named(path)}:{block.line} says\n{block.output}\nand prints\n{printed}", pytrace=False)


@pytest.fixture
def place(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give an empty working directory, and a command `blockpty` on PATH that runs this checkout."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "blockpty").write_text(f"#!/bin/sh\nexec '{sys.executable}' -m blockpty \"$@\"\n")
    (programs / "blockpty").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(TOP))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    yield work
    asyncio.run(close_all())


async def close_all() -> None:
    """End the shells that an example left, so that one that failed is not reported twice."""
    async with blockpty.Engine() as engine:
        for one in (await engine.list()).conversations:
            if one.live:
                await (await engine.conversation(one.conversation_id)).close()


def run_program(block: Code) -> str:
    found = subprocess.run(
        [sys.executable, "-W", "error", "-c", block.text], capture_output=True, text=True, check=False, timeout=60
    )
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


class Prompt(code.InteractiveConsole):
    """The prompt of `python -m asyncio`, which is typed to line by line; it shows no values, as the pages say."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        super().__init__(namespace)
        self.compile.compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        self._read: list[CodeType] = []
        self._problem = ""

    def runcode(self, code: CodeType) -> None:
        self._read.append(code)

    def write(self, data: str) -> None:
        self._problem += data

    async def type(self, path: Path, block: Code) -> None:
        """Type the lines of a block, and run each statement when the prompt takes it; fails as the prompt does."""
        for number, line in enumerate([*block.text.splitlines(), ""], block.line):
            more = self.push(line)
            if self._problem:
                pytest.fail(f"{named(path)}:{number}: at a prompt this is a mistake:\n{self._problem}", pytrace=False)
            while self._read:
                result = eval(self._read.pop(0), self.locals)
                if inspect.iscoroutine(result):
                    await result
        if more:
            pytest.fail(f"{named(path)}:{block.line}: the prompt waits for more", pytrace=False)


async def run_fragment(path: Path, block: Code, prompt: Prompt, monkeypatch: pytest.MonkeyPatch) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), monkeypatch.context() as patch:
        patch.setattr(sys, "displayhook", lambda value: None)
        await prompt.type(path, block)
    return printed.getvalue()


async def run_python(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a page's Python in order: whole programs by themselves, the rest as if typed at `python -m asyncio`."""
    blocks = [block for block in code_blocks(path) if block.language == "python"]
    namespace: dict[str, Any] = {"__name__": "page", "asyncio": asyncio, "blockpty": blockpty}
    fragments = [block for block in blocks if "asyncio.run(" not in block.text]
    engine = blockpty.Engine()
    if fragments and "engine = blockpty.Engine()" not in fragments[0].text:
        # Pages say at their top that these two are there.
        namespace["engine"], namespace["conversation"] = engine, await engine.open()
    prompt = Prompt(namespace)
    try:
        for block in blocks:
            typed = block in fragments
            printed = await run_fragment(path, block, prompt, monkeypatch) if typed else run_program(block)
            check_output(path, block, printed)
    finally:
        await engine.close()
        closed = namespace.get("engine", engine).close()
        if inspect.isawaitable(closed):
            await closed


@pytest.mark.parametrize(("path", "shell"), with_code("python"))
def test_python_examples_run(path: Path, shell: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", str(shutil.which(shell)))
    asyncio.run(asyncio.wait_for(run_python(path, monkeypatch), 100))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("try:\n    pass\nexcept OSError:\n    pass\nprint(1)\n", "SyntaxError"),
        ("print((1,\n", "waits for more"),
    ],
)
def test_a_fragment_that_cannot_be_typed_is_noticed(
    text: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    typing = run_fragment(TOP / "README.md", Code("python", text, 1), Prompt({}), monkeypatch)
    with pytest.raises(pytest.fail.Exception, match=said):
        asyncio.run(typing)


_BETWEEN = "\x01"


def console(block: Code) -> Iterator[tuple[str, str]]:
    """Yield each command of a console block with what it is said to print."""
    command, said = "", ""
    for line in block.text.splitlines(keepends=True):
        if line.startswith("$ "):
            if command:
                yield command, said
            command, said = line[2:], ""
        elif line.startswith("> ") and not said:
            command += line[2:]
        else:
            said += line
    yield command, said


@pytest.mark.parametrize(("path", "shell"), with_code("console"))
def test_console_examples_run(path: Path, shell: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", str(shutil.which(shell)))
    blocks = [block for block in code_blocks(path) if block.language == "console"]
    if shutil.which("curl") is None and any(re.search(r"\bcurl ", block.text) for block in blocks):
        pytest.skip("not installed: curl")
    steps = [(block, command, said) for block in blocks for command, said in console(block)]
    separator = f"__status=$?; printf '{_BETWEEN}'; (exit $__status)\n"
    script = separator.join(command for _, command, _ in steps) + separator
    found = subprocess.run(
        ["bash", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=100
    )
    printed = found.stdout.split(_BETWEEN)
    assert len(printed) == len(steps) + 1, found.stdout
    for (block, command, said), output in zip(steps, printed, strict=False):
        if not doctest.OutputChecker().check_output(said, output, doctest.ELLIPSIS):
            pytest.fail(f"{named(path)}:{block.line}: $ {command}says\n{said}\nand prints\n{output}", pytrace=False)


def test_there_are_examples_to_run() -> None:
    run = {named(path) for path in pages() if any(block.language == "python" for block in code_blocks(path))}
    assert {"README.md", "docs/tutorial.md"} <= run
    assert any(block.language == "console" for block in code_blocks(TOP / "README.md"))


@pytest.mark.parametrize("said", ["wrong\n", "1\n2\n"])
def test_an_example_that_prints_something_else_is_noticed(said: str) -> None:
    with pytest.raises(pytest.fail.Exception):
        check_output(TOP / "README.md", Code("python", "print(1)", 1, said), "1\n")


# The reference


def test_the_reference_is_that_of_the_code() -> None:
    found = subprocess.run(
        [sys.executable, str(TOP / "tools" / "gen_reference"), "--check"],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_is_described(name: str) -> None:
    text = (REFERENCE / "operations.md").read_text("utf-8")
    _, _, section = text.partition(f"\n## {name}\n")
    section = section.partition("\n## ")[0]
    assert section
    for parameter in OPERATIONS[name].request.model_fields:
        assert f"\n* `{parameter}` (" in section


@pytest.mark.parametrize("name", sorted(EVENT_TYPES))
def test_every_event_is_described(name: str) -> None:
    assert f"\n## {name}\n" in (REFERENCE / "events.md").read_text("utf-8")


@pytest.mark.parametrize("code", sorted(error_codes()))
def test_every_error_is_described(code: str) -> None:
    assert f"\n* `{code}` (" in (REFERENCE / "errors.md").read_text("utf-8")


@pytest.mark.parametrize("name", commands())
def test_every_command_and_option_is_described(name: str) -> None:
    text = (REFERENCE / "cli.md").read_text("utf-8")
    _, _, section = text.partition(f"\n## {name}\n")
    section = section.partition("\n## ")[0]
    assert f"\nblockpty {name}" in section
    group = program()
    command = group.get_command(click.Context(group), name)
    assert command is not None
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert any(option in section or option in text.partition("\n## ")[0] for option in parameter.opts)


def test_every_reason_is_described() -> None:
    schema = json.loads((TOP / "spool_schema" / "event-v1.json").read_text("utf-8"))
    reasons = {
        reason for variant in schema["$defs"]["wait_end"]["oneOf"] for reason in variant["properties"]["reason"]["enum"]
    }
    assert len(reasons) > 5
    described = set(re.findall(r"^\* `(\w+)`:", (REFERENCE / "conditions.md").read_text("utf-8"), re.MULTILINE))
    assert reasons == described


# The pages


@pytest.mark.parametrize("path", [pytest.param(path, id=named(path)) for path in pages()])
def test_links_lead_somewhere(path: Path) -> None:
    wrong = []
    for link in links(path):
        if link.startswith(("https://", "http://")):
            continue
        target, _, anchor = link.partition("#")
        place = (path.parent / target).resolve() if target else path
        found = place.exists() and place.is_relative_to(TOP)
        if not found or (anchor and anchor not in anchors(place)):
            wrong.append(link)
    assert not wrong


def test_every_page_can_be_reached() -> None:
    seen: set[Path] = set()
    todo = [TOP / "README.md"]
    while todo:
        page = todo.pop()
        if page not in seen:
            seen.add(page)
            todo += [
                target
                for link in links(page)
                if (target := (page.parent / link.partition("#")[0]).resolve()).suffix == ".md" and target.exists()
            ]
    assert not [named(page) for page in pages() if page not in seen]


# Names of machines, of where packages come from and of a working copy have no place in what people read.
_FOREIGN = re.compile(
    r"/home/(?!you\b)\w|/Users/(?!you\b)\w|/root\b|/work/|/tmp/\w|venv/lib|py[p]i\.|python[h]osted|npm[j]s|artifactory|"
    r"index-url|deb\.debian\.org|ghcr\.|docker\.io",
    re.IGNORECASE,
)


@pytest.mark.parametrize("path", [pytest.param(path, id=named(path)) for path in pages()])
def test_no_page_names_a_machine_or_a_registry(path: Path) -> None:
    assert not _FOREIGN.findall(path.read_text("utf-8"))


@pytest.mark.parametrize("path", [pytest.param(path, id=named(path)) for path in pages()])
def test_pages_name_only_commands_that_exist(path: Path) -> None:
    shown = [block.text for block in code_blocks(path) if block.language in ("console", "sh")]
    shown += re.findall(r"`(blockpty [^`]+)`", prose(path))
    used = {word for text in shown for word in re.findall(r"(?:^|\$ |\(| )blockpty ([a-z][a-z-]*)", text, re.MULTILINE)}
    assert used <= set(commands())


@pytest.mark.parametrize("path", [pytest.param(path, id=named(path)) for path in pages()])
def test_lines_are_not_too_long(path: Path) -> None:
    lines = path.read_text("utf-8").splitlines()
    assert [number for number, line in enumerate(lines, 1) if len(line) > LONGEST_LINE] == []


def test_the_readme_is_short() -> None:
    assert len((TOP / "README.md").read_text("utf-8").splitlines()) <= README_LINES
