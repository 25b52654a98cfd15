"""The flows of the agent's benchmark through other kinds of tools: a terminal multiplexer, and a plain bash tool.

Both are driven by the same script, as tools for models drive them. Through tmux each step is a call that sends keys,
and then calls that look at the pane until two looks in a row, half a second apart, show the same. A plain bash tool
keeps one bash on pipes and takes one command a call; it has no terminal, and what waits for input there gets none.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

# Between two looks at the pane, and how many there are at most for one step.
LOOK_SECONDS: Final = 0.5
MOST_LOOKS: Final = 60
# A command that has not ended by then has the bash tool give up.
GIVE_UP_SECONDS: Final = 10.0


class Step(NamedTuple):
    """What is typed; `keys` are names of tmux, behind the text. `repeat`: until the pane shows `until`."""

    text: str
    keys: Sequence[str] = ("Enter",)
    until: str | None = None


@dataclass
class Played:
    """What it took, and whether the work was done; None: it cannot be done with this tool."""

    right: bool | None
    calls: int = 0
    received: int = 0
    seconds: float = 0.0

    @property
    def words(self) -> str:
        """The same in a few words."""
        if self.right is None:
            return "cannot"
        how = "right" if self.right else "WRONG"
        return f"{how}, {self.calls} calls, {self.received} bytes out, {self.seconds:.1f} s"


Check = Callable[[Path, str], bool]


def through_tmux(steps: Sequence[Step], check: Check, place: Path) -> Played:
    """Play a flow through a tmux server of its own."""
    socket = f"bench{secrets.token_hex(4)}"
    played = Played(False)

    def tmux(*arguments: str) -> str:
        command = ["tmux", "-L", socket, "-f", "/dev/null", *arguments]
        return subprocess.run(command, cwd=place, capture_output=True, text=True, check=True).stdout

    tmux("new-session", "-d", "-x", "80", "-y", "24", "bash --norc")
    begin = time.perf_counter()
    seen = []
    try:
        for step in steps:
            while True:
                played.calls += 1
                if step.text:
                    # A semicolon at the end of an argument would separate commands of tmux.
                    text = f"{step.text[:-1]}\\;" if step.text.endswith(";") else step.text
                    tmux("send-keys", "-l", "--", text)
                if step.keys:
                    tmux("send-keys", *step.keys)
                seen.append(_settled(lambda: tmux("capture-pane", "-p"), played))
                if step.until is None or step.until in seen[-1] or len(seen) > MOST_LOOKS:
                    break
        played.seconds = time.perf_counter() - begin
        played.right = check(place, "\n".join(seen))
    finally:
        tmux("kill-server")
    return played


def _settled(look: Callable[[], str], played: Played) -> str:
    """Look until nothing changes any more; each look is a call."""
    before = None
    for _ in range(MOST_LOOKS):
        time.sleep(LOOK_SECONDS)
        now = look()
        played.calls += 1
        played.received += len(now.encode())
        if now == before:
            break
        before = now
    return now


def through_pipes(steps: Sequence[Step], check: Check, place: Path) -> Played:
    """Play a flow through one bash without a terminal; a step that does not end, or needs keys, cannot be done."""
    played = Played(False)
    begin = time.perf_counter()
    with subprocess.Popen(
        ["bash", "--norc"], cwd=place, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        env={**os.environ, "TERM": "dumb"}, start_new_session=True,
    ) as bash:  # fmt: skip
        seen = ""
        try:
            for step in steps:
                if not step.text and step.keys != ("Enter",):
                    # Keys of a pager: without a terminal all of it has come.
                    continue
                if tuple(step.keys) != ("Enter",):
                    played.right = None
                    return played
                said = _command(bash, step.text)
                played.calls += 1
                if said is None:
                    played.right = None
                    return played
                played.received += len(said.encode())
                seen += said
        finally:
            # With what it has started, which would hold the pipe open.
            os.killpg(bash.pid, signal.SIGKILL)
            with contextlib.suppress(BrokenPipeError):
                bash.communicate()
        played.seconds = time.perf_counter() - begin
        played.right = check(place, seen)
    # What looks done and is not: the answers went to bash as commands.
    return played if played.right else Played(None)


def _command(bash: subprocess.Popen[bytes], command: str) -> str | None:
    """Run a command with nothing to read, and return what it printed; None when it does not end."""
    assert bash.stdin is not None and bash.stdout is not None
    end = f"end-{secrets.token_hex(8)}"
    try:
        bash.stdin.write(f"{{ {command}\n}} </dev/null; echo {end}\n".encode())
        bash.stdin.flush()
    except BrokenPipeError:
        return None
    received = b""
    limit = time.monotonic() + GIVE_UP_SECONDS
    while end.encode() not in received:
        ready, _, _ = select.select([bash.stdout], [], [], max(0.0, limit - time.monotonic()))
        piece = os.read(bash.stdout.fileno(), 65536) if ready else b""
        if not piece:
            return None
        received += piece
    return received.partition(end.encode())[0].decode("utf-8", "replace")
