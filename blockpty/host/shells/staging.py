"""Texts of a staged command and of the line that submits it, as each family of shells reads them.

Rules of this file: the typed line is printable ASCII wherever the family can write it so, because a line editor or a
terminal in canonical mode would take a control character for itself; the staged text is the user's own.
"""

from __future__ import annotations

import re
from typing import Final

from blockpty.errors import BadRequest
from blockpty.host.shells.families import FISH, POSIX, family_of

_PLAIN = re.compile(r"[ -&(-\[\]-~]*")
_ESCAPED_PLAIN = frozenset(range(0x20, 0x7F)) - frozenset(b"'\\!")
# What a line editor would draw in another way than it prints, or cannot be given.
_UNTYPED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\udc80-\udcff]")
SETTLE: Final = (
    b"{ __bpty_us=$_ __bpty_st=$?; } 2>/dev/null\n",
    b"; { __bpty_settle \"${__bpty_us-$_}\"; } 2>/dev/null",
)
"""In bash, what follows a command in its file and the line that reads the file: `$_` is the command's then."""
KEEP_LAST: Final = b" { __bpty_us=$_; } 2>/dev/null;"
"""What begins that line where nothing of the file will run: `$_` stays what it was."""
MAX_LOADED = 32_768
"""Characters of a command beyond which drawing it costs too much: a line that reads it from a file stands for it."""
MAX_EVALUATED: Final = 4096
"""Characters of a line that holds a command in quotes; a longer one reads it from a file."""
_CONTROL = re.compile(rb"[\x00-\x1f\x7f]")
# At the end of a line, with or without a comment: an operator, or the head of a function or a loop.
_GOES_ON = re.compile(r"(?:\||&&|\|&|\(\s*\)|\bfunction\s+\S+|\b(?:for|select)\s[^;]*)\s*(?:\s#.*)?$")
# In so many characters at its end this is looked for: a line may be as long as a command, and the search is not linear.
_END_LENGTH: Final = 200


def submit_line(path: str, shell: str = "bash") -> str:
    """Return the line that runs the staged file at `path` in `shell`, without the carriage return.

    Printable ASCII without quote, backslash and exclamation mark goes into '...'; anything else into $'...' with hex
    escapes, which bash and zsh read alike, so that neither readline's meta conversion nor history expansion touches it;
    fish has hex escapes outside quotes. A POSIX shell has none: other bytes stand in quotes as they are.
    In fish the line itself marks beginning and end of the output (../../../shellrc/README.md says why): not the staged
    file, of which fish runs nothing when there is a syntax error in it.

    Raises:
        BadRequest: the path is not absolute (`.` would search PATH), holds a NUL, or a control character that a POSIX
            shell could not be reported.
    """
    if not path.startswith("/") or "\0" in path:
        raise BadRequest(f"the staged file {path!r} is not an absolute path")
    family = family_of(shell)
    dot, over = (" __bpty_begun; . ", "; __bpty_over") if family == FISH else (" . ", "")
    if _PLAIN.fullmatch(path) and "!" not in path:
        return f"{dot}'{path}'{over}"
    if family == FISH:
        return dot + "".join(
            chr(byte) if (chr(byte).isalnum() and byte < 0x80) or byte in b"/._-" else f"\\X{byte:02x}"
            for byte in encode(path)
        ) + over
    if family == POSIX:
        if _CONTROL.search(encode(path)):
            raise BadRequest(f"the staged file {path!r} cannot be typed into {shell}", hint="use a home without them")
        return dot + quote_bytes(path).decode("utf-8", "surrogateescape")
    return dot + escaped(encode(path)).decode("ascii")


def loads(command: str, shell: str) -> bool:
    """Return whether the line editor of `shell` takes a command as a person would have typed it.

    Not one that is no command at all (blank, or comments alone: the shell would say nothing about it), one too long to
    be drawn, one with control characters, or one whose last line goes on. bash runs several lines one after another,
    with a BEGIN for each.
    """
    text = command.rstrip("\n")
    if len(text) > MAX_LOADED or text.endswith("\\") or _UNTYPED.search(text):
        return False
    if "\n" in text and family_of(shell) == "bash":
        return False
    return _says_something(text)


