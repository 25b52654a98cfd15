"""How it shows at a silence that our shell has no hooks any more.

Rules of this file: where nothing is certain, nothing is lost. A shell that reads a command and a builtin that reads
keys look alike from outside; they differ in how deep in its stack the shell waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from blockpty.engine.records import number
from blockpty.engine.snapshot import MachineState
from blockpty.engine.states import ShellState


def hooks_gone(state: MachineState, fields: Mapping[str, Any]) -> str | None:
    """Return how the hooks were lost, given a silence entry's fields, or None; keep where the shell's prompt waits."""
    if fields.get("foreground") != "shell" or not state.hooked or state.hooks_lost:
        return None
    if fields.get("replaced"):
        return "the shell was replaced by another program (exec)"
    depth = number(fields, "depth", -1)
    if state.outer or depth < 0:
        return None
    if state.shell is ShellState.IDLE and state.region == "idle":
        state.prompt_depth = depth
    if state.shell is ShellState.RUNNING and depth == state.prompt_depth:
        return "the shell reads a command, and its hooks are gone"
    return None
