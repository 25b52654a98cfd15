"""Simple commands: one program, its arguments and redirections, as far as they are known before they run.

Rules of this file: frozen data. In arguments and targets, `UNKNOWN` stands for text that only the shell will know.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

UNKNOWN: Final = "\0"
"""Text known only at run time; no argument of a real program can have this character. Twice: maybe several words."""
SEVERAL: Final = UNKNOWN * 2
SOME_NAME: Final = "?" + UNKNOWN
"""Text known only at run time that cannot begin with a dash or a plus sign, such as today's date."""
TEMPORARY: Final = "/tmp/" + SOME_NAME
"""The name of a file or directory that `mktemp` has just made."""


class Redirection(Struct, frozen=True):
    """A redirection: its operator without the descriptor, and its target."""

    operator: str
    target: str


class Stdin(Struct, frozen=True):
    """Source of a command's standard input, if not the terminal.

    Attributes:
        text: what is read, where it is known (a here-document, `echo` of literal text).
        commands: the commands before it in the pipeline.
    """

    text: str | None = None
    commands: tuple[SimpleCommand, ...] = ()


class SimpleCommand(Struct, frozen=True):
    """One program and what it is given.

    Attributes:
        program: base name in lower case, quoting and path removed; empty if unknown or if there is none.
        arguments: with quoting, braces and known variables resolved.
        redirections: in order.
        via: the programs that start it, outermost first: `sudo`, `xargs`, `sh`.
        cwd: the directory it runs in; None if unknown, and on another machine.
        stdin: its standard input; None if that is the terminal's.
        inner: commands whose output is part of its words.
        source: the text of the command as written.
        unknown: why it cannot be known; empty if it is.
    """

    program: str
    arguments: tuple[str, ...] = ()
    redirections: tuple[Redirection, ...] = ()
    via: tuple[str, ...] = ()
    cwd: str | None = None
    stdin: Stdin | None = None
    inner: tuple[SimpleCommand, ...] = ()
    source: str = ""
    unknown: str = ""
