"""The end of a source that is no shell of this machine: what the exit of its program says of what lay behind it.

Rules of this file: pure, and total; a status that nothing says stays unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from blockpty.engine.machine_state import OpenBlock
from blockpty.engine.marks import Mark
from blockpty.engine.records import nonce_of, word

LOST_STATUS: Final = 255
"""The status with which ssh, and the program for tmux panes, say that the connection is gone."""
CONNECTION_LOST: Final = "connection_lost"
NO_HOOKS: Final = "no_hooks"
REDRAWN: Final = "redrawn"
SEAM_REASONS: Final = ("attached", "paused", "resized", "alternate_left", "reconnected")
PANE_SOURCES: Final = ("tmux", "ssh")
"""Sources that may be a pane of tmux: of ssh the far host may have nothing else that keeps the shell."""
GAPS: Final = ("paused", "reconnected")
"""Reasons of a seam before which output, and marks in it, may be missing."""


def source_of(fields: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the source that a spawn entry names, None for a shell."""
    source = fields.get("source")
    if not isinstance(source, Mapping) or not isinstance(source.get("kind"), str):
        return None
    found = {name: word(source, name) or "" for name in ("kind", "target", "command", "author")}
    return {**found, "nonce": nonce_of(fields)}


def seam_of(source: Mapping[str, Any] | None, before: Mapping[str, Any] | None, mark: Mark) -> dict[str, Any] | str:
    """Return the seam of an authentic mark, {"number", "reason", "cols", "rows", "drawn"}, or why it is not accepted.

    `before`: that of the last mark. A seam begins with its reason and ends with `drawn`.
    """
    if source is None or source["kind"] not in PANE_SOURCES or not source["nonce"] or mark.nonce != source["nonce"]:
        return "nonce"
    if mark.seq != (before["number"] if before is not None else 0) + 1:
        return "sequence"
    if mark.fields.get("r") == "drawn":
        return {**(before or {"reason": "attached", "cols": 80, "rows": 24}), "number": mark.seq, "drawn": True}
    cols, rows, reason = mark.number("w") or 80, mark.number("h") or 24, mark.fields.get("r", "")
    known = reason if reason in SEAM_REASONS else SEAM_REASONS[0]
    return {"number": mark.seq, "reason": known, "cols": cols, "rows": rows, "drawn": False}


def lacks_hooks(source: Mapping[str, Any]) -> str | None:
    """Return why the blocks of a source are less than exact before it has hooks; None where they are exact."""
    if source["kind"] == "exec":
        return None
    return f"{NO_HOOKS}: the commands behind {source['kind']} are not marked"


def outcome_of(source: Mapping[str, Any], how: Mapping[str, Any], *, pane: bool, ending: bool) -> dict[str, Any]:
    """Return how a source ended, given how its program did: {"status", "signal"}, and "reason" for a lost connection.

    `pane`: it was a pane of tmux. `ending`: a request ended it.
    """
    if source["kind"] == "exec":
        return dict(how)
    if pane and how["status"] == 0:
        # The bridge ends well when the pane is gone; what its program returned is not known.
        return {"status": None, "signal": None}
    if not ending and (how["status"] == LOST_STATUS or how["signal"] is not None):
        return {"status": None, "signal": None, "reason": CONNECTION_LOST}
    return dict(how)


def is_whole(source: Mapping[str, Any] | None, block: OpenBlock) -> bool:
    """Whether a block is the one of a whole source, from its start to its end."""
    return source is not None and (source["kind"] == "exec" or block.degraded == NO_HOOKS)
