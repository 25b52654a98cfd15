"""A decision of the default policy over ordinary commands, beside `shlex.split` of the same texts."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from pathlib import Path

from bench.report import Row, Run, median
from blockpty.control import shell_commands
from blockpty.control.policy import Policy, Question, Right, default_policy

TOP = Path(__file__).resolve().parents[2]
DATA = TOP / "tests" / "control" / "data"
AIM_US = 100.0
AIM_P99_US = 1000.0
BARE = "shlex.split"
NOTE = (
    "policy: processor time of one decision for each ordinary text of tests/control/data; the median over rounds of p50"
    " and of p99"
)
NOTE_AGAIN = "policy, text of before: the commands of the last 512 short texts are kept, the rules are asked again"
NOTE_LOADING = "policy, loading: what an engine with a policy imports and reads at its first question, in a new process"


def measure(run: Run) -> list[Row]:
    """Decide on every text in turn, each round with nothing kept."""
    texts = (DATA / "ordinary_commands.txt").read_text("utf-8").splitlines()
    texts += (DATA / "ordinary_scripts.txt").read_text("utf-8").removesuffix("\n").split("\n%%\n")
    policy = default_policy()
    samples: dict[str, list[float]] = {}
    for number in range(run.pairs(7) + 1):
        fresh, again, bare = _round(policy, texts)
        if number:  # the first round warms up
            for name, value in (
                ("p50", _rank(fresh, 0.5)), ("p99", _rank(fresh, 0.99)), ("again", _rank(again, 0.5)),
                ("bare", _rank(bare, 0.5)), ("bare99", _rank(bare, 0.99)),
            ):  # fmt: skip
                samples.setdefault(name, []).append(value)
    loading = [_loading() for _ in range(run.pairs(7))]
    return [
        _row("decision, new text", samples["p50"], samples["bare"], AIM_US, NOTE),
        _row("decision, new text, p99", samples["p99"], samples["bare99"], AIM_P99_US, NOTE),
        _row("decision, text of before", samples["again"], samples["bare"], None, NOTE_AGAIN),
        Row(
            "policy", "loading", median(loading), "ms", None, None, None, None, None, None, min(loading), max(loading),
            NOTE_LOADING,
        ),
    ]  # fmt: skip


def _round(policy: Policy, texts: list[str]) -> tuple[list[float], list[float], list[float]]:
    shell_commands.forget()
    fresh: list[float] = []
    again: list[float] = []
    bare: list[float] = []
    for text in texts:
        question = Question(Right.EXEC, text=text, cwd="/home/me/proj", home="/home/me", shell="bash")
        for times in (fresh, again):
            begin = time.thread_time()
            policy.decide(question)
            times.append((time.thread_time() - begin) * 1e6)
        begin = time.thread_time()
        try:
            shlex.split(text)
        except ValueError:
            pass  # a quote in a here-document
        bare.append((time.thread_time() - begin) * 1e6)
    return fresh, again, bare


def _rank(times: list[float], share: float) -> float:
    return sorted(times)[int(len(times) * share)]


def _row(text: str, values: list[float], bare: list[float], aim: float | None, note: str) -> Row:
    value, beside = median(values), median(bare)
    return Row(
        "policy", text, value, "us", BARE, beside, value / beside, "value / beside",
        f"< {aim:.0f} us" if aim else None, value < aim if aim else None, min(values), max(values), note,
    )  # fmt: skip


def _loading() -> float:
    code = (
        "import blockpty.errors, time; t = time.perf_counter();"
        " from blockpty.control.policy import default_policy; default_policy();"
        " print((time.perf_counter() - t) * 1000)"
    )
    found = subprocess.run([sys.executable, "-c", code], cwd=TOP, capture_output=True, text=True, check=True)
    return float(found.stdout)
