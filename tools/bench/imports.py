"""`import blockpty`: what a fresh interpreter spends on it, beside one that imports asyncio."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bench.report import Row, Run, median

TOP = Path(__file__).resolve().parents[2]
AIM_MS = 60.0
NOTE = (
    "import: time inside a fresh interpreter, byte code compiled before, statements interleaved; `import blockpty`"
    " looks its names up at first use, so the library itself is in the second row"
)
STATEMENTS = {
    "import blockpty": "import blockpty",
    "import blockpty, Engine loaded": "from blockpty import Engine",
    "import asyncio": "import asyncio",
}


def measure(run: Run) -> list[Row]:
    """Import in fresh processes, in turn."""
    samples: dict[str, list[float]] = {name: [] for name in STATEMENTS}
    for number in range(run.pairs(15) + 1):
        for name, statement in STATEMENTS.items():
            taken = _import(statement)
            if number:
                samples[name].append(taken)
    asyncio_ms = median(samples["import asyncio"])
    return [
        Row(
            "import", name, median(times), "ms", "import asyncio", asyncio_ms, median(times) / asyncio_ms,
            "value / beside", f"< {AIM_MS:.0f} ms", median(times) < AIM_MS, min(times), max(times), NOTE,
        )
        for name, times in samples.items() if name != "import asyncio"
    ]  # fmt: skip


def _import(statement: str) -> float:
    code = f"import time; t = time.perf_counter(); {statement}; print((time.perf_counter() - t) * 1000)"
    environment = {**os.environ, "PYTHONPATH": str(TOP)}
    output = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, cwd="/"
    )
    return float(output.stdout)
