"""The extras: what works without them, and what is said where one is missing.

Each case runs in a Python of its own that does not find the modules of some extras.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pexpect
import pytest

from blockpty.surfaces.extras import EXTRAS
from tests.support.extras import ALL, SEARCH, WITHOUT, python

TOP = Path(__file__).resolve().parents[2]
def command_line(home: Path, *arguments: str, blocked: tuple[str, ...] = ALL) -> subprocess.CompletedProcess[str]:
    program = "from blockpty.surfaces.cli.main import main\nsys.exit(main())"
    return python(program, home, *arguments, "--json", blocked=blocked)


def error_of(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 2, done.stdout + done.stderr
    error: dict[str, Any] = json.loads(done.stdout)["error"]
    return error


def extras() -> dict[str, list[str]]:
    found: dict[str, list[str]] = tomllib.loads((TOP / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    return found


def modules(name: str) -> set[str]:
    """The modules of an extra and of those that it asks for, by the names of their distributions."""
    named = set()
    for line in extras()[name]:
        if own := re.fullmatch(r"blockpty\[(.*)\]", line):
            named |= set().union(*map(modules, own.group(1).split(",")))
        else:
            named.add(re.match(r"[\w-]+", line).group().replace("-", "_"))  # type: ignore[union-attr]
    return named


def test_the_names_are_those_of_the_package() -> None:
    assert {name: modules(name) for name in EXTRAS} == {name: set(found) for name, found in EXTRAS.items()}
    assert modules("search") == set(SEARCH)
    assert modules("all") == set().union(*(modules(name) for name in extras() if name not in ("test", "typed", "dev")))


@pytest.mark.needs("bash")
def test_an_engine_runs_commands_and_searches_without_any(home: Path) -> None:
    done = python(
        """
import asyncio
import blockpty

async def main():
    async with blockpty.Engine() as engine:
        conversation = await engine.open("c1", shell="bash")
        result = await conversation.run("printf 'nee\\\\033[31mdle\\\\033[0m in the hay\\\\n'; false")
        print(result.output.strip(), result.exit_status)
        for query in ("needle", "hay"):
            found = await engine.search(query, timeout_ms=60_000)
            print(len([one for one in found.hits if one.part == "output"]), found.partial)
        print((await engine.overview()).total_blocks, (await conversation.screen()).cols)
        await conversation.close()

asyncio.run(main())
""",
        home,
    )
    assert done.stdout.splitlines() == ["needle in the hay 1", "1 False", "1 False", "1 80"], done.stdout + done.stderr


def test_the_command_line_says_what_a_command_needs(home: Path) -> None:
    for arguments in (("list",), ("serve",), ("serve", "--background")):
        error = error_of(command_line(home, *arguments))
        assert error["hint"] == "pip install 'blockpty[server]'"
        assert "uvicorn" in error["message"] and error["details"]["extra"] == "server"
    assert error_of(command_line(home, "mcp"))["hint"] == "pip install 'blockpty[mcp]'"
    without_sdk = error_of(command_line(home, "mcp", blocked=("mcp",)))
    assert without_sdk["message"] == "blockpty mcp needs mcp, which is not installed"
    assert not (home / "server" / "log").exists()


@pytest.mark.linux
def test_the_terminal_program_says_what_it_needs(home: Path) -> None:
    program = WITHOUT.format(blocked={"textual"}) + "from blockpty.surfaces.cli.main import main\nsys.exit(main())"
    for arguments in (["view"], ["watch", "c1"]):
        with pexpect.spawn(sys.executable, ["-c", program, "--home", str(home), *arguments], timeout=60) as terminal:
            shown = terminal.read().decode()
        assert terminal.exitstatus == 2 and "needs textual" in shown and "blockpty[view]" in shown


def test_what_needs_none_works(home: Path) -> None:
    done = command_line(home, "doctor")
    checks = {one["name"]: one for one in json.loads(done.stdout)["checks"]}
    assert (checks["libraries"]["status"], checks["extras"]["status"]) == ("ok", "warning")
    assert checks["extras"]["mend"] == "pip install 'blockpty[server,mcp,view,search]'"  # words: on the wire
    assert command_line(home, "--help").returncode == command_line(home, "--version").returncode == 0


@pytest.mark.parametrize(
    ("made", "asked", "needed"),
    [
        ("home", "list()", "uvicorn"),
        ("url='http://localhost:1', token='x'", "list()", "httpx2"),
        ("url='http://localhost:1', token='x'", "websocket('/v1')", "websockets"),
    ],
)
def test_a_client_says_what_it_needs(home: Path, made: str, asked: str, needed: str) -> None:
    program = f"""
import asyncio, json
import blockpty

async def main():
    home = {str(home)!r}
    async with blockpty.Client({made}) as client:
        try:
            await client.{asked}
        except blockpty.BadRequest as error:
            print(json.dumps(error.to_dict()["error"]))

asyncio.run(main())
"""
    done = python(program, home)
    assert done.returncode == 0, done.stderr
    error = json.loads(done.stdout)
    assert needed in error["details"]["missing"] and error["hint"] == "pip install 'blockpty[server]'"
