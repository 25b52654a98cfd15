"""Text of a command from standard input, or from the terminal without echo, in place of its arguments.

This is presentation: the operation gets the same parameter as ever. What is typed hidden appears neither among the
arguments, which other users can list, nor in the history of the shell.
"""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import Mapping
from typing import Any, Final

import click

# Which parameter --stdin fills.
STDIN: Final[Mapping[str, str]] = {
    "run": "command",
    "exec_block": "command",
    "exec_interactive": "command",
    "send": "data",
    "paste": "text",
}
# Their key is in a file: what is an argument, other users can list.
KEYED: Final = ("verify", "repair", "seal")
# In the place of this parameter stands the name of a file here (local_files.py).
LOCAL: Final[Mapping[str, str]] = {"put_file": "data", "get_file": "local_path"}
_LONGEST_KEY: Final = 64 * 1024
# Nothing of this size is accepted anyway, so no more is read.
_MOST: Final = 64 * 1024 * 1024

_STDIN_HELP: Final[Mapping[str, str]] = {
    "command": "Read the command from standard input; line ends at its end are dropped, as $(...) does.",
    "data": "Send what comes from standard input, exactly as it is.",
    "text": "Paste what comes from standard input, exactly as it is.",
}


def options_of(operation: str) -> list[click.Parameter]:
    """Return the options that say where the text of an operation comes from."""
    options: list[click.Parameter] = []
    if operation in STDIN:
        options.append(click.Option(["--stdin", "from_stdin"], is_flag=True, help=_STDIN_HELP[STDIN[operation]]))
    if operation == "send":
        text = "Ask for the text on the terminal without showing it; it is sent with a newline, and never recorded."
        options.append(click.Option(["--hidden"], is_flag=True, help=text))
    if operation == "export":
        from blockpty.surfaces.cli.export import output_option

        options.append(output_option())
    return options


def take(operation: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values with the text filled in from where it was said to be; raises UsageError."""
    taken = dict(values)
    if operation == "import_recording":
        # The engine may have another working directory.
        taken |= {one: os.path.abspath(taken[one]) for one in ("path", "timing") if taken.get(one) is not None}
    if isinstance(file := taken.get("key"), str) and operation in KEYED:
        taken["key"] = _key(file)
    if operation in LOCAL and taken.get("local_path") is not None:
        taken["local_path"] = os.path.abspath(taken["local_path"])
    from_stdin, hidden = taken.pop("from_stdin", False), taken.pop("hidden", False)
    name = STDIN.get(operation)
    if name is None:
        return taken
    given = [other for other in (name, f"{name}_argument", "data_b64") if taken.get(other) is not None]
    options = [option for option, on in (("--stdin", from_stdin), ("--hidden", hidden)) if on]
    if len(options) > 1 or (options and given):
        raise click.UsageError(f"give {name.replace('_', '-')} or {' or '.join(options)}, not both")
    if hidden:
        if taken.get("author") == "agent":
            raise click.UsageError("what is typed with --hidden is from the user, not from an agent")
        taken.update({name: f"{_ask(str(taken['conversation_id']))}\n", "author": "user", "secret": True})
    elif from_stdin:
        taken.update(_read(operation, name))
    elif operation != "send" and not given:
        raise click.UsageError(f"Missing argument '{name.upper()}', and no --stdin.")
    return taken


def _key(file: str) -> str:
    """Return what a file holds, without the line feed at its end."""
    try:
        with open(file, encoding="utf-8") as opened:
            return opened.read(_LONGEST_KEY).rstrip("\n")
    except (OSError, UnicodeDecodeError) as problem:
        raise click.UsageError(f"no key can be read from {file!r}: {problem}") from None


def _ask(conversation_id: str) -> str:
    from blockpty.surfaces.sanitize import sanitize

    return ask_hidden(
        f"for {sanitize(conversation_id, colour=False)}, not shown: ",
        "--hidden needs a terminal; --stdin takes the data from elsewhere",
    )


def ask_hidden(prompt: str, otherwise: str) -> str:
    """Ask for a text on the terminal without showing it; raises UsageError, with what to do, where there is none."""
    import getpass
    import warnings

    with warnings.catch_warnings():
        # Rather not at all than with echo.
        warnings.simplefilter("error", getpass.GetPassWarning)
        try:
            return getpass.getpass(prompt)
        except (getpass.GetPassWarning, OSError):
            raise click.UsageError(otherwise) from None
        except EOFError:
            raise click.Abort from None


def _read(operation: str, name: str) -> dict[str, str]:
    data = sys.stdin.buffer.read(_MOST + 1)
    if len(data) > _MOST:
        raise click.UsageError(f"more than {_MOST:,} bytes came from standard input")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        if operation == "send":
            return {"data_b64": base64.b64encode(data).decode("ascii")}
        raise click.UsageError(f"standard input is not UTF-8, which {name} has to be") from None
    return {name: text.rstrip("\n") if name == "command" else text}
