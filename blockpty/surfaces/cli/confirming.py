"""Confirmation of what cannot be undone: asked on a terminal, given with --yes elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Final

import click

CONFIRMED: Final = frozenset({"delete", "prune", "archive"})


def confirm_option() -> click.Option:
    """Return the option that answers the question."""
    return click.Option(["--yes", "-y"], is_flag=True, help="Do it without asking.")


def confirm(operation: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values without the answer; raises Abort after a no, and UsageError where no question can be put."""
    values = dict(values)
    if values.pop("yes", False) or values.get("dry_run"):
        return values
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError(f"{operation} asks before it begins; without a terminal give --yes, or --dry-run")
    click.confirm(_question(operation, values), abort=True, err=True)
    return values


def _question(operation: str, values: Mapping[str, Any]) -> str:
    from blockpty.surfaces.sanitize import one_line

    name = values.get("conversation_id") or values.get("conversation_id_argument")
    if operation == "delete":
        return f"Delete {one_line(str(name))} with its transcript? This cannot be undone."
    if operation == "archive":
        which = one_line(str(name)) if name else "all conversations that have ended"
        return f"Move the streams of {which} to the object store?"
    return "Delete the conversations that are beyond these limits? This cannot be undone (--dry-run names them)."
