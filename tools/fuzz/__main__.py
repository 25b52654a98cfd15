"""Feed random input to what reads what it did not write, and say which one it did not bear.

    python tools/fuzz                          every target, a minute in all
    python tools/fuzz --seconds 3600           an hour
    python tools/fuzz --target screen          one of them
    python tools/fuzz --target screen --seed 7 --case 1234    that case again

Every case is drawn from (seed, target, number) alone. The seed is printed, and with a failure the line that repeats it.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tools.fuzz import files, operations, pure

TARGETS: dict[str, Callable[[random.Random], None]] = {
    "scanner": pure.scanner,
    "machine": pure.machine,
    "screen": pure.screen,
    "redaction": pure.redaction,
    "readers": files.readers,
    "recovery": files.recovery,
    "requests": operations.requests,
    "operations": operations.operations,
}


def case(target: str, seed: int, number: int) -> str | None:
    """Run one case; return what went wrong."""
    try:
        TARGETS[target](random.Random(f"{seed} {target} {number}"))
    except Exception:  # noqa: BLE001 - whatever it is, it is a find
        return traceback.format_exc()
    return None


def run(target: str, seed: int, seconds: float, cases: int | None) -> int:
    """Run cases of a target until the time is up, or so many of them; return how many went wrong."""
    begin = time.monotonic()
    number = wrong = 0
    while time.monotonic() - begin < seconds if cases is None else number < cases:
        problem = case(target, seed, number)
        if problem is not None:
            wrong += 1
            print(problem)
            print(f"again: python tools/fuzz --target {target} --seed {seed} --case {number}", flush=True)
            if wrong == 5:
                break
        number += 1
    took = time.monotonic() - begin
    print(f"{target}: {number:,} cases in {took:.1f} s, {wrong} wrong", flush=True)
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", action="append", choices=[*TARGETS], help="one of them; may be given again")
    parser.add_argument("--seconds", type=float, default=60.0, help="for all targets together; 60")
    parser.add_argument("--seed", type=int, default=None, help="of all that is drawn; another one each time")
    parser.add_argument("--case", type=int, default=None, help="only the case of this number")
    parser.add_argument("--cases", type=int, default=None, help="so many of each target, however long it takes")
    given = parser.parse_args()
    seed = given.seed if given.seed is not None else int.from_bytes(os.urandom(4))
    targets = given.target or [*TARGETS]
    print(f"seed {seed}", flush=True)
    if given.case is not None:
        problems = [problem for target in targets if (problem := case(target, seed, given.case)) is not None]
        print("".join(problems) or "nothing wrong")
        return 1 if problems else 0
    wrong = sum(run(target, seed, given.seconds / len(targets), given.cases) for target in targets)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
