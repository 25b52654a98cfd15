"""Local files of `put-file` and `get-file`: this program reads and writes them, wherever the server is.

Rules of this file: what goes to a terminal goes there safely, and what is redacted is said.
"""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import Mapping
from typing import Any, Final

import click
from msgspec.structs import replace

from blockpty.api.limits import MOST_FILE
from blockpty.files.replacing import read_whole, replace_whole
from blockpty.model.results import GetFileResult
from blockpty.surfaces.cli.inputs import LOCAL
from blockpty.surfaces.sanitize import sanitize

_STREAM: Final = "-"


def taken_local(operation: str, values: Mapping[str, Any]) -> tuple[dict[str, Any], str | None]:
    """Return the parameters, with the content of the local file, and where a result goes: a file, "-" or None."""
    params = dict(values)
    local = params.pop(f"{LOCAL[operation]}_argument")
    if operation == "put_file":
        if local is not None:
            params["data_b64"] = base64.b64encode(_read(local)).decode("ascii")
        return params, None
    if params.get("local_path") is None:
        return params, local or _STREAM
    if local is not None:
        raise click.UsageError("give LOCAL, or --local-path for a file of the server's machine, not both")
    return params, None


def delivered_file(result: GetFileResult, output: str | None, *, as_json: bool) -> GetFileResult | None:
    """Put a file where it belongs; return what is still to be shown of it, None for nothing."""
    if result.redacted and not as_json:
        click.echo("blockpty: secrets were redacted, so this differs from the file", err=True)
    if output is None or (as_json and output == _STREAM):
        return result
    if output != _STREAM:
        try:
            replace_whole(output, result.content, None, _umask())
        except OSError as problem:
            raise click.UsageError(f"{output} cannot be written: {problem.strerror}") from None
        return replace(result, data=None, data_b64=None)
    if sys.stdout.isatty():
        sys.stdout.write(sanitize(result.content.decode("utf-8", "replace"), colour=False))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(result.content)
    return None


def _read(local: str) -> bytes:
    if local == _STREAM:
        data = sys.stdin.buffer.read(MOST_FILE + 1)
    else:
        try:
            data = read_whole(local, MOST_FILE)
        except OSError as problem:
            raise click.UsageError(f"{local} cannot be read: {problem.strerror}") from None
    if len(data) > MOST_FILE:
        raise click.UsageError(f"{local} is longer than {MOST_FILE:,} bytes")
    return data


def _umask() -> int:
    found = os.umask(0o077)
    os.umask(found)
    return found
