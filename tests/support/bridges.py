"""How a test starts a bridge: as a source does, with settings of its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from blockpty.host.shells import ShellPlan
from blockpty.host.sources import plan_bridge


def bridge_started(directory: Path, module: str, settings: Mapping[str, Any]) -> list[str]:
    """Write the settings below a directory, and return the arguments that start the bridge."""
    plan = plan_bridge(ShellPlan("bridge", (), {}, (), ()), module, settings, str(directory), 1)
    for name, content in plan.files:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(content)
    return [*plan.argv]