def is_settled(command: str) -> bool:
    """Return whether `SETTLE` may follow a command: it says something, and would neither be swallowed nor complete it.

    An open here-document would swallow it; behind an operator or the head of a function it would be what is missing.
    """
    text = command.rstrip("\n")
    if "<<" in text or text.endswith("\\") or not _says_something(text):
        return False
    last = next(line for line in reversed(text.split("\n")) if line.strip() and not line.lstrip().startswith("#"))
    return _GOES_ON.search(last[-_END_LENGTH:]) is None


def _says_something(text: str) -> bool:
    return any(line.strip() and not line.lstrip().startswith("#") for line in text.split("\n"))


def load_text(command: str) -> bytes:
    """Return the content of the file from which the key loads a command."""
    return encode(command.rstrip("\n"))


def load_line(line: bytes, history: str) -> bytes:
    """Return the content of that file where a line runs a command which it does not hold.

    `history` goes into the shell's history in place of the line; nothing does where it is empty.
    """
    return line + b"\0" + encode(history.rstrip("\n"))


def eval_line(command: str) -> bytes | None:
    """Return a line that has zsh say what is wrong with an incomplete command; None where it would be too long.

    zsh says it in the words that a typed command gets at its end, without the path of a file. Not for bash: after an
    incomplete text in `eval`, its parser takes the next line wrongly.
    """
    line = b" \\builtin eval " + escaped(encode(command.rstrip("\n")))
    return line if len(line) <= MAX_EVALUATED else None


def stage(command: str, cwd: str | None = None, shell: str = "bash") -> bytes:
    """Return the content of the file that runs `command` in `shell`, in directory `cwd` if one is given.

    The text is the user's own, plus a newline where the last line has none: so a here-document, a comment or a
    backslash at the end means what it means in any script. The change of directory shares the first line, so that line
    numbers stay true; if it fails, nothing of the command runs and the status is that of `cd`.

    Raises:
        BadRequest: a NUL in the command or the directory, or an empty directory.
    """
    if "\0" in command:
        raise BadRequest("the command holds a NUL character")
    family = family_of(shell)
    text = encode(command)
    if not text.endswith(b"\n"):
        text += b"\n"
    if cwd is None:
        return text
    target = cd_target(cwd)
    if family == FISH:
        # Not \builtin: fish reads a backspace in that.
        return b"builtin cd -- " + fish_quote_bytes(target) + b" || return; " + text
    if family == POSIX:
        return b"\\command cd -- " + quote_bytes(target) + b" || \\return; " + text
    return b"\\builtin cd -- " + quote_bytes(target) + b" || \\builtin return; " + text


def cd_target(cwd: str) -> str:
    """Return what `cd` is given: a relative name would be looked up in CDPATH, and `-` means the previous directory.

    Raises:
        BadRequest: the name is empty or holds a NUL.
    """
    if not cwd or "\0" in cwd:
        raise BadRequest("the working directory is empty or holds a NUL character")
    return cwd if cwd.startswith("/") else f"./{cwd}"


def encode(text: str) -> bytes:
    """UTF-8 whatever the locale of this process; undecodable bytes of file names come back as they were."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise BadRequest("the text holds a lone surrogate", details={"position": error.start}) from None


def clear_keys(shell: str) -> bytes:
    """Return what is typed to empty a line that was left unfinished at the prompt of `shell`.

    Ctrl-C; in fish a key that our hooks bind, because fish 3 loses a Ctrl-C that comes while it draws, and the next
    command would be appended to the old text.
    """
    return b"\x1d" if family_of(shell) == FISH else b"\x03"


def escaped(data: bytes, *, every_byte: bool = False) -> bytes:
    """Return `$'...'` in printable ASCII, as bash and zsh read it alike.

    No control character, quote or exclamation mark reaches the line editor; with `every_byte` nothing as it is.
    """
    plain = frozenset() if every_byte else _ESCAPED_PLAIN
    return b"$'" + b"".join(b"%c" % byte if byte in plain else b"\\x%02x" % byte for byte in data) + b"'"


def quote_bytes(text: str) -> bytes:
    """Return the text in the single quotes of every shell but fish."""
    return b"'" + encode(text).replace(b"'", b"'\\''") + b"'"


def fish_quote_bytes(text: str) -> bytes:
    """Return the text in the single quotes of fish, in which backslash and quote are escaped."""
    return b"'" + encode(text).replace(b"\\", b"\\\\").replace(b"'", b"\\'") + b"'"
