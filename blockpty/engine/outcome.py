"""The end of a source that is no shell of this machine: what the exit of its program says of what lay behind it.

Rules of this file: pure, and total; a status that nothing says stays unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from blockpty.engine.machine_state import OpenBlock
from blockpty.engine.records import word

LOST_STATUS: Final = 255
"""The status with which ssh, and the program for tmux panes, say that the connection is gone."""
CONNECTION_LOST: Final = "connection_lost"
NO_HOOKS: Final = "no_hooks"


def source_of(fields: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the source that a spawn entry names, None for a shell."""
    source = fields.get("source")
    if not isinstance(source, Mapping) or not isinstance(source.get("kind"), str):
        return None
    return {name: word(source, name) or "" for name in ("kind", "target", "command", "author")}


def lacks_hooks(source: Mapping[str, Any]) -> str | None:
    """Return why the blocks of a source are less than exact before it has hooks; None where they are exact."""
    if source["kind"] == "exec":
        return None
    return f"{NO_HOOKS}: the commands behind {source['kind']} are not marked"


def outcome_of(source: Mapping[str, Any], how: Mapping[str, Any], *, ending: bool) -> dict[str, Any]:
    """Return how a source ended, given how its program did: {"status", "signal"}, and "reason" for a lost connection.

    `ending`: a request ended it.
    """
    if source["kind"] == "exec":
        return dict(how)
    if not ending and (how["status"] == LOST_STATUS or how["signal"] is not None):
        return {"status": None, "signal": None, "reason": CONNECTION_LOST}
    return dict(how)


def is_whole(source: Mapping[str, Any] | None, block: OpenBlock) -> bool:
    """Whether a block is the one of a whole source, from its start to its end."""
    return source is not None and (source["kind"] == "exec" or block.degraded == NO_HOOKS)
