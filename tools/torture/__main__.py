"""Kill and damage blockpty, count what is lost.

    python tools/torture                 everything, as often as fits in a few minutes
    python tools/torture engine --tries 1000
    python tools/torture files --kib 64  cut at every byte of the last 64 KiB
    python tools/torture --short         what the tests run
    python tools/torture --write         and put the numbers into docs/durability.md
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools.torture import engines, files, hosts, many, power, report, sizes, spawns, starts, storage
from tools.torture.report import Row

Run = Callable[[argparse.Namespace], Iterator[Row]]


def _tries(given: argparse.Namespace, usual: int, short: int) -> int:
    return given.tries or (short if given.short else usual)


RUNS: dict[str, Run] = {
    "engine": lambda given: engines.kill_engines(_tries(given, 200, 6)),
    "recorder": lambda given: hosts.kill_recorders(_tries(given, 500, 8)),
    "takeover": lambda given: hosts.time_takeovers(_tries(given, 100, 4)),
    "keeper": lambda given: hosts.kill_keepers(_tries(given, 200, 3)),
    "all": lambda given: hosts.kill_all(_tries(given, 50, 2)),
    "power": lambda given: power.lose_power(_tries(given, 2000, 30)),
    "calls": lambda given: power.fail_calls(1 if not given.short else 9),
    "spawns": lambda given: spawns.fail_spawns(),
    "recovery": lambda given: starts.kill_recoveries(_tries(given, 203, 12)),
    "many": lambda given: starts.start_many(1000 if not given.short else 40),
    "files": lambda given: files.damage(
        128 if given.short else given.kib * 1024, _tries(given, 1000, 140), 1 if given.short else os.cpu_count() or 1
    ),
    "disk": lambda given: storage.fill_and_free(_tries(given, 20, 2)),
    "memory": lambda given: sizes.one_block(_tries(given, 1024, 8)),
    "idle": lambda given: many.idle(_tries(given, 2000, 20), *((2, 1.0, 2.0) if given.short else ())),
    "short": lambda given: many.short(_tries(given, 10_000, 10)),
    "forks": lambda given: many.forks(_tries(given, 10, 1)),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", metavar="what", help=f"{', '.join(RUNS)}; all of them when none is named")
    parser.add_argument("--short", action="store_true", help="a few seconds in all")
    parser.add_argument("--tries", type=int, help="how many kills (of each load), bit flips, conversations, MiB")
    parser.add_argument("--kib", type=int, default=4, help="how much of the end of each file is cut; 4")
    parser.add_argument("--write", action="store_true", help="write the numbers to docs/durability.md")
    given = parser.parse_args()
    unknown = {*given.what} - {*RUNS}
    if unknown:
        parser.error(f"no such thing: {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory(prefix="torture") as user:
        # No startup file of the caller: some fork more than all that is measured here.
        os.environ["HOME"] = user
        return 1 if _run(given) else 0


def _run(given: argparse.Namespace) -> int:
    """Run what was asked for; return how much went wrong."""
    wrong = 0
    for name in given.what or RUNS:
        rows = []
        for row in RUNS[name](given):
            row.wrong += [] if given.short else row.late
            print(row.line(), flush=True)
            for message in row.wrong[:5]:
                print(f"    {message}", flush=True)
            rows.append(row)
            wrong += len(row.wrong)
        if given.write:
            report.write(name, rows)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
