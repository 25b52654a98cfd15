"""tools/bench runs and prints a row for everything it promises. How fast anything is, no test asks."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.profile import LONG

TOP = Path(__file__).resolve().parents[1]

# What must be measured, by the beginning of the row's text.
EXPECTED = {
    "import": ["import blockpty", "import blockpty, Engine loaded"],
    "prompt": ["bash ", "zsh ", "fish"],
    "exec": [
        'exec_block("true") to its PROMPT', 'run("true")', "bash with our hooks, two bare processes", "bash --norc",
        "replwrap",
    ],
    "wait": [
        "substring", "regex on a whole line", "regex on an unterminated line", "two bare processes",
        "add_reader on the master",
    ],
    "surfaces": [
        'run("true") in process', 'run("true") over the unix socket', 'run("true") over HTTP keep-alive',
        'run("true") over MCP stdio', "HTTP keep-alive adds", "20 waits at once", "5 subscribers, growth",
        "5 subscribers, delivered", "blockpty status", "python -c 'import blockpty'",
    ],
    "memory": ["a conversation, one command run", "a conversation, 3 commands run"],
    "ingest": ["seq 1 ", "cat of a coloured log"],
    "search": [
        "indexing ", "size of the index", "newest 100, substring, warm", "newest 100, substring, cold",
        "newest 100, two words", "ripgrep", "DuckDB", "overview of 100 conversations", "live lag",
    ],
    "leaving": [
        f"{what}, {kind} log"
        for what in ("redaction", "import", "replay", "export cast", "export jsonl", "export text", "export html")
        for kind in ("plain", "coloured")
    ],
    "catalogue": [
        "indexing ", "SELECT 1", "newest 100, substring, of this host", "newest 100, substring, of another",
        "overview of 100 conversations",
    ],
    "feed": ["plain log", "coloured log", "blocks of one line each", "memory over"],
    "screen": [
        *("catch-up, numbered", "catch-up, a plain log", "catch-up, a coloured log", "every byte drawn, a plain log"),
        *("catch-up beside tmux", "full screen, vim", "snapshot", "1 GB through a", "memory of a screen"),
    ],
    "ssh": ['run("true"), ssh', 'run("true"), ssh, resume', "output, ssh", "output, ssh, resume", "output, ssh -tt"],
    "viewer": [
        "script before the first paint", "3 viewers of 10 lines/s", "flood at", "other calls meanwhile",
        "blockpty view, start",
    ],
    "fairness": [f"{what} beside {beside}, p99" for what in ("echo", "turn of the loop")
                 for beside in ("read text", "export html", "run", "search", "verify", "wait", "replay", "diff")],
    "agent": [
        "npm init wizard", "git log of 60 commits", "vim edit", "git rebase -i in vim", "sqlite3, 5 statements",
        "progress bar of 101 steps", "list of the core tools",
    ],
    "policy": ["decision, new text", "decision, new text, p99", "decision, text of before", "loading"],
}  # fmt: skip


# Left to the long run, but for their loading: what they measure is tested where it is.
LONGEST = ("viewer", "agent", "feed", "surfaces", "fairness")


@pytest.mark.slow
@pytest.mark.parametrize("bench", [one for one in EXPECTED if LONG or one not in LONGEST])
def test_a_benchmark_runs_and_prints_every_row(tmp_path: Path, bench: str) -> None:
    file = tmp_path / "rows.json"
    command = [sys.executable, str(TOP / "tools" / "bench"), bench, "--quick", "--json", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=110, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Exception" not in done.stderr
    record = json.loads(file.read_text("utf-8"))
    assert record["quick"] and record["machine"]["before"] in done.stdout
    rows = record["rows"]
    assert {row["bench"] for row in rows} == {bench}
    skipped = any((row["note"] or "").startswith("skipped") for row in rows)
    for text in () if skipped else EXPECTED[bench]:
        assert any(row["what"].startswith(text) for row in rows), (text, [row["what"] for row in rows])
    for row in rows:
        assert row["what"] in done.stdout
        assert row["value"] is not None or row["note"].startswith("skipped"), row
        assert row["met"] is None, "a quick run checks no target"
        if row["against"] is not None:
            assert row["ratio"] is not None, row


def test_every_benchmark_is_tested() -> None:
    named = re.findall(r'"(\w+)": "bench\.', (TOP / "tools" / "bench" / "__main__.py").read_text("utf-8"))
    assert named and set(named) == EXPECTED.keys()


@pytest.mark.parametrize("bench", LONGEST)
def test_a_benchmark_can_be_loaded(bench: str) -> None:
    code = f"import sys; sys.path.insert(0, {str(TOP / 'tools')!r}); import bench.{bench} as one; print(one.measure)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def test_a_benchmark_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    command = [sys.executable, str(TOP / "tools" / "bench"), "warp"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, cwd=tmp_path)
    assert done.returncode == 2
    assert "invalid choice" in done.stderr
