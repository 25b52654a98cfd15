"""`import blockpty`: what a fresh interpreter spends on it, beside one that imports asyncio."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bench.report import Row, Run, median

TOP = Path(__file__).resolve().parents[2]
NOTE = (
    "import: time inside a fresh interpreter, byte code compiled before, statements interleaved; `import blockpty`"
    " looks its names up at first use, so the library itself is in the second row"
)
ASYNCIO = "import asyncio"
STATEMENTS = {
    "import blockpty": "import blockpty",
    "import blockpty, Engine loaded": "from blockpty import Engine",
    ASYNCIO: ASYNCIO,
}
AIMS_MS = {"import blockpty": 60, "import blockpty, Engine loaded": 150}


def measure(run: Run) -> list[Row]:
    """Import in fresh processes, in turn."""
    samples: dict[str, list[float]] = {name: [] for name in STATEMENTS}
    for number in range(run.pairs(15) + 1):
        for name, statement in STATEMENTS.items():
            taken = _import(statement)
            if number:
                samples[name].append(taken)
    beside = median(samples[ASYNCIO])
    return [
        Row(
            "import", name, median(samples[name]), "ms", ASYNCIO, beside, median(samples[name]) / beside,
            "value / beside", f"< {aim} ms", median(samples[name]) < aim, min(samples[name]), max(samples[name]), NOTE,
        )
        for name, aim in AIMS_MS.items()
    ]  # fmt: skip


def _import(statement: str) -> float:
    code = f"import time; t = time.perf_counter(); {statement}; print((time.perf_counter() - t) * 1000)"
    environment = {**os.environ, "PYTHONPATH": str(TOP)}
    output = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, cwd="/"
    )
    return float(output.stdout)
