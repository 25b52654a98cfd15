"""Entry point of the command line: from arguments to an exit status.

Exit statuses: 0 ok, 1 error, 2 usage, 3 timeout, 4 exited, 5 the command of `run` waits for input, 130 interrupted;
`run` returns the command's own. Everything is imported when called, so that shell completion and `--version` need not
wait for what only operations use.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from blockpty.errors import BlockptyError
    from blockpty.surfaces.cli.invocation import OpenEngine

EXIT_ERROR, EXIT_USAGE, EXIT_EXITED, EXIT_INTERRUPTED = 1, 2, 4, 130
EXIT_OF_CODE: Final = {"bad_request": EXIT_USAGE, "exited": EXIT_EXITED, "connection_lost": EXIT_EXITED}


def main(argv: Sequence[str] | None = None, *, open_engine: OpenEngine | None = None) -> int:
    """Run the command line and return the exit status; never raises for what a user can do."""
    # Looking for plugins of pydantic would cost a tenth of the start.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    import click

    from blockpty.errors import BadRequest, BlockptyError, InternalError
    from blockpty.surfaces.cli.commands import program
    from blockpty.surfaces.cli.invocation import Invocation

    arguments = list(sys.argv[1:] if argv is None else argv)
    # Errors of usage happen before the options are known.
    as_json = "--json" in arguments[: arguments.index("--")] if "--" in arguments else "--json" in arguments
    for standard in (sys.stdout, sys.stderr):
        if isinstance(standard, io.TextIOWrapper):
            # In a locale that lacks a character, show its number; do not fail.
            standard.reconfigure(errors="backslashreplace")
    invocation = Invocation(open_engine)
    try:
        status = program().main(arguments, prog_name="blockpty", standalone_mode=False, obj=invocation)
    except click.UsageError as error:
        if not as_json:
            error.show()
            return EXIT_USAGE
        place = error.ctx.command_path if error.ctx is not None else "blockpty"
        return _report(BadRequest(error.format_message(), hint=f"{place} --help shows the usage"), as_json=True)
    except click.ClickException as error:
        return _report(BadRequest(error.format_message()), as_json=as_json)
    except BlockptyError as error:
        return _report(error, as_json=as_json)
    except (click.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    except SystemExit as leaving:  # from click, after shell completion or when who read a help text has gone
        return leaving.code if isinstance(leaving.code, int) else EXIT_ERROR
    except Exception as error:  # noqa: BLE001  (a defect must have the one error shape too; its trace goes to stderr)
        sys.excepthook(type(error), error, error.__traceback__)
        defect = InternalError(f"{type(error).__name__}: {error}", hint="please report this defect of blockpty")
        return _report(defect, as_json=as_json)
    return int(status or 0)


def _report(error: BlockptyError, *, as_json: bool) -> int:
    """Show an error: with --json the one wire form on stdout, else for a person on stderr."""
    from blockpty.surfaces.cli.render import ResultPrinter

    screen = ResultPrinter(sys.stdout, sys.stderr, as_json=as_json)
    screen.error(error)
    return EXIT_OF_CODE.get(error.code, EXIT_ERROR)
