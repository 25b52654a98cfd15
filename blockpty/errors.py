"""Every error the program raises on purpose.

Rules of this file: one class per stable code, nothing else. A time-out of a wait, a non-zero exit status and an
ended shell that a caller asked about are results, not errors; they never come from here.

    BlockptyError                    code, message, hint, details
    +-- RequestError                 the caller asked for something that cannot be done now
    |   +-- BadRequest               bad_request
    |   +-- BadCondition             bad_condition
    |   +-- BadCursor                bad_cursor
    |   +-- NotFound                 not_found
    |   +-- Busy                     busy
    |   +-- InteractiveSessionActive interactive_session_active
    |   +-- NoSession                no_session
    |   +-- LineTooLong              line_too_long
    |   +-- SessionLimit             session_limit
    |   +-- Unauthorized             unauthorized
    |   +-- Forbidden                forbidden
    |   +-- ApprovalRequired         approval_required
    |   +-- ApprovalDenied           approval_denied
    |   +-- Stale                    stale
    |   +-- UserInControl            user_in_control
    |   +-- Halted                   halted
    +-- TerminalError                the shell or the terminal did not do its part
    |   +-- Exited                   exited
    |   |   +-- ConnectionLost       connection_lost
    |   +-- SpawnFailed              spawn_failed
    |   +-- NoPrompt                 no_prompt
    |   +-- PtyLimit                 pty_limit
    +-- SpoolError                   the files
    |   +-- StorageFull              storage_full
    |   +-- ArchiveUnreachable       archive_unreachable
    |   +-- SpoolCorrupt             spool_corrupt
    |   +-- SpoolVersion             spool_version
    +-- InternalError                internal: a defect of blockpty itself, never of the caller
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


class BlockptyError(Exception):
    """Base of all errors of blockpty: what went wrong, where, and what to do now.

    Attributes:
        code: stable name, the same on every surface.
        message: one sentence saying what and where.
        hint: what the reader can do now; empty when there is nothing sensible to say.
        details: structured facts (paths, ids, numbers), JSON-compatible.
    """

    code: ClassVar[str] = "internal"

    def __init__(self, message: str, *, hint: str = "", details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details: dict[str, Any] = dict(details or {})

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message

    def to_dict(self) -> dict[str, Any]:
        """Return the one wire form that every surface uses."""
        return {
            "ok": False,
            "error": {"code": self.code, "message": self.message, "hint": self.hint, "details": self.details},
        }


class RequestError(BlockptyError):
    """The caller asked for something that cannot be done now."""

    code = "bad_request"


class BadRequest(RequestError):
    """A parameter is missing, unknown, of the wrong type or out of range."""

    code = "bad_request"


class BadCondition(RequestError):
    """A wait condition cannot be understood, compiled or evaluated in bounded time."""

    code = "bad_condition"


class BadCursor(RequestError):
    """A cursor lies beyond the end of the stream or is not a number."""

    code = "bad_cursor"


class NotFound(RequestError):
    """No conversation, block or session has this name."""

    code = "not_found"


class Busy(RequestError):
    """A block is running, or another engine owns the conversation."""

    code = "busy"


class InteractiveSessionActive(RequestError):
    """An interactive session has the terminal."""

    code = "interactive_session_active"


class NoSession(RequestError):
    """Nothing is running that could take this input."""

    code = "no_session"


class LineTooLong(RequestError):
    """The terminal is in canonical mode and would silently cut this line at 4,095 bytes."""

    code = "line_too_long"


class SessionLimit(RequestError):
    """As many conversations are open as this home allows."""

    code = "session_limit"


class Unauthorized(RequestError):
    """No token came with the request, or one that this server does not know."""

    code = "unauthorized"


class Forbidden(RequestError):
    """The token is known but does not allow this, or the request came by a name or a page that is not allowed."""

    code = "forbidden"


class ApprovalRequired(RequestError):
    """A person has to allow this first, and the call does not wait for that."""

    code = "approval_required"


class ApprovalDenied(RequestError):
    """A rule or a person does not allow this, or no answer came in time; nothing was typed."""

    code = "approval_denied"


class Stale(RequestError):
    """The verdict is for something other than the pending request."""

    code = "stale"


class UserInControl(RequestError):
    """A person has control of the conversation."""

    code = "user_in_control"


class Halted(RequestError):
    """A person has halted agents, in this conversation or in all."""

    code = "halted"


class TerminalError(BlockptyError):
    """The shell or the terminal did not do its part."""


class Exited(TerminalError):
    """The shell of this conversation has ended."""

    code = "exited"


class ConnectionLost(Exited):
    """The way to the far side of this conversation, or to the server that was asked, is gone; what ran may run on."""

    code = "connection_lost"


class SpawnFailed(TerminalError):
    """The shell could not be started."""

    code = "spawn_failed"


class NoPrompt(TerminalError):
    """The shell did not show an authenticated prompt in time."""

    code = "no_prompt"


class PtyLimit(TerminalError):
    """The system has no free pseudo-terminal."""

    code = "pty_limit"


class SpoolError(BlockptyError):
    """The files of a conversation cannot be read or written."""

    code = "spool_corrupt"


class StorageFull(SpoolError):
    """No space is left where the transcripts are kept."""

    code = "storage_full"


class ArchiveUnreachable(SpoolError):
    """The object store that holds a stream cannot be reached or does not have it, or none is set."""

    code = "archive_unreachable"


class SpoolCorrupt(SpoolError):
    """A file of the spool is damaged in a place that cannot be repaired."""

    code = "spool_corrupt"


class SpoolVersion(SpoolError):
    """The spool was written by a newer format version."""

    code = "spool_version"


class InternalError(BlockptyError):
    """A defect of blockpty itself."""

    code = "internal"


def error_from_code(code: str, message: str, hint: str = "", details: Mapping[str, Any] | None = None) -> BlockptyError:
    """Rebuild an error from its wire form; an unknown code becomes `InternalError`."""
    return _BY_CODE.get(code, InternalError)(message, hint=hint, details=details)


_BY_CODE: dict[str, type[BlockptyError]] = {
    cls.code: cls
    for cls in (
        BadRequest, BadCondition, BadCursor, NotFound, Busy, InteractiveSessionActive, NoSession, LineTooLong,
        SessionLimit, Unauthorized, Forbidden,
        ApprovalRequired, ApprovalDenied, Stale, UserInControl, Halted,
        Exited, ConnectionLost, SpawnFailed, NoPrompt, PtyLimit,
        StorageFull, ArchiveUnreachable, SpoolCorrupt, SpoolVersion, InternalError,
    )
}  # fmt: skip
