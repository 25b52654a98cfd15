#!/usr/bin/env python3
"""Measure speed and memory, each beside something that does only the bare part, in the same run.

Prints a table; `--json` writes the same as JSON. Numbers of a busy machine are wrong on both sides, so look at the
ratios first. The exit status does not depend on how fast anything was.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
# Instead of this directory: a module here must not be found by a plain `import wait` of another package.
sys.path[0:1] = [str(TOP), str(TOP / "tools")]

from bench.report import Row, Run, machine_line, table, write_json  # noqa: E402
from tests.support.processes import end_left_processes  # noqa: E402

# In the order in which `all` runs them: what is small and waits for others comes before what fills the memory.
BENCHES = {
    "import": "bench.imports",
    "prompt": "bench.prompt",
    "exec": "bench.exec",
    "wait": "bench.wait",
    "memory": "bench.memory",
    "ingest": "bench.ingest",
    "surfaces": "bench.surfaces",
    "search": "bench.search",
    "leaving": "bench.leaving",
    "fairness": "bench.fairness",
    "catalogue": "bench.catalogue",
    "feed": "bench.feed",
    "screen": "bench.screen",
    "policy": "bench.policy",
    "agent": "bench.agent",
    "ssh": "bench.ssh",
    "viewer": "bench.viewer",
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__.split("\n\n")[0] if __doc__ else None)
    parser.add_argument("bench", choices=[*BENCHES, "all"], nargs="+")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows as JSON as well")
    parser.add_argument("--quick", action="store_true", help="a few seconds in all; shows that it runs, nothing else")
    parser.add_argument("--rounds", type=int, metavar="N", help="rounds of each comparison instead of the default")
    parser.add_argument("--megabytes", type=int, metavar="N", help="size of what search looks at")
    parser.add_argument("--kept", type=Path, metavar="DIR", help="where the corpus of search is kept for the next time")
    arguments = parser.parse_args()
    chosen = [name for name in BENCHES if name in arguments.bench or "all" in arguments.bench]
    before = machine_line()
    print(before)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="bench") as directory:
        user = Path(directory, "user")
        user.mkdir()
        # No rc file of the caller on either side.
        os.environ["HOME"] = str(user)
        # A program that is started again is compiled already, whatever the caller's environment says.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ.setdefault("PYTHONPYCACHEPREFIX", str(user / "compiled"))
        for name in chosen:
            place = Path(directory, name)
            place.mkdir()
            print(f"running {name} ...", file=sys.stderr)
            asked = Run(place, arguments.quick, arguments.rounds, arguments.megabytes, arguments.kept)
            rows += importlib.import_module(BENCHES[name]).measure(asked)
        # A host writes in its home until it has left.
        end_left_processes(Path(directory), "bench")
    if arguments.quick:
        # So little is measured then that no verdict would mean anything.
        rows = [replace(row, met=None) for row in rows]
    print(table(rows))
    after = machine_line()
    print(f"\nat the end: {after}")
    if arguments.json is not None:
        write_json(arguments.json, rows, [before, after], quick=arguments.quick)
    return 0


if __name__ == "__main__":
    sys.exit(main())
