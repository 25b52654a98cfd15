"""HTTP status of each error; programs should read the code in the body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from blockpty.errors import BlockptyError

STATUS: Final[Mapping[str, int]] = {
    "bad_request": 400,
    # Mostly a shell or a directory that there is not; what the system lacks is pty_limit.
    "spawn_failed": 422,
    "bad_condition": 400,
    "bad_cursor": 400,
    "line_too_long": 400,
    "unauthorized": 401,
    "forbidden": 403,
    "not_found": 404,
    "busy": 409,
    "interactive_session_active": 409,
    "no_session": 409,
    "exited": 410,
    "connection_lost": 410,
    "approval_denied": 403,
    "approval_required": 428,
    "stale": 409,
    "user_in_control": 409,
    "halted": 409,
    "session_limit": 429,
    "internal": 500,
    "spool_corrupt": 500,
    "spool_version": 500,
    "pty_limit": 503,
    "archive_unreachable": 502,
    "no_prompt": 504,
    "storage_full": 507,
}


def status_of(error: BlockptyError) -> int:
    """Return the status; details may name a more exact one of the same hundred (413, 415, 405)."""
    exact = error.details.get("http_status")
    return exact if isinstance(exact, int) and 400 <= exact < 500 else STATUS[error.code]
