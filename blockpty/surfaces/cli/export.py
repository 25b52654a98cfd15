"""Destination of an export on the command line: the file of `-o`, standard output, or the file that was written.

Rules of this file: an export that goes somewhere is not left behind in the home as well. A terminal gets it as it gets
all that programs wrote: safely.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final

import click
from msgspec.structs import replace

from blockpty.model.results import ExportResult
from blockpty.surfaces.sanitize import sanitize

STDOUT: Final = "-"


def output_option() -> click.Option:
    """Return the option."""
    text = "Write to this file, '-' for standard output; of a typescript, the times to FILE.timing."
    return click.Option(["-o", "--output"], type=click.Path(dir_okay=False), metavar="FILE", help=text)


def taken_output(values: Mapping[str, Any]) -> tuple[dict[str, Any], str | None]:
    """Return the parameters of the operation, and where its result goes: a file, "-", or None for what is usual."""
    params = dict(values)
    output = params.pop("output", None)
    if output == STDOUT and "typescript" in (params.get("format"), params.get("format_argument")):
        raise click.UsageError("a typescript is two files; give -o a name")
    return params, output


def delivered(result: ExportResult, output: str | None, *, as_json: bool) -> ExportResult | None:
    """Put an export where it belongs; return what is still to be shown of it, None for nothing."""
    piped = not as_json and not sys.stdout.isatty() and result.timing_path is None
    if output is None and not piped:
        return result
    if output == STDOUT and sys.stdout.isatty():
        _show(result)
        return None
    if output is None or output == STDOUT:
        sys.stdout.flush()
        _copy(result, sys.stdout.buffer)
        return None
    with _private(output) as file:
        _copy(result, file)
    timing = None
    if result.timing_path is not None:
        timing = f"{output}.timing"
        with _private(timing) as file, open(result.timing_path, "rb") as source:
            shutil.copyfileobj(source, file)
        Path(result.timing_path).unlink()
    return replace(result, data=None, path=output, timing_path=timing)


def _show(result: ExportResult) -> None:
    """Write an export to a terminal, line by line and safely."""
    with contextlib.ExitStack() as files:
        lines: Iterable[str] = (result.data or "").splitlines(keepends=True)
        if result.path is not None:
            lines = files.enter_context(open(result.path, encoding="utf-8", newline=""))
        for line in lines:
            sys.stdout.write(sanitize(line, colour=False))
    if result.path is not None:
        Path(result.path).unlink()


def _copy(result: ExportResult, file: IO[bytes]) -> None:
    if result.path is None:
        file.write((result.data or "").encode())
        return
    with open(result.path, "rb") as source:
        shutil.copyfileobj(source, file)
    Path(result.path).unlink()


@contextlib.contextmanager
def _private(path: str) -> Iterator[IO[bytes]]:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    except OSError as problem:
        raise click.UsageError(f"{path} cannot be written: {problem.strerror}") from None
    with os.fdopen(descriptor, "wb") as file:
        yield file
