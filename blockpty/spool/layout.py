"""Layout of a home and of a conversation: the paths of its files, and which names are allowed."""

from __future__ import annotations

import os
import re
import stat
from functools import cached_property
from pathlib import Path
from typing import Final

from msgspec import Struct

from blockpty.errors import BadRequest, SpoolCorrupt
from blockpty.spool.storage import full_is_an_error

# A bound in the pattern would take four milliseconds to compile, at each start of the command line.
_CONVERSATION_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_LONGEST_ID: Final = 128


def default_home() -> Path:
    """Return `$BLOCKPTY_HOME`, else `$XDG_STATE_HOME/blockpty`, else `~/.local/state/blockpty`."""
    if home := os.environ.get("BLOCKPTY_HOME"):
        return Path(home).absolute()
    state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(state).expanduser().absolute() / "blockpty"


def check_conversation_id(conversation_id: object) -> str:
    """Return the id, or raise BadRequest; an id is refused, never mapped to another."""
    if (
        not isinstance(conversation_id, str)
        or len(conversation_id) > _LONGEST_ID
        or not _CONVERSATION_ID.fullmatch(conversation_id)
    ):
        raise BadRequest(
            f"not a conversation id: {str(conversation_id)[:60]!r}",
            hint="1 to 128 letters, digits, dots, underscores and hyphens, beginning with a letter or digit",
        )
    return conversation_id


def make_private(directory: Path, *, parents: bool = True) -> None:
    """Create a directory 0700, or check that what is there is ours and a real directory.

    Without `parents` the one above must be there. Raises BadRequest, SpoolCorrupt, StorageFull.
    """
    try:
        # Mostly it is there: asking costs a hundredth of trying to make it.
        found = os.lstat(directory)
    except FileNotFoundError:
        try:
            with full_is_an_error(directory):
                _make(directory, parents)
            return
        except FileExistsError:
            found = os.lstat(directory)
        except (FileNotFoundError, NotADirectoryError) as problem:
            raise _no_directory(directory, problem) from None
    except NotADirectoryError as problem:
        raise _no_directory(directory, problem) from None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise SpoolCorrupt(f"{directory} is not a directory of this user", hint="choose another BLOCKPTY_HOME")
    if stat.S_IMODE(found.st_mode) & 0o077:
        os.chmod(directory, 0o700)


def _no_directory(directory: Path, problem: OSError) -> BadRequest:
    return BadRequest(
        f"{directory} cannot be made: {problem.filename}: {problem.strerror}",
        hint="choose another home, with --home or BLOCKPTY_HOME",
    )


def _make(directory: Path, parents: bool) -> None:
    try:
        os.mkdir(directory, 0o700)
    except FileNotFoundError:
        if not parents:
            raise
        directory.parent.mkdir(parents=True, exist_ok=True)
        os.mkdir(directory, 0o700)


class Layout(Struct, frozen=True, dict=True):
    """The files of one conversation."""

    directory: Path

    @cached_property
    def meta(self) -> Path:
        """Identity and format version."""
        return self.directory / "meta.json"

    @cached_property
    def stream(self) -> Path:
        """Directory of the stream's segments."""
        return self.directory / "stream"

    @cached_property
    def timeline(self) -> Path:
        """What happened at which offset."""
        return self.directory / "timeline.jsonl"

    @cached_property
    def events(self) -> Path:
        """Derived: every event."""
        return self.directory / "events.jsonl"

    @cached_property
    def blocks(self) -> Path:
        """Derived: one line a finished block."""
        return self.directory / "blocks.jsonl"

    @cached_property
    def outputs(self) -> Path:
        """Derived: directory of the `.out` files."""
        return self.directory / "blocks"

    @cached_property
    def commands(self) -> Path:
        """Directory of the staged command files."""
        return self.directory / "commands"

    @cached_property
    def submit(self) -> Path:
        """The command that the shell's line editor loads next, by our key."""
        return self.directory / "submit"

    @cached_property
    def checkpoint(self) -> Path:
        """Derived: where parsing may resume."""
        return self.directory / "checkpoint.json"

    @cached_property
    def points(self) -> Path:
        """Derived: directory of places at which the record may be made to begin."""
        return self.directory / "points"

    @cached_property
    def lock(self) -> Path:
        """Held by the engine that writes the derived files; holds its epoch."""
        return self.directory / "owner.lock"

    @cached_property
    def capture(self) -> Path:
        """Where the capture that runs began, or how the last one ended."""
        return self.directory / "capture.json"

    @cached_property
    def exports(self) -> Path:
        """Directory of the home's exported files."""
        return self.directory.parents[1] / "exports"


def conversations_directory(home: Path) -> Path:
    """Return where the conversations of a home lie."""
    return home / "conversations"


def shells_directory(home: Path) -> Path:
    """Return where shells of this user that no engine has started say that they take our hooks."""
    return home / "shells"


def out_name(seq: int, ts_begin: int) -> str:
    """Return the name of a block's `.out` file, relative to the conversation's directory."""
    return f"blocks/{seq}_{ts_begin}.out"
