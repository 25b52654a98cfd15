"""asciinema's player for web pages takes our exports: its own parser gives the terminal's text, times, sizes and marks.

The player comes from npm; without node, npm or a way to its registry the tests are skipped, and say so.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
import threading
from pathlib import Path
from typing import Any

import pytest

from blockpty.runtime.export.writer import write
from tests.support.exports import saved
from tests.support.timed_sessions import timed_session

PLAYER = "asciinema-player@3.17.0"
# Its parsers are not exported; they stand under these names in the one file that has them.
PROGRAM = """
import {readFileSync, writeFileSync, readdirSync} from 'node:fs';
const [dist, cast, log, timing] = process.argv.slice(2);
const core = readdirSync(dist).find(name => name.startsWith('core-'));
const text = readFileSync(`${dist}/${core}`, 'utf8') + '\\nexport {parse$2 as __cast, parse$1 as __typescript};\\n';
writeFileSync(`${dist}/opened.js`, text);
const {__cast, __typescript} = await import(`${dist}/opened.js`);
const answer = path => new Response(readFileSync(path));
const parsed = log === undefined ? await __cast(answer(cast))
  : await __typescript([answer(timing), answer(log)], {encoding: 'utf-8'});
console.log(JSON.stringify({cols: parsed.cols, rows: parsed.rows, events: Array.from(parsed.events)}));
"""


@pytest.fixture(scope="module")
def player(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the directory of the player's modules."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    top = tmp_path_factory.mktemp("player")
    command = ["npm", "pack", PLAYER, "--silent", "--fetch-retries=0", "--fetch-timeout=20000"]
    environment = {**os.environ, "npm_config_cache": str(top / "cache")}
    try:
        subprocess.run(command, cwd=top, env=environment, capture_output=True, check=True, timeout=60)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        pytest.skip(f"npm cannot get {PLAYER}")
    (package,) = top.glob("*.tgz")
    with tarfile.open(package) as archive:
        # Python before 3.11.4 has no filters.
        if hasattr(tarfile, "data_filter"):
            archive.extraction_filter = tarfile.data_filter
        archive.extractall(top)
    (top / "open.mjs").write_text(PROGRAM)
    return top / "package" / "dist"


def parsed(player: Path, *files: Path | str) -> dict[str, Any]:
    command = ["node", str(player.parents[1] / "open.mjs"), str(player), *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def shown(found: dict[str, Any]) -> str:
    return "".join(event[2] for event in found["events"] if event[1] == "o")


@pytest.mark.parametrize("style", ["cast", "cast3"])
def test_the_players_parser_takes_both_versions(player: Path, tmp_path: Path, style: str) -> None:
    path = tmp_path / "a.cast"
    write(saved(timed_session(), tmp_path), style, path, threading.Event())
    found = parsed(player, path)
    assert (found["cols"], found["rows"]) == (80, 24)
    marks = [(round(at), label) for at, code, label in found["events"] if code == "m"]
    assert marks == [(1500, "echo one"), (3500, "slow"), (63500, "echo four")]
    assert [(round(at), size) for at, code, size in found["events"] if code == "r"] == [(63500, "100x30")]
    assert "two\r\n\x1b[31mthree\u20ac\x1b[0m\r\n" in shown(found)
    exits = [status for _, code, status in found["events"] if code == "x"]
    assert exits == (["3"] if style == "cast3" else [])


def test_the_players_parser_takes_a_typescript(player: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.typescript"
    write(saved(timed_session(), tmp_path), "typescript", path, threading.Event())
    found = parsed(player, "", path, f"{path}.timing")
    assert (found["cols"], found["rows"]) == (80, 24)
    assert "two\r\n" in shown(found) and [size for _, code, size in found["events"] if code == "r"] == ["100x30"]
    assert round(found["events"][-1][0]) == pytest.approx(63525, abs=30)
